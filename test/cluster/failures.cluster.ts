// What must happen when a part of a cluster fails, as far as the log is concerned: real processes, a real PostgreSQL, real
// sockets. Each test has a cluster of its own in a schema of its own.

import assert from "node:assert/strict";
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { type Clock, systemClock } from "../../src/base/clock.js";
import { ClusterRefusal } from "../../src/cluster/check-database.js";
import type { VerifiedEvent } from "../../src/nostr/event.js";
import { DirectoryPackStore } from "../../src/packs/directory.js";
import { ledStore } from "../../src/store/led-store.js";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import { type Commit, SharedLogError, type Store, type Transaction } from "../../src/store/port.js";
import type { ClusterStore } from "../../src/store/postgres/open.js";
import { eventOf } from "../../src/store/testing/events.js";
import { untilSo } from "../harness/server.js";
import { NodeProcess } from "./node-process.js";
import { TestPostgres } from "./postgres.js";
import { type NodeOptions, newFolders, newSchema, openNode } from "./three-nodes.js";
import { Wire } from "./wire.js";

let postgres: TestPostgres;
before(async () => {
  postgres = await TestPostgres.start();
});
after(() => postgres.dispose());

const closing: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Folders and a schema for one test; machines and folders go with it. */
function cluster(): {
  readonly schema: string;
  open(name: string, options?: Partial<NodeOptions>): Promise<ClusterStore>;
  folder(name: string): string;
} {
  const folders = newFolders();
  const schema = newSchema();
  closing.push(() => folders.dispose());
  return {
    schema,
    folder: (name) => folders.folder(name),
    async open(name, options = {}) {
      const node = await openNode(postgres, { schema, name, folder: folders.folder(name), ...options });
      closing.push(() => node.close());
      return node;
    },
  };
}

const put = (store: Store, event: VerifiedEvent) => store.transact((tx) => tx.put(event));
const troubleOf = (error: unknown): string => (error instanceof SharedLogError ? error.trouble : String(error));
const troubleIn = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "none",
    (error: unknown) => troubleOf(error),
  );

describe("several machines follow each other", () => {
  test("what one machine acknowledged another serves, with its rows, its ephemeral events and its caches", async () => {
    const { open } = cluster();
    const [a, b] = await Promise.all([open("a"), open("b")]);
    const heard: string[] = [];
    b.store.onCommit(({ entries, changedKeys, passing, isForeign }: Commit) =>
      heard.push(`${isForeign} ${entries.length} ${[...changedKeys("bans")]} ${passing.length}`),
    );
    const followed: string[] = [];
    b.store.onForeignCommit(async ({ isForeign }) => {
      await new Promise((resolve) => setImmediate(resolve));
      if (isForeign) followed.push("followed");
    });
    await a.store.transact(async (tx) => {
      await tx.put(eventOf({ content: "from a" }));
      tx.setRow("bans", "x", 1);
      tx.pass(eventOf({ kind: 20_001 }));
      tx.setRow("aligned", "only here", 1);
    });
    const seen = await b.store.transact(async (tx) => {
      followed.push("work");
      return [await tx.count([{}]), await tx.row("bans", "x"), await tx.row("aligned", "only here")];
    });
    assert.deepEqual(seen, [1, 1, undefined]);
    assert.deepEqual(heard, ["true 1 x 1"]);
    assert.deepEqual(followed, ["followed", "work"]);
    assert.equal(await a.store.row("aligned", "only here"), 1);
  });

  test("an event that was deleted on one machine is refused on another that had found no deletion of its author", async () => {
    const { open } = cluster();
    const [a, b] = await Promise.all([open("a"), open("b")]);
    const [first, second] = [eventOf({ content: "first" }), eventOf({ content: "second" })];
    await put(b.store, first);
    await put(a.store, eventOf({ kind: 5, tags: [["e", second.id]] }));
    assert.deepEqual(await put(b.store, second), { stored: false, reason: "deleted" });
  });

  test("without hints the poll finds what is new, and a look finds it at once", async () => {
    const { open } = cluster();
    const [a, b] = await Promise.all([open("a"), open("b")]);
    const event = eventOf({});
    const live = new Promise<void>((resolve) => b.store.onCommit(() => resolve()));
    await put(a.store, event);
    await live;
    const next = eventOf({ content: "next" });
    await put(a.store, next);
    await b.store.upToDate();
    assert.equal(await b.store.has(next.id), true);
    assert.equal(b.facts.staleAnswers, 0);
  });
});

describe("a machine that comes late", () => {
  test("it follows a history of versions, deletions, removals and rows in a few transactions, to the same view and feed", async () => {
    const { open } = cluster();
    const a = await open("a");
    for (let at = 1; at <= 40; at++) {
      await a.store.transact(async (tx) => {
        await tx.put(eventOf({ kind: 30_617, at, tags: [["d", `${at % 3}`]] }));
        const passing = await tx.put(eventOf({ author: 2, content: `${at}` }));
        if (at % 4 === 0 && passing.stored) await tx.remove(eventOf({ author: 2, content: `${at}` }).id, "operator");
        tx.setRow("lists", `${at % 5}`, at);
        if (at % 5 === 0) tx.deleteRow("lists", "1");
      });
    }
    await put(
      a.store,
      eventOf({ author: 2, kind: 5, at: 2_000, tags: [["e", eventOf({ author: 2, content: "1" }).id]] }),
    );
    await put(a.store, eventOf({ kind: 62, at: 20, tags: [["relay", "ALL_RELAYS"]] }));
    const commits: number[] = [];
    const viewOf = async ({ store }: ClusterStore): Promise<string[]> => {
      const found: string[] = [`${store.position} ${store.stats.events}`];
      for await (const page of store.query([{}])) for (const { seq, id } of page) found.push(`${seq} ${id}`);
      for await (const [key, value] of store.rows("lists")) found.push(`${key} ${value}`);
      const controller = new AbortController();
      for await (const page of store.feed(0, controller.signal)) {
        for (const entry of page) found.push(`${entry.seq} ${entry.type}`);
        if ((page.at(-1)?.seq ?? 0) >= store.position) break;
      }
      controller.abort();
      return found;
    };
    const late = await open("late");
    late.store.onCommit(({ entries }) => commits.push(entries.length));
    assert.deepEqual(await viewOf(late), await viewOf(a));
    await Promise.all(Array.from({ length: 100 }, (_, at) => put(a.store, eventOf({ author: 3, at }))));
    await late.store.upToDate();
    assert.deepEqual(await viewOf(late), await viewOf(a));
    assert.ok(commits.length > 0 && commits.length < 20, `${commits}`);
  });

  test("a work that is larger than a change may be is refused, and those it was handed over with are stored", async () => {
    const { open } = cluster();
    const a = await open("a");
    const large = (tx: { setRow(table: "meta", key: string, value: string): void }): void =>
      tx.setRow("meta", "large", "x".repeat(9 * 2 ** 20));
    const outcomes = await Promise.all([
      troubleIn(put(a.store, eventOf({ content: "before" }))),
      troubleIn(a.store.transact(async (tx) => large(tx))),
      troubleIn(put(a.store, eventOf({ content: "after" }))),
    ]);
    assert.deepEqual(outcomes, ["none", "too-large", "none"]);
    assert.equal(await a.store.row("meta", "large"), undefined);
    assert.equal(a.store.stats.events, 2);
  });
});

describe("failures of the database", () => {
  test("PostgreSQL gone: reads go on, writes are refused with a sentence, and afterwards everything works by itself", async () => {
    const { open } = cluster();
    const [a, b] = await Promise.all([open("a"), open("b")]);
    const event = eventOf({});
    await put(a.store, event);
    await b.store.upToDate();
    await postgres.stop();
    const refused = await put(a.store, eventOf({ content: "refused" })).catch((error: unknown) => error);
    assert.ok(refused instanceof SharedLogError && refused.trouble === "unreachable");
    assert.match(refused.message, /cannot be reached: try again in a minute/);
    for (const { store } of [a, b]) {
      await store.upToDate();
      assert.equal(await store.has(event.id), true);
    }
    assert.ok(b.facts.staleAnswers > 0);
    assert.equal(await a.store.isWritable(), true, "a database that is away for a moment sends no reader elsewhere");
    await a.store.transact(async (tx) => tx.setRow("aligned", "x", 1), { isLocal: true });
    await postgres.run();
    const again = eventOf({ content: "again" });
    await untilSo("a takes events again", () =>
      put(a.store, again).then(
        () => true,
        () => false,
      ),
    );
    const later = eventOf({ content: "later" });
    await put(b.store, later);
    await untilSo("a follows", () => a.store.has(later.id));
  });

  test("a machine that no request comes to is ready again by itself, after a slow look and after a minute without PostgreSQL", async () => {
    const { open } = cluster();
    const wire = await Wire.before(postgres.port);
    closing.push(() => wire.close());
    let aheadMs = 0;
    const clock: Clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
    const a = await open("a", { url: wire.url(), clock });
    wire.cut();
    await a.store.upToDate();
    assert.ok(a.facts.staleAnswers > 0);
    aheadMs += 61_000;
    assert.equal(await a.store.isWritable(), false);
    wire.isCut = false;
    await untilSo("it is ready", () => a.store.isWritable());
    aheadMs += 61_000;
    await untilSo("it is ready a minute later too", () => a.store.isWritable());
  });

  test("a COMMIT whose answer is lost is known by its token, and one that never arrived was not stored", async () => {
    const { open } = cluster();
    const wire = await Wire.before(postgres.port);
    closing.push(() => wire.close());
    const a = await open("a", { url: wire.url() });
    const b = await open("b");
    const [kept, lost, retried] = ["kept", "lost", "retried"].map((content) => eventOf({ content })) as [
      VerifiedEvent,
      VerifiedEvent,
      VerifiedEvent,
    ];
    wire.nextCommit = "arrives, its answer is lost";
    assert.equal((await put(a.store, kept)).stored, true);
    assert.equal(a.facts.unknownCommits, 1);
    wire.nextCommit = "is lost";
    assert.equal(await troubleIn(put(a.store, lost)), "unreachable");
    assert.equal((await put(a.store, retried)).stored, true);
    await b.store.upToDate();
    assert.deepEqual(await Promise.all([kept, lost, retried].map(({ id }) => b.store.has(id))), [true, false, true]);
    assert.deepEqual(await Promise.all([kept, lost, retried].map(({ id }) => a.store.has(id))), [true, false, true]);
  });

  test("an outcome that stays unknown is answered as unknown, and is followed when the database is back", async () => {
    const { open } = cluster();
    const wire = await Wire.before(postgres.port);
    closing.push(() => wire.close());
    const a = await open("a", { url: wire.url(), clock: faster(10) });
    const event = eventOf({});
    wire.nextCommit = "arrives, its answer is lost";
    wire.cutsWithCommit = true;
    assert.equal(await troubleIn(put(a.store, event)), "unknown");
    assert.equal(await a.store.has(event.id), false);
    wire.isCut = false;
    await untilSo("the event is here", () => a.store.has(event.id));
    assert.equal((await put(a.store, event)).stored, false);
  });

  test("failover to a database that lacks the tail: the machine stops serving and builds its view anew", async () => {
    const { open, schema, folder } = cluster();
    const faults: string[] = [];
    const fault = (error: Error): void => void faults.push(troubleOf(error));
    const a = await open("a", { fault });
    await put(a.store, eventOf({ content: "kept" }));
    await postgres.sql(`CREATE TABLE ${schema}.replica AS SELECT * FROM ${schema}.change`);
    const lost = [eventOf({ content: "lost" }), eventOf({ content: "lost too" })];
    for (const event of lost) await put(a.store, event);
    // The replica takes over, and grows: another machine writes what gets the same numbers.
    await postgres.sql(`BEGIN; LOCK ${schema}.change; TRUNCATE ${schema}.change;
      INSERT INTO ${schema}.change SELECT * FROM ${schema}.replica; COMMIT`);
    await untilSo("it stopped", () => faults.length > 0);
    assert.deepEqual(faults, ["diverged"]);
    const b = await open("b");
    const grown = ["one", "two", "three"].map((content) => eventOf({ content }));
    for (const event of grown) await put(b.store, event);
    await assert.rejects(a.store.has(lost[0]!.id), /built anew/);
    assert.equal(await troubleIn(put(a.store, eventOf({ content: "refused" }))), "diverged");
    await a.close();
    const again = await open("a", { folder: folder("a") });
    assert.deepEqual(await Promise.all(lost.map(({ id }) => again.store.has(id))), [false, false]);
    assert.deepEqual(await Promise.all(grown.map(({ id }) => again.store.has(id))), [true, true, true]);
    // A machine that was away while the numbers were given again meets another token at its own.
    await again.close();
    await postgres.sql(
      `UPDATE ${schema}.change SET token = gen_random_uuid() WHERE n = (SELECT max(n) FROM ${schema}.change)`,
    );
    const told: string[] = [];
    const third = await open("a", { folder: folder("a"), tell: (sentence) => told.push(sentence) });
    assert.match(told.join("\n"), /does not fit the shared log and is built anew/);
    assert.deepEqual(await Promise.all(grown.map(({ id }) => third.store.has(id))), [true, true, true]);
  });
});

describe("failures of a machine", () => {
  test("a disk that is full while a change is applied: that machine is not ready, the others go on, and it follows by itself", async () => {
    const { open } = cluster();
    const [a, b] = await Promise.all([open("a"), open("b")]);
    const { backend } = a.store;
    const commit = backend.commit.bind(backend);
    backend.commit = () => Promise.reject(Object.assign(new Error("no space left on device"), { code: "ENOSPC" }));
    const own = eventOf({ content: "own" });
    const refused = await put(a.store, own).catch((error: unknown) => error);
    assert.equal((refused as SharedLogError).trouble, "behind");
    assert.equal(await a.store.isWritable(), false);
    assert.equal(await a.store.has(own.id), false);
    const foreign = eventOf({ content: "foreign" });
    assert.equal((await put(b.store, foreign)).stored, true);
    assert.equal(await b.store.has(own.id), true);
    backend.commit = commit;
    await untilSo("a follows", async () => (await a.store.has(own.id)) && (await a.store.has(foreign.id)));
    await untilSo("a is ready", () => a.store.isWritable());
    assert.equal((await put(a.store, own)).stored, false);
  });

  test("a machine that is paused while it holds the lock does not stop the others, and its work is refused", async () => {
    const { open, schema, folder } = cluster();
    const b = await open("b");
    const paused = await NodeProcess.start({ url: postgres.url(), schema, folder: folder("paused"), name: "paused" });
    closing.push(() => paused.kill());
    paused.arm("locked", "SIGSTOP");
    const writing = paused.write(1);
    await untilSo("the lock is held", async () => {
      const [row] = await postgres.sql(
        "SELECT count(*)::int AS held FROM pg_stat_activity WHERE state = 'idle in transaction' AND application_name LIKE 'holdfast log%'",
      );
      return row?.held === 1;
    });
    const beganMs = performance.now();
    assert.equal((await put(b.store, eventOf({}))).stored, true);
    assert.ok(performance.now() - beganMs < 10_000);
    paused.signal("SIGCONT");
    await writing;
    assert.deepEqual(
      paused.refused.map(({ trouble }) => trouble),
      ["unreachable"],
    );
    await paused.write(1);
    assert.equal(paused.acknowledged.length, 1);
  });

  test("a leader that is paused is followed by another, and what it does when it wakes is refused", async () => {
    const { open, schema, folder } = cluster();
    const leader = await NodeProcess.start({ url: postgres.url(), schema, folder: folder("leader"), name: "leader" });
    closing.push(() => leader.kill());
    const { epoch } = await leader.facts();
    assert.equal(epoch, 1);
    const led: number[] = [];
    const b = await open("b", { leads: (at) => void led.push(at) });
    assert.equal(b.epoch, undefined);
    leader.signal("SIGSTOP");
    await untilSo("another leads", () => led.length > 0, 15_000);
    assert.deepEqual([b.epoch, led], [2, [2]]);
    const [stale, now] = [ledStore(b.store, 1), ledStore(b.store, 2)];
    const write = async (tx: Transaction): Promise<void> => tx.setRow("meta", "led", 1);
    assert.deepEqual(
      [
        await troubleIn(stale.transact(write)),
        await troubleIn(stale.sweepExpired(1)),
        await troubleIn(now.transact(write)),
      ],
      ["not-leader", "not-leader", "none"],
    );
    assert.equal(await now.row("meta", "led"), 1);
    leader.signal("SIGCONT");
    await leader.write(1, 1);
    assert.deepEqual(
      leader.refused.map(({ trouble }) => trouble),
      ["not-leader"],
    );
    await untilSo("it knows", async () => (await leader.facts()).epoch === undefined);
    await b.close();
    await untilSo("it leads again", async () => (await leader.facts()).epoch === 3, 15_000);
  });

  test("a view that is deleted while the log was trimmed is built from a snapshot, without rows of the other machine", async () => {
    const { open, folder } = cluster();
    mkdirSync(folder("packs"), { recursive: true });
    const packs = new DirectoryPackStore(folder("packs"));
    const [a, b] = await Promise.all([open("a", { packs }), open("b", { packs })]);
    const events = Array.from({ length: 30 }, (_, index) => eventOf({ content: `${index}` }));
    for (const event of events) await put(a.store, event);
    await a.store.transact(async (tx) => {
      await tx.remove(events[0]!.id, "operator");
      tx.setRow("aligned", "x", 1);
      tx.setRow("lists", "x", 1);
    });
    await b.close();
    // How much of the log goes at once depends on when the other machine last told how far it is.
    const first = await a.trim();
    const after = eventOf({ content: "after the snapshot" });
    await put(a.store, after);
    rmSync(folder("b"), { recursive: true });
    const trimmed = await a.trim({ maxLogBytes: 1, snapshotEveryMs: Number.POSITIVE_INFINITY });
    assert.ok(first + trimmed >= 30, `${first} + ${trimmed}`);
    const told: string[] = [];
    const again = await open("b", { packs, tell: (sentence) => told.push(sentence) });
    assert.match(told.join("\n"), /begins with the snapshot at change/);
    assert.deepEqual([again.store.position, again.store.stats.events], [a.store.position, a.store.stats.events]);
    assert.deepEqual([await again.store.row("lists", "x"), await again.store.row("aligned", "x")], [1, undefined]);
    assert.equal(await again.store.has(after.id), true);
    await put(again.store, eventOf({ content: "it writes too" }));
    await assert.rejects(
      open("c"),
      (error: unknown) => error instanceof ClusterRefusal && error.code === "no-snapshot",
    );
  });

  for (const [title, grown, limits] of [
    ["that is shorter than a lost snapshot", 5, { maxLogBytes: 1, snapshotEveryMs: 0 }],
    ["that has outgrown a lost snapshot", 20, {}],
  ] as const) {
    test(`after a failover to a history ${title}, a new machine still finds a snapshot that fits the trimmed log`, async () => {
      const { open, schema, folder } = cluster();
      mkdirSync(folder("packs"), { recursive: true });
      const packs = new DirectoryPackStore(folder("packs"));
      const a = await open("a", { packs });
      const kept = eventOf({ content: "kept" });
      await put(a.store, kept);
      await a.trim();
      await postgres.sql(`CREATE TABLE ${schema}.replica AS SELECT * FROM ${schema}.change`);
      for (let at = 0; at < 10; at++) await put(a.store, eventOf({ content: "lost", at }));
      await a.trim({ snapshotEveryMs: 0 });
      await a.close();
      // The replica takes over; it never got what the second snapshot has.
      await postgres.sql(`BEGIN; TRUNCATE ${schema}.change; DELETE FROM ${schema}.node;
        INSERT INTO ${schema}.change SELECT * FROM ${schema}.replica; COMMIT`);
      rmSync(folder("a"), { recursive: true });
      const b = await open("b", { packs });
      for (let at = 0; at < grown; at++) await put(b.store, eventOf({ content: "grown", at }));
      await untilSo("b has told how far it is", async () => {
        const rows = await postgres.sql(`SELECT 1 FROM ${schema}.node WHERE applied = ${b.facts.newest}`);
        return rows.length === 1;
      });
      for (let times = 0; times < 3; times++) await b.trim(limits);
      await b.close();
      rmSync(folder("b"), { recursive: true });
      const again = await open("b", { packs });
      assert.equal(await again.store.has(kept.id), true);
      assert.equal(again.store.stats.events, 1 + grown);
    });
  }

  test("a machine whose clock is wrong by an hour changes nothing and is told of", async () => {
    const { open } = cluster();
    const warned: string[] = [];
    const wrong: Clock = { ...systemClock, nowMs: () => Date.now() + 3_600_000 };
    const a = await open("a", { clock: wrong, warn: (sentence) => warned.push(sentence) });
    assert.match(warned.join(), /clock is wrong by 3600 seconds/);
    assert.ok(Math.abs(a.clock.nowMs() - Date.now()) < 2_000);
    const soon = eventOf({ tags: [["expiration", `${Math.floor(Date.now() / 1_000) + 600}`]] });
    assert.equal((await put(a.store, soon)).stored, true);
    assert.equal(await a.store.has(soon.id), true);
  });
});

describe("refusals at start", () => {
  const refusalOf = (opening: Promise<unknown>): Promise<string> =>
    opening.then(
      () => "none",
      (error: unknown) => (error instanceof ClusterRefusal ? error.code : String(error)),
    );

  test("what cannot work is refused by name", async () => {
    const { open, folder, schema } = cluster();
    assert.equal(await refusalOf(open("a", { url: "mysql://127.0.0.1/x" })), "wrong-url");
    assert.equal(await refusalOf(open("a", { url: "postgres://holdfast@127.0.0.1:1/holdfast" })), "unreachable");
    assert.equal(await refusalOf(open("a", { url: postgres.url("nothing") })), "no-database");
    assert.equal(await refusalOf(open("a", { url: postgres.url("holdfast", "nobody") })), "not-let-in");
    assert.equal(await refusalOf(open("a", { url: `${postgres.url()}?sslmode=require` })), "tls");
    await postgres.sql("CREATE ROLE poor LOGIN");
    assert.equal(await refusalOf(open("a", { url: postgres.url("holdfast", "poor") })), "no-rights");
    const a = await open("a");
    await put(a.store, eventOf({}));
    assert.equal(await refusalOf(open("a", { url: postgres.url("holdfast", "poor") })), "no-rights");
    assert.equal(await refusalOf(open("b", { serverKey: "cd".repeat(32) })), "other-key");
    cpSync(join(folder("a"), "node.json"), join(folder("copied"), "node.json"), { recursive: true });
    assert.equal(await refusalOf(open("copied", { clock: faster(20) })), "two-nodes");
    assert.equal(await refusalOf(open("namesake", { name: "a", clock: faster(20) })), "same-name");
    const other = cluster();
    assert.equal(await refusalOf(other.open("z", { folder: folder("a") })), "other-cluster");
    const single = await openLmdbStore(folder("single"));
    await put(single, eventOf({}));
    await single.close();
    assert.equal(await refusalOf(open("single")), "own-history");
    await postgres.sql(`UPDATE ${schema}.format SET format = 99`);
    assert.equal(await refusalOf(open("b")), "newer-format");
  });

  test("a pack store that is not there, not shared, or another cluster's is refused by name", async () => {
    const { open, folder } = cluster();
    const packsIn = (name: string): DirectoryPackStore => {
      mkdirSync(folder(name), { recursive: true });
      return new DirectoryPackStore(folder(name));
    };
    const nowhere = new DirectoryPackStore(folder("nowhere"));
    assert.equal(await refusalOf(open("a", { packs: nowhere })), "pack-store");
    const a = await open("a", { packs: packsIn("shared") });
    assert.equal(await refusalOf(open("b", { packs: packsIn("own") })), "pack-store-not-shared");
    assert.equal(await refusalOf(open("b", { packs: packsIn("shared") })), "none");
    const other = cluster();
    assert.equal(await refusalOf(other.open("z", { packs: packsIn("shared") })), "pack-store-of-another");
    await a.close();
    rmSync(folder("shared"), { recursive: true });
    assert.equal(await refusalOf(open("a", { packs: packsIn("shared") })), "pack-store-not-shared");
  });

  test("a machine that learns of a newer format while it starts is refused and keeps no session", async () => {
    const { open, folder, schema } = cluster();
    mkdirSync(folder("shared"), { recursive: true });
    const packs = new DirectoryPackStore(folder("shared"));
    const mark = packs.mark.bind(packs);
    // Behind the first look at the format, before the machine says that it lives.
    packs.mark = async () => {
      await postgres.sql(`UPDATE ${schema}.format SET format = 99`);
      return mark();
    };
    assert.equal(await refusalOf(open("late", { packs })), "newer-format");
    const [row] = await postgres.sql(`SELECT node FROM ${schema}.node WHERE name = 'late'`);
    const session = `holdfast life ${String(row?.node).slice(0, 8)}`;
    // Sooner than the database ends a session that says nothing.
    await untilSo(
      "the session is over",
      async () =>
        (await postgres.sql(`SELECT 1 FROM pg_stat_activity WHERE application_name = '${session}'`)).length === 0,
      4_000,
    );
  });

  test("a database with fsync=off is refused", async () => {
    const unsafe = await TestPostgres.start(["fsync=off"]);
    try {
      const { open } = cluster();
      assert.equal(await refusalOf(open("a", { url: unsafe.url() })), "fsync-off");
    } finally {
      await unsafe.dispose();
    }
  });

  test("PgBouncer in transaction mode is refused, in session mode it is not noticed", async (context) => {
    for (const mode of ["transaction", "session"] as const) {
      const bouncer = await postgres.bouncer(mode);
      if (!bouncer) return context.skip("PgBouncer is not installed");
      closing.push(() => bouncer.dispose());
      const { open } = cluster();
      assert.equal(await refusalOf(open("a", { url: bouncer.url() })), mode === "transaction" ? "pooler" : "none");
    }
  });

  test("a replica is refused", async () => {
    const replica = await postgres.replica();
    try {
      const { open } = cluster();
      assert.equal(await refusalOf(open("a", { url: replica.url() })), "replica");
    } finally {
      await replica.dispose();
    }
  });
});

/** A machine whose time runs faster: what waits for seconds waits for moments. */
function faster(times: number): Clock {
  return {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now() * times,
    after: (delayMs, callback) => systemClock.after(delayMs / times, callback),
  };
}
