// The contract of port.ts as tests: every implementation runs the same ones.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Clock } from "../../base/clock.js";
import { ManualClock } from "../../base/testing/manual-clock.js";
import type { VerifiedEvent } from "../../nostr/event.js";
import { addressOf } from "../../nostr/event.js";
import type { Filter } from "../../nostr/filter.js";
import {
  type FeedEntry,
  type PutResult,
  type QueryOptions,
  type Store,
  StoreBusyError,
  StoreClosedError,
  type Transaction,
} from "../port.js";
import { eventOf, pubkeyOf } from "./events.js";

export interface ContractOptions {
  readonly clock: Clock;
  readonly maxQueuedWorks?: number;
}

export interface OpenedStore {
  readonly store: Store;
  dispose(): Promise<void>;
}

type Body = (store: Store, clock: ManualClock) => Promise<void>;

export function storeContract(name: string, open: (options: ContractOptions) => Promise<OpenedStore>): void {
  const check = (title: string, body: Body, options: { maxQueuedWorks?: number } = {}): void => {
    test(title, async () => {
      const clock = new ManualClock(nowSeconds * 1_000);
      const { store, dispose } = await open({ clock, ...options });
      try {
        await body(store, clock);
      } finally {
        await store.close();
        await dispose();
      }
    });
  };
  describe(`${name}: storing and asking`, () => storing(check));
  describe(`${name}: deletions and time`, () => deleting(check));
  describe(`${name}: transactions`, () => transacting(check));
  describe(`${name}: what follows a commit`, () => following(check));
  describe(`${name}: side tables`, () => tabling(check));
  describe(`${name}: the feed`, () => feeding(check));
}

type Check = (title: string, body: Body, options?: { maxQueuedWorks?: number }) => void;

const nowSeconds = 1_700_000_000;

const put = (store: Store, event: VerifiedEvent): Promise<PutResult> => store.transact((tx) => tx.put(event));

async function putAll(store: Store, events: readonly VerifiedEvent[]): Promise<void> {
  await Promise.all(events.map((event) => put(store, event)));
}

async function ask(store: Store, filters: readonly Filter[], options?: QueryOptions): Promise<string[]> {
  const found: string[] = [];
  for await (const page of store.query(filters, options)) for (const row of page) found.push(row.id);
  return found;
}

const reasonOf = (result: PutResult): string => (result.stored ? "stored" : result.reason);

async function nextPage(pages: AsyncIterator<readonly FeedEntry[]>): Promise<readonly FeedEntry[]> {
  const { value, done } = await pages.next();
  assert.equal(done ?? false, false);
  return value as readonly FeedEntry[];
}

function storing(check: Check): void {
  check("private kinds match only for readers who wrote them, whatever leads to the event", async (store) => {
    const [mine, theirs] = [pubkeyOf(1), pubkeyOf(2)];
    const about = {
      tags: [
        ["t", "x"],
        ["d", "x"],
      ],
    };
    const events = [1, 2].flatMap((author) =>
      [1, 78, 30_078].map((kind, index) => eventOf({ author, kind, at: nowSeconds - index, ...about })),
    );
    await putAll(store, events);
    const visible = events.filter(({ kind, pubkey }) => kind === 1 || pubkey === mine).map(({ id }) => id);
    const questions: Filter[] = [
      {},
      { ids: events.map(({ id }) => id) },
      { authors: [mine, theirs] },
      { authors: [mine, theirs], kinds: [1, 78, 30_078] },
      { kinds: [1, 78, 30_078] },
      { tags: new Map([["t", ["x"]]]) },
      { tags: new Map([["t", ["x"]]]), kinds: [1, 78, 30_078] },
      {
        tags: new Map([
          ["t", ["x"]],
          ["d", ["x"]],
        ]),
      },
    ];
    const readers = new Set([mine]);
    for (const question of questions) {
      const filter = { ...question, readers };
      assert.deepEqual((await ask(store, [filter])).sort(), [...visible].sort(), JSON.stringify(question));
      assert.equal(await store.count([filter]), visible.length, JSON.stringify(question));
      assert.equal(await store.count([filter, { kinds: [7] }]), visible.length);
      assert.equal((await store.timedIds(filter, 10))?.length, visible.length, JSON.stringify(question));
      assert.equal((await ask(store, [{ ...filter, limit: 3 }])).length, 3, "hidden ones take no place in a limit");
    }
    const byAddress = { authors: [theirs], kinds: [30_078], tags: new Map([["d", ["x"]]]), readers };
    assert.deepEqual([await ask(store, [byAddress]), await store.count([byAddress])], [[], 0]);
  });

  check("what was put is answered byte for byte, by id, by query and by count", async (store) => {
    const event = eventOf({ content: 'ü "quoted" \\ \u0001 😀', tags: [["t", "x"], ["only"]] });
    const result = await put(store, event);
    assert.deepEqual(result, { stored: true, seq: 1, replaced: undefined });
    assert.equal((await store.event(event.id))?.event.raw, event.raw);
    assert.equal(await store.has(event.id), true);
    for await (const [row] of store.query([{ ids: [event.id] }])) {
      assert.equal(row?.json.toString(), event.raw);
      assert.deepEqual(row?.event.tags, event.tags);
      assert.equal(row?.seq, 1);
    }
    assert.equal(await store.count([{}]), 1);
    assert.equal(store.stats.events, 1);
  });

  check("the same event again is a duplicate", async (store) => {
    const event = eventOf({});
    await put(store, event);
    assert.equal(reasonOf(await put(store, event)), "duplicate");
    assert.equal(store.position, 1);
  });

  check("three hundred events of one second come in pages, by ascending id, each once", async (store) => {
    const events = Array.from({ length: 300 }, (_, index) => eventOf({ content: `${index}` }));
    await putAll(store, events);
    const sizes: number[] = [];
    const found: string[] = [];
    for await (const page of store.query([{ kinds: [1] }])) {
      sizes.push(page.length);
      for (const row of page) found.push(row.id);
    }
    assert.deepEqual(sizes, [200, 100]);
    assert.deepEqual(found, events.map(({ id }) => id).sort());
  });

  check(
    "what is given at once and what is left to read are together the answer, the short one in one piece",
    async (store) => {
      await putAll(
        store,
        Array.from({ length: 12 }, (_, at) => eventOf({ at, kind: at < 2 ? 7 : 1 })),
      );
      for (const filter of [{ kinds: [7] }, { kinds: [1] }, { kinds: [3] }, {}, { kinds: [1], limit: 4 }]) {
        const taken: string[][] = [];
        const options = { pageRows: 4, passingRows: true };
        const rest = store.queryAtOnce([filter], options, (page) => taken.push(page.map(({ id }) => id)));
        if (rest) {
          assert.equal(taken.length, 0, "all of it is to be read");
          for await (const page of rest) taken.push(page.map(({ id }) => id));
        }
        assert.deepEqual(taken.flat(), await ask(store, [filter]));
        assert.ok(taken.every((page) => page.length > 0 && page.length <= 4));
      }
    },
  );

  check("several filters answer together, newest first, each with its own limit", async (store) => {
    const events = [1, 2, 3, 4, 5, 6].map((at) => eventOf({ at, kind: at % 2 === 0 ? 7 : 1 }));
    await putAll(store, events);
    const ids = (...times: number[]): string[] => times.map((at) => events[at - 1]?.id as string);
    assert.deepEqual(
      await ask(store, [
        { kinds: [7], limit: 1 },
        { kinds: [1], limit: 2 },
      ]),
      ids(6, 5, 3),
    );
    assert.deepEqual(await ask(store, [{ kinds: [7] }, { since: 5 }]), ids(6, 5, 4, 2));
    assert.deepEqual(await ask(store, [{}], { limit: 2 }), ids(6, 5));
    assert.deepEqual(await ask(store, [{}], { upTo: 2 }), ids(2, 1));
    assert.deepEqual(await ask(store, [{ kinds: [] }, { since: 5, until: 4 }, { limit: 0 }]), []);
    assert.deepEqual(await ask(store, []), []);
  });

  check("a filter with five thousand values is answered", async (store) => {
    const event = eventOf({ author: 4_999, tags: [["e", "f".repeat(64)]] });
    await put(store, event);
    const authors = Array.from({ length: 5_000 }, (_, index) => pubkeyOf(index));
    assert.deepEqual(await ask(store, [{ authors }]), [event.id]);
    assert.deepEqual(await ask(store, [{ authors, kinds: [1, 2, 3] }]), [event.id]);
  });

  check("a query under way sees what was there when it began", async (store) => {
    await putAll(
      store,
      [10, 20, 30].map((at) => eventOf({ at })),
    );
    const pages = store.query([{}], { pageRows: 1 })[Symbol.asyncIterator]();
    const first = await pages.next();
    await put(store, eventOf({ at: 15 }));
    const times = [first.value?.[0]?.created_at];
    for (let page = await pages.next(); !page.done; page = await pages.next()) times.push(page.value[0]?.created_at);
    assert.deepEqual(times, [30, 20, 10]);
  });

  check("an aborted query ends with the reason", async (store) => {
    await putAll(
      store,
      [1, 2, 3].map((at) => eventOf({ at })),
    );
    const controller = new AbortController();
    const pages = store.query([{}], { pageRows: 1, signal: controller.signal })[Symbol.asyncIterator]();
    await pages.next();
    controller.abort(new Error("enough"));
    await assert.rejects(async () => pages.next(), /enough/);
  });

  check("a newer version replaces, an older one is refused, the lower id wins a tie", async (store) => {
    const version = (at: number, content: string): VerifiedEvent =>
      eventOf({ kind: 30_617, at, content, tags: [["d", "x"]] });
    const [low, high] = [version(20, "a"), version(20, "b")].sort((a, b) => (a.id < b.id ? -1 : 1)) as [
      VerifiedEvent,
      VerifiedEvent,
    ];
    const first = version(10, "");
    await put(store, first);
    const replaced = await put(store, high);
    assert.equal(replaced.stored && replaced.replaced?.id, first.id);
    assert.equal(reasonOf(await put(store, version(15, ""))), "older");
    assert.equal(reasonOf(await put(store, low)), "stored");
    assert.equal(reasonOf(await put(store, high)), "older");
    const address = addressOf(low);
    assert.ok(address);
    assert.equal((await store.latest(address))?.event.id, low.id);
    assert.deepEqual(await ask(store, [{ kinds: [30_617] }]), [low.id]);
    assert.equal(await store.has(first.id), false);
    await put(store, eventOf({ kind: 0, at: 1 }));
    await put(store, eventOf({ kind: 0, at: 2 }));
    assert.equal(await store.count([{ kinds: [0] }]), 1);
  });

  check("an event with several identifiers lives at the first and is found by each", async (store) => {
    const event = eventOf({
      kind: 30_617,
      tags: [
        ["d", "one"],
        ["d", "two"],
      ],
    });
    await put(store, event);
    for (const [value, times] of Object.entries({ one: 1, two: 1, three: 0 })) {
      const filter = { authors: [event.pubkey], kinds: [30_617], tags: new Map([["d", [value]]]) };
      assert.equal((await ask(store, [filter])).length, times);
      assert.equal((await store.timedIds(filter, 5))?.length, times);
    }
    assert.equal(await store.latest({ kind: 30_617, pubkey: event.pubkey, identifier: "two" }), undefined);
  });

  check(
    "repositories and issues are found by their words, in any case, the last one may be unfinished",
    async (store) => {
      const tags = [
        ["d", "hold-fast"],
        ["name", "Holdfast"],
        ["description", "A GRASP server for Straße"],
      ];
      const repository = eventOf({ kind: 30_617, at: 3, tags });
      const issue = eventOf({ kind: 1_621, at: 2, tags: [["subject", "server crashes"]], content: "holdfast" });
      const note = eventOf({ kind: 1, at: 1, content: "server" });
      await putAll(store, [repository, issue, note]);
      const search = (text: string): Promise<string[]> => ask(store, [{ search: text }]);
      assert.deepEqual(await search("SERVER"), [repository.id, issue.id]);
      assert.deepEqual(await search("server grasp language:en"), [repository.id]);
      assert.deepEqual(await search("server cras"), [issue.id]);
      assert.deepEqual(await search("serv"), [repository.id, issue.id]);
      assert.deepEqual(await search("ser"), []);
      assert.deepEqual(await search("crash server"), []);
      assert.deepEqual(await search("strasse"), []);
      assert.deepEqual(await search(""), []);
      assert.deepEqual(await ask(store, [{ search: "server", kinds: [1_621] }]), [issue.id]);
    },
  );

  check("times and ids come in ascending order, or not at all when they are too many", async (store) => {
    const events = Array.from({ length: 50 }, (_, index) => eventOf({ at: index % 5, content: `${index}` }));
    await putAll(store, events);
    const sorted = events.toSorted((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1));
    const found = await store.timedIds({ kinds: [1], limit: 3 }, 50);
    assert.equal(found?.length, 50);
    assert.deepEqual(
      [...(found?.times ?? [])],
      sorted.map((event) => event.created_at),
    );
    assert.equal(Buffer.from(found?.ids ?? []).toString("hex"), sorted.map(({ id }) => id).join(""));
    assert.equal(await store.timedIds({ kinds: [1] }, 49), undefined);
    assert.equal((await store.timedIds({ kinds: [2] }, 0))?.length, 0);
  });
}

function deleting(check: Check): void {
  const deletionOf = (author: number, at: number, ...tags: string[][]): VerifiedEvent =>
    eventOf({ author, kind: 5, at, tags });

  check("an author's deletion removes by id and refuses the event later", async (store) => {
    const event = eventOf({ at: 50 });
    const deletion = deletionOf(1, 10, ["e", event.id]);
    await put(store, event);
    await put(store, deletion);
    assert.equal(await store.has(event.id), false);
    assert.equal(reasonOf(await put(store, event)), "deleted");
    assert.equal(await store.deletionOf(event), deletion.id);
    assert.equal(await store.has(deletion.id), true);
  });

  check("a stranger's deletion has no effect, before the event or after it", async (store) => {
    const event = eventOf({ author: 1 });
    const other = eventOf({ author: 1, kind: 30_617, tags: [["d", "x"]] });
    await put(store, deletionOf(2, 2_000, ["e", event.id], ["a", `30617:${pubkeyOf(1)}:x`]));
    await putAll(store, [event, other]);
    await put(store, deletionOf(2, 2_001, ["e", event.id], ["a", `30617:${pubkeyOf(1)}:x`]));
    assert.deepEqual([await store.has(event.id), await store.has(other.id)], [true, true]);
    assert.equal(await store.deletionOf(event), undefined);
  });

  check("a deletion by address binds versions up to its own time", async (store) => {
    const version = (at: number): VerifiedEvent => eventOf({ kind: 30_617, at, tags: [["d", "a:b"]] });
    await put(store, version(10));
    await put(store, deletionOf(1, 20, ["a", `30617:${pubkeyOf(1)}:a:b`]));
    assert.equal(await store.count([{ kinds: [30_617] }]), 0);
    assert.equal(reasonOf(await put(store, version(20))), "deleted");
    assert.equal(reasonOf(await put(store, version(21))), "stored");
    assert.equal(reasonOf(await put(store, deletionOf(1, 15, ["a", `30617:${pubkeyOf(1)}:a:b`]))), "stored");
    assert.equal(await store.has(version(21).id), true);
    assert.equal(reasonOf(await put(store, version(20))), "deleted");
  });

  check("a deletion does not delete a deletion", async (store) => {
    const first = deletionOf(1, 10, ["e", "0".repeat(64)]);
    await put(store, first);
    await put(store, deletionOf(1, 20, ["e", first.id]));
    assert.equal(await store.has(first.id), true);
    const late = deletionOf(1, 5, ["e", "1".repeat(64)]);
    await put(store, deletionOf(1, 30, ["e", late.id]));
    assert.equal(reasonOf(await put(store, late)), "stored");
  });

  check("a deletion reaches a thousand targets and no more", async (store) => {
    const filler = Array.from({ length: 999 }, (_, index) => ["e", index.toString(16).padStart(64, "0")]);
    const [reached, beyond] = [eventOf({ content: "reached" }), eventOf({ content: "beyond" })];
    await putAll(store, [reached, beyond]);
    await put(store, deletionOf(1, 10, ...filler, ["e", reached.id], ["e", beyond.id]));
    assert.deepEqual([await store.has(reached.id), await store.has(beyond.id)], [false, true]);
  });

  check("a vanish request takes everything of its author up to its time, also what comes later", async (store) => {
    const mine = [10, 20, 30].map((at) => eventOf({ at }));
    const theirs = eventOf({ author: 2, at: 10 });
    await putAll(store, [...mine, theirs, deletionOf(1, 15, ["e", "0".repeat(64)])]);
    const vanish = eventOf({ kind: 62, at: 20, tags: [["relay", "ALL_RELAYS"]] });
    assert.equal(reasonOf(await put(store, vanish)), "stored");
    const left = [mine[2]?.id, vanish.id, theirs.id];
    assert.deepEqual(await ask(store, [{}]), left);
    assert.equal(reasonOf(await put(store, eventOf({ at: 19, content: "late" }))), "deleted");
    assert.equal(reasonOf(await put(store, vanish)), "duplicate");
    assert.equal(reasonOf(await put(store, eventOf({ at: 21, content: "new" }))), "stored");
  });

  check("an expired event is refused, no longer answered once it expires, and swept", async (store, clock) => {
    const lasting = eventOf({ tags: [["expiration", `${nowSeconds + 10}`]] });
    assert.equal(reasonOf(await put(store, eventOf({ tags: [["expiration", `${nowSeconds}`]] }))), "expired");
    await put(store, lasting);
    await put(store, eventOf({ content: "forever" }));
    assert.equal(await store.count([{}]), 2);
    clock.advance(10_000);
    assert.equal(await store.has(lasting.id), false);
    assert.equal(await store.event(lasting.id), undefined);
    assert.equal((await ask(store, [{}])).length, 1);
    assert.equal(await store.count([{}]), 1);
    assert.equal((await store.timedIds({}, 10))?.length, 1);
    assert.equal(store.stats.events, 2);
    assert.equal(await store.sweepExpired(nowSeconds + 10), 1);
    assert.equal(await store.sweepExpired(nowSeconds + 10), 0);
    assert.equal(store.stats.events, 1);
  });

  check("a removed event leaves no trace and may come again", async (store) => {
    const event = eventOf({});
    await put(store, event);
    assert.equal(await store.transact((tx) => tx.remove(event.id, "operator")), true);
    assert.equal(await store.transact((tx) => tx.remove(event.id, "operator")), false);
    assert.equal(await store.deletionOf(event), undefined);
    assert.equal(reasonOf(await put(store, event)), "stored");
    assert.deepEqual(await ask(store, [{}]), [event.id]);
  });
}

function transacting(check: Check): void {
  check("a transaction sees its own writes and others do not until it ends", async (store) => {
    const event = eventOf({ tags: [["t", "x"]] });
    const old = eventOf({ content: "old" });
    await put(store, old);
    await store.transact(async (tx) => {
      await tx.put(event);
      await tx.remove(old.id, "ban");
      tx.setRow("meta", "key", { a: 1 });
      assert.equal(await tx.has(event.id), true);
      assert.equal(await tx.has(old.id), false);
      assert.deepEqual(await tx.row("meta", "key"), { a: 1 });
      assert.equal(await tx.count([{ tags: new Map([["t", ["x"]]]) }]), 1);
      assert.equal(await store.has(event.id), false);
      assert.equal(await store.has(old.id), true);
      assert.deepEqual(await ask(store, [{}]), [old.id]);
      assert.equal(await store.row("meta", "key"), undefined);
    });
    assert.deepEqual(await ask(store, [{}]), [event.id]);
    assert.deepEqual(await store.row("meta", "key"), { a: 1 });
  });

  check("a work that throws loses all of its writes and only its own", async (store) => {
    const [first, poison, last] = ["a", "b", "c"].map((content) => eventOf({ content })) as [
      VerifiedEvent,
      VerifiedEvent,
      VerifiedEvent,
    ];
    const outcomes = await Promise.allSettled([
      put(store, first),
      store.transact(async (tx) => {
        await tx.put(poison);
        await tx.remove(first.id, "ban");
        tx.setRow("bans", "x", 1);
        throw new Error("poison");
      }),
      put(store, last),
    ]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["fulfilled", "rejected", "fulfilled"],
    );
    assert.deepEqual(new Set(await ask(store, [{}])), new Set([first.id, last.id]));
    assert.equal(await store.row("bans", "x"), undefined);
    assert.equal(store.position, 2);
  });

  check("works are serial: a thousand increments at once lose none", async (store) => {
    const works = Array.from({ length: 1_000 }, () =>
      store.transact(async (tx) => {
        const count = (await tx.row<number>("meta", "count")) ?? 0;
        await null;
        tx.setRow("meta", "count", count + 1);
        return count;
      }),
    );
    assert.deepEqual(
      await Promise.all(works),
      Array.from({ length: 1_000 }, (_, index) => index),
    );
    assert.equal(await store.row("meta", "count"), 1_000);
  });

  check("listeners hear of a commit before its work is answered, and readers see it by then", async (store) => {
    const event = eventOf({});
    const heard: string[] = [];
    const stop = store.onCommit(({ entries }) => {
      heard.push(...entries.map((entry) => `${entry.seq} ${entry.type}`), `at ${store.position}`);
    });
    await put(store, event).then(() => heard.push("answered"));
    assert.deepEqual(heard, ["1 stored", "at 1", "answered"]);
    stop();
    await put(store, eventOf({ content: "unheard" }));
    assert.equal(heard.length, 3);
  });

  check("a transaction cannot be used after its work", async (store) => {
    const tx = await store.transact(async (used) => used);
    await assert.rejects(tx.put(eventOf({})), /after its work/);
    assert.throws(() => tx.setRow("meta", "x", 1), /after its work/);
  });

  check(
    "too many works at once are refused as busy, and the store goes on",
    async (store) => {
      const events = Array.from({ length: 20 }, (_, index) => eventOf({ content: `${index}` }));
      const outcomes = await Promise.allSettled(events.map((event) => put(store, event)));
      const refused = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
      assert.equal(refused.length, 10);
      assert.ok(refused.every((error) => error instanceof StoreBusyError));
      assert.equal(store.stats.queuedWorks, 0);
      assert.equal(reasonOf(await put(store, events[19] as VerifiedEvent)), "stored");
    },
    { maxQueuedWorks: 10 },
  );

  check("closing finishes what is queued and refuses what comes later", async (store) => {
    const queued = put(store, eventOf({}));
    const closing = store.close();
    assert.equal(reasonOf(await queued), "stored");
    await closing;
    await assert.rejects(put(store, eventOf({})), StoreClosedError);
    await assert.rejects(store.has(eventOf({}).id), StoreClosedError);
  });

  check("compacting keeps everything and the store goes on", async (store) => {
    const events = Array.from({ length: 200 }, (_, index) => eventOf({ at: index, content: `${index}` }));
    await putAll(store, events);
    await store.transact(async (tx) => {
      for (const { id } of events.slice(0, 150)) await tx.remove(id, "operator");
      tx.setRow("lists", "x", [1]);
    });
    const [during] = await Promise.all([put(store, eventOf({ at: 999 })), store.compact()]);
    assert.equal(reasonOf(during), "stored");
    assert.equal(await store.count([{}]), 51);
    assert.deepEqual(await store.row("lists", "x"), [1]);
    assert.equal(reasonOf(await put(store, eventOf({ at: 1_000 }))), "stored");
    assert.equal((await ask(store, [{ limit: 2 }])).length, 2);
  });
}

function following(check: Check): void {
  check("a commit tells which rows it changed and that it was made here", async (store) => {
    const heard: unknown[] = [];
    await store.transact(async (tx) => tx.setRow("lists", "old", 1));
    store.onCommit(({ entries, changedKeys, passing, isForeign }) =>
      heard.push([entries.length, [...changedKeys("lists")], [...changedKeys("bans")], passing.length, isForeign]),
    );
    await store.transact(async (tx) => {
      tx.setRow("lists", "new", 1);
      tx.deleteRow("lists", "old");
      tx.deleteRow("lists", "never");
    });
    assert.deepEqual(heard, [[0, ["new", "old"], [], 0, false]]);
    assert.equal(store.position, 0);
    await store.transact(async () => undefined);
    assert.equal(heard.length, 1);
  });

  check("an ephemeral event is handed on without a number and not kept", async (store) => {
    const event = eventOf({ kind: 20_001 });
    const heard: unknown[] = [];
    store.onCommit(({ entries, passing }) => heard.push([entries, passing.map(({ raw }) => raw)]));
    const pass = store.transact(async (tx) => tx.pass(event)).then(() => heard.push("answered"));
    await pass;
    assert.deepEqual(heard, [[[], [event.raw]], "answered"]);
    assert.equal(store.position, 0);
    assert.equal(await store.has(event.id), false);
    await assert.rejects(
      store.transact(async (tx) => {
        tx.pass(event);
        throw new Error("taken back");
      }),
    );
    assert.equal(heard.length, 2);
  });

  check("a commit of this store is no other machine's", async (store) => {
    const foreign: string[] = [];
    const stop = store.onForeignCommit(async ({ isForeign }) => void foreign.push(`${isForeign}`));
    await put(store, eventOf({}));
    assert.ok(foreign.every((text) => text === "true"));
    const heard: boolean[] = [];
    store.onCommit(({ isForeign }) => heard.push(isForeign));
    stop();
    await put(store, eventOf({ content: "unfollowed" }));
    assert.deepEqual(heard, [false]);
  });

  check("a local work writes rows of this machine and nothing else", async (store) => {
    const local = { isLocal: true } as const;
    const written = await store.transact(async (tx) => {
      tx.setRow("aligned", "x", 1);
      tx.setRow("meta", "housekeeping:x", 1);
      return tx.row("aligned", "x");
    }, local);
    assert.equal(written, 1);
    for (const work of [
      async (tx: Transaction) => tx.setRow("meta", "x", 1),
      async (tx: Transaction) => tx.deleteRow("bans", "x"),
      async (tx: Transaction) => tx.pass(eventOf({})),
      async (tx: Transaction) => void (await tx.put(eventOf({}))),
    ]) {
      await assert.rejects(store.transact(work, local), /a local work cannot write/);
    }
    assert.equal(store.position, 0);
  });

  check("a work that may wait is done with the next one, and when the store closes at the latest", async (store) => {
    const done: string[] = [];
    const waits = (name: string): Promise<unknown> =>
      store.transact(async (tx) => tx.setRow("decisions", name, 1), { mayWait: true }).then(() => done.push(name));
    const first = waits("first");
    await put(store, eventOf({}));
    await first;
    assert.equal(await store.row("decisions", "first"), 1);
    const last = waits("last");
    await store.close();
    await last;
    assert.deepEqual(done, ["first", "last"]);
  });

  check("what was answered is seen after looking for what is new", async (store) => {
    const event = eventOf({});
    await put(store, event);
    await store.upToDate();
    assert.equal(await store.has(event.id), true);
  });
}

function tabling(check: Check): void {
  const keys = async (rows: AsyncIterable<readonly [string, unknown]>): Promise<string[]> => {
    const found: string[] = [];
    for await (const [key] of rows) found.push(key);
    return found;
  };

  check("rows are found by key and listed by the order of their bytes", async (store) => {
    await store.transact(async (tx) => {
      for (const key of ["b", "a", "ab", "\u{1f600}", "\uffee", "ä", "c"]) tx.setRow("journal", key, { key });
      tx.setRow("audit", "a", "another table");
    });
    assert.deepEqual(await keys(store.rows("journal")), ["a", "ab", "b", "c", "ä", "\uffee", "\u{1f600}"]);
    assert.deepEqual(await keys(store.rows("journal", { prefix: "a" })), ["a", "ab"]);
    assert.deepEqual(await keys(store.rows("journal", { after: "ab", limit: 2 })), ["b", "c"]);
    assert.deepEqual(await keys(store.rows("journal", { reverse: true, limit: 2 })), ["\u{1f600}", "\uffee"]);
    assert.deepEqual(await keys(store.rows("journal", { reverse: true, after: "b" })), ["ab", "a"]);
    assert.deepEqual(await keys(store.rows("journal", { prefix: "a", reverse: true })), ["ab", "a"]);
    assert.deepEqual(await keys(store.rows("journal", { prefix: "a", after: "a" })), ["ab"]);
    assert.deepEqual(await store.row("journal", "ä"), { key: "ä" });
    await store.transact(async (tx) => tx.deleteRow("journal", "ä"));
    assert.equal(await store.row("journal", "ä"), undefined);
  });

  check("a transaction lists committed rows and its own together", async (store) => {
    const name = (index: number): string => index.toString().padStart(4, "0");
    await store.transact(async (tx) => {
      for (let index = 0; index < 1_000; index += 2) tx.setRow("lists", name(index), index);
    });
    await store.transact(async (tx) => {
      for (let index = 1; index < 1_000; index += 2) tx.setRow("lists", name(index), index);
      tx.deleteRow("lists", name(500));
      const expected = Array.from({ length: 1_000 }, (_, index) => name(index)).filter((key) => key !== name(500));
      assert.deepEqual(await keys(tx.rows("lists")), expected);
      assert.deepEqual(await keys(tx.rows("lists", { reverse: true })), expected.toReversed());
      assert.deepEqual(await keys(tx.rows("lists", { after: name(498), limit: 2 })), [name(499), name(501)]);
    });
  });

  check("keys that are too long or empty are refused without harm", async (store) => {
    const long = "k".repeat(1_000);
    await store.transact(async (tx) => tx.setRow("meta", long, 1));
    assert.equal(await store.row("meta", long), 1);
    for (const key of [`${long}k`, ""]) {
      await assert.rejects(
        store.transact(async (tx) => tx.setRow("meta", key, 1)),
        RangeError,
      );
    }
    await assert.rejects(
      store.transact(async (tx) => tx.setRow("meta", "x", undefined)),
      TypeError,
    );
  });
}

function feeding(check: Check): void {
  check("the feed gives history, then what happens, without gap or repetition", async (store) => {
    const events = Array.from({ length: 1_200 }, (_, index) => eventOf({ content: `${index}` }));
    await putAll(store, events.slice(0, 700));
    const controller = new AbortController();
    const pages = store.feed(0, controller.signal)[Symbol.asyncIterator]();
    const seqs: number[] = [];
    const rest = putAll(store, events.slice(700));
    while (seqs.length < 1_200) for (const entry of await nextPage(pages)) seqs.push(entry.seq);
    await rest;
    assert.deepEqual(
      seqs,
      Array.from({ length: 1_200 }, (_, index) => index + 1),
    );
    const waiting = pages.next();
    controller.abort();
    assert.equal((await waiting).done, true);
  });

  check("the feed skips what is gone, tells of removals, and can begin anywhere", async (store) => {
    const first = eventOf({ kind: 30_617, at: 1, tags: [["d", "x"]] });
    const second = eventOf({ kind: 30_617, at: 2, tags: [["d", "x"]] });
    await put(store, first);
    await put(store, second);
    const controller = new AbortController();
    const pages = store.feed(0, controller.signal)[Symbol.asyncIterator]();
    const { id, pubkey, kind } = first;
    const address = `30617:${pubkey}:x`;
    const removed = { seq: 2, type: "removed", id, pubkey, kind, address, cause: "replaced" };
    const page = await nextPage(pages);
    assert.deepEqual(page[0], removed);
    assert.deepEqual(
      page.slice(1).map((entry) => [entry.seq, entry.type]),
      [[3, "stored"]],
    );
    const later = store.feed(2, controller.signal)[Symbol.asyncIterator]();
    assert.deepEqual(
      (await nextPage(later)).map(({ seq }) => seq),
      [3],
    );
    controller.abort();
  });

  check("an event that came and went in one commit is only told as removed", async (store) => {
    const event = eventOf({});
    const heard: FeedEntry[] = [];
    store.onCommit(({ entries }) => heard.push(...entries));
    await store.transact(async (tx) => {
      await tx.put(event);
      await tx.remove(event.id, "unhosted");
    });
    assert.deepEqual(
      heard.map((entry) => [entry.seq, entry.type]),
      [[2, "removed"]],
    );
    const pages = store.feed(0, new AbortController().signal)[Symbol.asyncIterator]();
    assert.deepEqual(
      (await nextPage(pages)).map(({ seq }) => seq),
      [2],
    );
    assert.equal(await store.has(event.id), false);
  });

  check("a feed ends when the store closes", async (store) => {
    const waiting = store.feed(0, new AbortController().signal)[Symbol.asyncIterator]().next();
    await store.close();
    assert.equal((await waiting).done, true);
  });
}
