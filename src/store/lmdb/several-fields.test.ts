import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { VerifiedEvent } from "../../nostr/event.js";
import { compareNewestFirst } from "../../nostr/event.js";
import { type Filter, matcherOf } from "../../nostr/filter.js";
import type { EngineStore } from "../engine/engine.js";
import { eventOf, pubkeyOf } from "../testing/events.js";
import { Random } from "../testing/random.js";
import { openLmdbEngine } from "./open.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-fields-"));
after(() => rmSync(folder, { recursive: true, force: true }));

async function filled(name: string, events: readonly VerifiedEvent[], indexAtRows: number): Promise<EngineStore> {
  const store = await openLmdbEngine(join(folder, name), { reserveBytes: 0, indexAtRows });
  for (let at = 0; at < events.length; at += 500) {
    await store.transact(async (tx) => {
      for (const event of events.slice(at, at + 500)) await tx.put(event);
    });
  }
  return store;
}

async function idsOf(store: EngineStore, filter: Filter): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of store.query([filter], { pageRows: 50 })) ids.push(...page.map(({ id }) => id));
  return ids;
}

/** Rows that are read from disk meanwhile. */
async function rowsLookedAt(store: EngineStore, work: () => Promise<unknown>): Promise<number> {
  const { backend } = store;
  const { row } = backend;
  let rows = 0;
  backend.row = (...asked) => {
    rows++;
    return row.apply(backend, asked);
  };
  await work();
  backend.row = row;
  return rows;
}

const [busy, popular, rare] = [pubkeyOf(1), pubkeyOf(2), pubkeyOf(3)];

/** Five answers to somebody, among so many of the author's other events and so many that others wrote to him. */
function crowd(others: number): VerifiedEvent[] {
  const wanted = numbered(5, (at) => eventOf({ author: 1, kind: 1111, at: at * 1_000, tags: [["p", popular]] }));
  const byAuthor = numbered(others, (at) =>
    eventOf({ author: 1, kind: 1111, at: 10 + at * 3, tags: [["p", at % 2 === 0 ? rare : busy]] }),
  );
  const toHim = numbered(others, (at) =>
    eventOf({ author: 4, kind: at % 2 === 0 ? 1111 : 1621, at: 11 + at * 3, tags: [["p", popular]] }),
  );
  return [...wanted, ...byAuthor, ...toHim];
}

const numbered = (count: number, make: (at: number) => VerifiedEvent): VerifiedEvent[] =>
  Array.from({ length: count }, (_, at) => make(at));

test("an author's events of a kind to somebody cost what is found, however many of either there are", async () => {
  const filter = { authors: [pubkeyOf(1)], kinds: [1111], tags: new Map([["p", [popular]]]) };
  const { kinds: _kinds, ...ofAnyKind } = filter;
  for (const others of [1_000, 6_000]) {
    const store = await filled(`crowd-${others}`, crowd(others), 1);
    // Compaction waits for the index: the rows have left memory then.
    await store.compact();
    const works: Record<string, () => Promise<unknown>> = {
      "a question": async () => assert.equal((await idsOf(store, { ...filter, limit: 500 })).length, 5),
      "of any kind": async () => assert.equal((await idsOf(store, ofAnyKind)).length, 5),
      "a count": async () => assert.equal(await store.count([filter]), 5),
      "times and ids": async () => assert.equal((await store.timedIds(filter, 1_000))?.length, 5),
    };
    for (const [name, work] of Object.entries(works)) {
      const rows = await rowsLookedAt(store, work);
      assert.ok(rows <= 80, `${name} beside ${others}: ${rows} rows were looked at for 5`);
    }
    await store.close();
  }
});

test("what several fields name together is what each event by itself is matched by", async () => {
  const random = new Random(11);
  const letters = ["p", "t", "e", "subject"];
  const values = ["one", "two", 'three "quoted"', pubkeyOf(1)];
  const events = numbered(3_000, (at) =>
    eventOf({
      author: random.below(3),
      kind: random.pick([1, 1111, 1621]),
      at: random.below(1_500),
      content: `number ${at}`,
      tags: Array.from({ length: random.below(4) }, () => [random.pick(letters), random.pick(values), "more"]),
    }),
  );
  // Some are on disk, some in memory, some on their way.
  const store = await filled("alike", events, 700);
  const some = <T>(list: readonly T[], most: number): T[] => [
    ...new Set(Array.from({ length: 1 + random.below(most) }, () => random.pick(list))),
  ];
  for (let round = 0; round < 150; round++) {
    const names = some(letters, 2);
    const filter: Filter = {
      ...(random.chance(0.6) && { authors: some([0, 1, 2].map(pubkeyOf), 2) }),
      ...(random.chance(0.6) && { kinds: some([1, 1111, 1621], 2) }),
      ...(random.chance(0.3) && { since: random.below(700) }),
      ...(random.chance(0.3) && { until: 700 + random.below(800) }),
      tags: new Map(names.map((name) => [name, some(values, 2)])),
    };
    const expected = events.filter(matcherOf(filter)).sort(compareNewestFirst);
    const limit = 1 + random.below(200);
    const told = JSON.stringify({ ...filter, tags: [...(filter.tags ?? [])] });
    const ids = expected.map(({ id }) => id);
    assert.deepEqual(await idsOf(store, filter), ids, told);
    assert.deepEqual(await idsOf(store, { ...filter, limit }), ids.slice(0, limit), `${told} ${limit}`);
    assert.equal(await store.count([filter]), ids.length, told);
  }
  await store.close();
});
