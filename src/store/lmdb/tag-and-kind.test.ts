import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Filter } from "../../nostr/filter.js";
import { idHighOf, idLowOf, ofTagAndKind } from "../engine/row.js";
import type { Store, StoredEvent } from "../port.js";
import { eventOf } from "../testing/events.js";
import { DatabaseFiles } from "./database.js";
import { openLmdbStore } from "./open.js";
import { entryBytes, metaNumber, setMeta, termKeyOf, writeEntry, writeTerm } from "./rows.js";

const address = `30617:${"ab".repeat(32)}:busy`;
const pullRequests: Filter = { kinds: [1618], tags: new Map([["a", [address]]]), limit: 10 };

async function inFolder(story: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-kinds-"));
  try {
    await story(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function idsOf(store: Store, filter: Filter): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of store.query([filter])) ids.push(...page.map(({ id }) => id));
  return ids;
}

/** Five pull requests below so many comments, and the processor time of asking for them. */
async function microsBeside(comments: number, folder: string): Promise<number> {
  const store = await openLmdbStore(folder, { reserveBytes: 0, indexAtRows: 200 });
  const tags = [["a", address]];
  const events = [
    ...Array.from({ length: 5 }, (_, index) => eventOf({ kind: 1618, at: index, tags })),
    ...Array.from({ length: comments }, (_, index) => eventOf({ kind: 1111, at: 100 + index, tags })),
  ];
  for (let at = 0; at < events.length; at += 500) {
    const some = events.slice(at, at + 500);
    await Promise.all(some.map((event) => store.transact((tx) => tx.put(event))));
  }
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 20; round++) {
    const before = process.cpuUsage();
    for (let ask = 0; ask < 10; ask++) assert.equal((await idsOf(store, pullRequests)).length, 5);
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, user + system);
  }
  assert.equal(await store.count([{ kinds: [1618], tags: new Map([["a", [address]]]) }]), 5);
  await store.close();
  return least;
}

test("pull requests of a repository cost what is found, however many comments stand beside them", async () => {
  await inFolder(async (folder) => {
    const few = await microsBeside(250, join(folder, "few"));
    const many = await microsBeside(10_000, join(folder, "many"));
    assert.ok(many < 6 * few, `beside 250 comments ${few} µs, beside 10,000 ${many} µs`);
  });
});

test("a store of format 1 is brought to today's at start, says so, and finds by tag and kind what it held", async () => {
  await inFolder(async (folder) => {
    const events = Array.from({ length: 30 }, (_, index) =>
      eventOf({ kind: [1618, 1621, 1111][index % 3] as number, at: index, tags: [["a", address]] }),
    );
    const before = await openLmdbStore(folder, { indexAtRows: 1 });
    for (const event of events) await before.transact((tx) => tx.put(event));
    const rows: StoredEvent[] = [];
    for await (const page of before.query([{}])) rows.push(...page.map(({ seq, event }) => ({ seq, event })));
    const expected = await idsOf(before, pullRequests);
    await before.close();

    const database = new DatabaseFiles(folder).open();
    const key = Buffer.alloc(entryBytes);
    await database.write(() => {
      for (const { seq, event } of rows) {
        writeTerm(key, termKeyOf(ofTagAndKind("a", address, event.kind), metaNumber(database, "seed") ?? 0));
        const { id, created_at: time } = event;
        writeEntry(key, { time, idHigh: idHighOf(id), idLow: idLowOf(id), seq });
        database.entries.remove(key);
      }
      setMeta(database, "version", 1);
    });
    await database.close();

    const reading = await openLmdbStore(folder, { readOnly: true });
    assert.equal((await reading.event(events[0]?.id ?? ("" as never)))?.event.id, events[0]?.id);
    await reading.close();

    const said: string[] = [];
    const after = await openLmdbStore(folder, { tell: (sentence) => said.push(sentence) });
    assert.deepEqual(await idsOf(after, pullRequests), expected);
    assert.equal(expected.length, 10);
    assert.match(said.join("\n"), /format 1: bringing it to format 3.*20 events/s);
    await after.close();
    const again = await openLmdbStore(folder, { tell: () => assert.fail("it was brought up to date before") });
    await again.close();
  });
});
