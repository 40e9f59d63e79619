import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import {
  addressOfRepository,
  announcement,
  elsewhere,
  keyOf,
  maintainers,
  makeEvent,
  nameOf,
  oid,
  state,
} from "../admission/testing/world.js";
import { refsVersion } from "../catalogue/refs.js";
import { countRemovedBy, keepRemoved } from "../catalogue/removed-by-ban.js";
import { type CatalogueRow, catalogueRow } from "../catalogue/repositories.js";
import {
  type EntryKind,
  type EntrySource,
  putWaiting,
  removeWaiting,
  type WaitingEntry,
  type WaitingPhase,
  waitingAnnouncement,
  waitingEntry,
} from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import type { EventId, Tag } from "../nostr/event.js";
import type { Oid, RefName } from "../nostr/nip34.js";
import type { Expiry } from "../purgatory/context.js";
import { countEntries } from "../purgatory/metrics.js";
import { clockJumpSeconds, expiryOf, isGraceOver, movedBy, takenBefore } from "./sweep.js";
import { Room } from "./testing/room.js";

const minutes = 60;
const hours = 3_600;
const main = "refs/heads/main" as RefName;

async function open(context: TestContext): Promise<Room> {
  const room = await Room.open();
  context.after(() => room.close());
  return room;
}

test("what a ban removed is kept for the grace period of un-hosted repositories, and no longer", async (context) => {
  const room = await open(context);
  const ban = { table: "bans", key: "author:x" } as const;
  const event = announcement("alice", "banned", [], room.now);
  await room.store.transact(async (tx) => keepRemoved(tx, ban, [event], room.now));
  const graceSeconds = room.live.current.unhostGraceDays * 86_400;
  await room.advance(graceSeconds - 1);
  assert.equal(await countRemovedBy(room.store, ban), 1);
  await room.advance(2 * hours);
  assert.equal(await countRemovedBy(room.store, ban), 0);
});

test("what the public compliance tool announced and never pushed is gone after two hours, others' is soft for a day", async (context) => {
  const room = await open(context);
  await room.send(announcement("tool", "checked", [["t", "grasp-audit-test-event"]], room.now));
  await room.send(announcement("alice", "kept", [], room.now));
  const phases = async (): Promise<(string | undefined)[]> => [
    (await waitingAnnouncement(room.store, nameOf("tool", "checked")))?.phase,
    (await waitingAnnouncement(room.store, nameOf("alice", "kept")))?.phase,
  ];
  await room.advance(31 * minutes);
  assert.deepEqual(await phases(), ["soft", "soft"]);
  await room.advance(1 * hours);
  assert.deepEqual(await phases(), ["soft", "soft"]);
  await room.advance(30 * minutes);
  assert.deepEqual(await phases(), [undefined, "soft"]);
  assert.equal(await catalogueRow(room.store, nameOf("tool", "checked")), undefined);
});

test("a push at the end of a repository's day leaves entry, catalogue and disk of one mind", async (context) => {
  const room = await open(context);
  const name = nameOf("alice", "late");
  await room.send(announcement("alice", "late", [], room.now));
  for (let half = 0; half < 48; half++) {
    await room.advance(29 * minutes);
    await room.send(state("alice", "late", [[main, oid(`${half}`)]], room.now));
  }
  // Its last half hour is over, the sweep has not looked yet.
  const entry = await waitingAnnouncement(room.store, name);
  room.clock.advance(((entry?.firstWaited ?? 0) + 24 * hours - room.now + 1) * 1_000);
  const waiting = state(
    "alice",
    "late",
    [
      [main, oid("far")],
      ["refs/heads/other", oid("farther")],
    ],
    room.now,
  );
  await room.send(waiting);
  const candidate = { id: waiting.id, created_at: waiting.created_at };
  await room.pushed({
    address: diskAddress(name),
    decision: { verdicts: [], candidate, moves: true },
    updates: [{ ref: main, to: oid("far") as Oid }],
    placeholders: [],
    packBytes: 0,
    ip: "192.0.2.1",
  });
  await room.sweep();
  assert.equal((await waitingAnnouncement(room.store, name))?.phase, "soft");
  assert.equal((await catalogueRow(room.store, name))?.status, "soft");
  assert.equal(await room.repositories.exists(diskAddress(name)), false);
});

test("nothing ends under a push that began while the end waited for the store", async (context) => {
  const room = await open(context);
  const name = nameOf("alice", "late");
  const waiting = state("alice", "late", [[main, oid("far")]], room.now);
  await room.send(announcement("alice", "late", [], room.now));
  await room.send(waiting);
  const here = async (): Promise<unknown[]> => [
    (await waitingAnnouncement(room.store, name))?.phase,
    (await waitingEntry(room.store, waiting.id))?.phase,
    await room.repositories.exists(diskAddress(name)),
  ];
  const ends: (() => Promise<void>)[] = [];
  // Asked last before the store is.
  room.purgatory.expireOnlyIf(() => {
    ends.push(room.purgatory.pushBegins(diskAddress(name)));
    return true;
  });
  await room.advance(31 * minutes);
  assert.equal(ends.length, 1, "the second of them finds the push at work");
  assert.deepEqual(await here(), ["waiting", "waiting", true]);
  room.purgatory.expireOnlyIf(() => true);
  for (const end of ends) await end();
  await room.sweep();
  assert.deepEqual(await here(), ["soft", undefined, false]);
});

test("a push whose state or repository ended after it was decided writes nothing", async (context) => {
  const room = await open(context);
  const address = diskAddress(nameOf("alice", "late"));
  const waiting = state("alice", "late", [[main, oid("far")]], room.now);
  await room.send(announcement("alice", "late", [], room.now));
  await room.send(waiting);
  const updates = [{ ref: main, to: await room.commit(nameOf("alice", "late"), "here") }];
  const isWritten = async (candidate: typeof waiting | undefined): Promise<boolean> =>
    (await room.pushed({ address, decision: { verdicts: [], candidate, moves: true }, updates })) !== undefined;
  const version = (): Promise<number> => refsVersion(room.store, address);
  await room.store.transact((tx) => removeWaiting(tx, waiting.id));
  assert.equal(await isWritten(waiting), false);
  const ref = `refs/nostr/${"cd".repeat(32)}` as RefName;
  const ofDeleted = await room.pushed({ address, updates: updates.map(({ to }) => ({ ref, to })) });
  assert.equal(ofDeleted, undefined, "its pull request was deleted");
  assert.equal(await version(), 0);
  assert.equal(await isWritten(undefined), true);
  assert.equal(await version(), 1);
  await room.advance(31 * minutes);
  assert.equal(await isWritten(undefined), false, "its directory goes");
  assert.equal(await version(), 0);
});

test("data that came before its event is counted while it waits and when it expires", async (context) => {
  const room = await open(context);
  await room.send(announcement("alice", "x", [], room.now));
  const eventId = "ab".repeat(32) as EventId;
  const data = { eventId, tip: oid("tip") as Oid, bytes: 100, sinceMs: room.clock.nowMs() };
  await room.keptAside({ address: diskAddress(nameOf("alice", "x")), ip: "192.0.2.1", placeholders: [data] });
  assert.equal((await countEntries(room.store)).get("placeholder:waiting"), 1);
  assert.equal(room.placeholdersExpired, 0);
  // Its repository must outlive it here, or it would take the data along.
  await room.advance(20 * minutes);
  await room.send(state("alice", "x", [[main, oid("far")]], room.now));
  await room.advance(11 * minutes);
  assert.equal((await countEntries(room.store)).get("placeholder:waiting"), undefined);
  assert.equal(room.placeholdersExpired, 1);
});

test("what its author let expire (NIP-40) is removed, and git follows as if he had deleted it", async (context) => {
  const room = await open(context);
  const name = nameOf("alice", "brief");
  const until = (seconds: number): Tag => ["expiration", String(room.now + seconds)];
  await room.send(announcement("alice", "brief", [until(20 * minutes)], room.now));
  const tip = await room.commit(name, "one");
  await room.send(state("alice", "brief", [[main, tip]], room.now));
  const address = addressOfRepository("alice", "brief");
  const pullRequest = makeEvent(keyOf("bob"), 1618, [["a", address], ["c", tip], until(10 * minutes)], room.now);
  assert.equal(await room.send(pullRequest), true);
  const refs = async (): Promise<string[]> => [...(await room.repository(name).refs()).refs.keys()];
  assert.deepEqual(await refs(), [main, `refs/nostr/${pullRequest.id}`]);
  assert.equal(room.store.stats.events, 3);
  await room.advance(11 * minutes);
  assert.equal(room.store.stats.events, 2);
  assert.deepEqual(await refs(), [main]);
  assert.ok(await room.lookUp(name));
  await room.advance(10 * minutes);
  assert.equal(room.store.stats.events, 1, "the state has no time of its own");
  assert.equal((await catalogueRow(room.store, name))?.status, "deleted");
  assert.equal(await room.lookUp(name), undefined);
  const causes: string[] = [];
  const stop = new AbortController();
  for await (const page of room.store.feed(0, stop.signal)) {
    for (const entry of page) if (entry.type === "removed") causes.push(`${entry.kind} ${entry.cause}`);
    stop.abort();
  }
  assert.deepEqual(causes, ["1618 expiration", "30617 expiration"]);
});

test("a maintainer's announcement lapses with the one it leans on when that expires (NIP-40)", async (context) => {
  const room = await open(context);
  const brief: Tag = ["expiration", String(room.now + 20 * minutes)];
  await room.send(announcement("alice", "brief", [maintainers("bob"), brief], room.now));
  await room.send(state("alice", "brief", [[main, await room.commit(nameOf("alice", "brief"), "one")]], room.now));
  const leaning = [elsewhere("bob", "brief", [maintainers("carol")], room.now), elsewhere("carol", "brief")];
  for (const event of leaning) await room.send(event);
  const here = () => Promise.all(leaning.map((event) => room.isServed(event)));
  assert.deepEqual(await here(), [true, true]);
  await room.advance(21 * minutes);
  assert.deepEqual(await here(), [false, false]);
});

test("what the public compliance tool deletes is off the disk after two hours, others' when the grace is over", async (context) => {
  const room = await open(context);
  const names = [nameOf("tool", "checked"), nameOf("alice", "kept")] as const;
  const tags: Tag[] = [["t", "grasp-audit-test-event"]];
  for (const [owner, identifier, t] of [["tool", "checked", tags] as const, ["alice", "kept", []] as const]) {
    await room.send(announcement(owner, identifier, t, room.now));
    await room.send(state(owner, identifier, [[main, await room.commit(nameOf(owner, identifier), "one")]], room.now));
    await room.send(makeEvent(keyOf(owner), 5, [["a", addressOfRepository(owner, identifier)]], room.now));
  }
  const rows = () => Promise.all(names.map(async (name) => (await catalogueRow(room.store, name))?.status));
  const disk = () => Promise.all(names.map((name) => room.repositories.exists(diskAddress(name))));
  await room.advance(1 * hours);
  assert.deepEqual(await rows(), ["deleted", "deleted"]);
  assert.deepEqual(await disk(), [true, true]);
  await room.advance(1 * hours);
  assert.deepEqual(await rows(), [undefined, "deleted"]);
  assert.deepEqual(await disk(), [false, true]);
});

test("an announcement that expires by its own tag waits no longer than that, and not softly", async (context) => {
  const room = await open(context);
  const name = nameOf("alice", "hasty");
  await room.send(announcement("alice", "hasty", [["expiration", String(room.now + 10 * minutes)]], room.now));
  await room.send(state("alice", "hasty", [[main, oid("far")]], room.now));
  await room.advance(9 * minutes);
  assert.equal((await waitingAnnouncement(room.store, name))?.phase, "waiting");
  await room.advance(2 * minutes);
  assert.equal(await waitingAnnouncement(room.store, name), undefined);
  assert.equal(await catalogueRow(room.store, name), undefined);
  assert.equal(await room.repositories.exists(diskAddress(name)), false);
});

test("when the grace of a repository that left is over its announcement goes too, unless a maintainer keeps it here", async (context) => {
  const room = await open(context);
  const host = async (owner: string, tags: Tag[] = []): Promise<void> => {
    await room.send(announcement(owner, "left", tags, room.now));
    await room.send(state(owner, "left", [[main, await room.commit(nameOf(owner, "left"), owner)]], room.now));
  };
  for (const owner of ["alice", "bob", "carol"]) await host(owner, owner === "carol" ? [maintainers("bob")] : []);
  const leaving = [elsewhere("alice", "left", [], room.now + 1), elsewhere("bob", "left", [], room.now + 1)];
  for (const event of leaving) await room.send(event);
  const here = () => Promise.all(leaving.map((event) => room.isServed(event)));
  await room.advance(89 * 24 * hours);
  assert.deepEqual(await here(), [true, true]);
  await room.advance(2 * 24 * hours);
  assert.deepEqual(await here(), [false, true]);
  assert.equal(await catalogueRow(room.store, nameOf("alice", "left")), undefined);
});

test("with a pull request comes what waits because it is about it, and what is about that", async (context) => {
  const room = await open(context);
  const name = nameOf("alice", "talked");
  await room.send(announcement("alice", "talked", [], room.now));
  await room.send(state("alice", "talked", [[main, await room.commit(name, "one")]], room.now));
  await room.send(announcement("bob", "elsewhere", [], room.now));
  const tip = await room.commit(nameOf("bob", "elsewhere"), "change");
  const address = addressOfRepository("alice", "talked");
  const pullRequest = makeEvent(
    keyOf("bob"),
    1618,
    [
      ["a", address],
      ["c", tip],
    ],
    room.now,
  );
  const comment = makeEvent(keyOf("carol"), 1111, [["e", pullRequest.id]], room.now);
  const reaction = makeEvent(keyOf("dave"), 7, [["e", comment.id]], room.now);
  const all = [pullRequest, comment, reaction];
  for (const event of all) assert.equal(await room.send(event), false);
  assert.equal(await room.commit(name, "change"), tip);
  await room.purgatory.fetched(name);
  assert.deepEqual(await Promise.all(all.map((event) => room.isServed(event))), [true, true, true]);
});

test("a sweep ends all that is due, also what lies behind a thousand that must stay", async (context) => {
  const room = await open(context);
  await room.send(announcement("alice", "app", [], room.now));
  const issue = makeEvent(keyOf("bob"), 1621, [["a", addressOfRepository("alice", "app")]], room.now);
  await room.write(issue);
  const entry = (await waitingEntry(room.store, issue.id))!;
  assert.equal(entry.kind, "related");
  const ids = Array.from({ length: 1_200 }, (_, n) => `${n}`.padStart(64, "0") as EventId);
  await room.store.transact(async (tx) => {
    for (const id of ids) await putWaiting(tx, { ...entry, id });
  });
  const left = async (): Promise<number> => (await countEntries(room.store)).get("related:waiting") ?? 0;
  room.purgatory.expireOnlyIf(({ id }) => id > ids.at(-3)!);
  await room.advance(31 * minutes);
  assert.equal(await left(), ids.length - 2);
  room.purgatory.expireOnlyIf(() => true);
  await room.advance(1);
  assert.equal(await left(), 0, "in one sweep");
});

const now = 1_000;
const times = { purgatorySoftExpirySecs: 100, purgatoryRememberSecs: 700 };
const gone: Expiry = { to: "gone", rememberUntil: undefined };
const table: readonly (readonly [EntryKind, WaitingPhase, EntrySource["type"], Expiry])[] = [
  ["announcement", "waiting", "client", { to: "soft", expires: 1_100, dropRepository: true }],
  ["announcement", "waiting", "sync", { to: "soft", expires: 1_100, dropRepository: true }],
  ["announcement", "soft", "client", gone],
  ["state", "waiting", "client", gone],
  ["state", "waiting", "sync", { to: "soft", expires: 1_700, dropRepository: false }],
  ["state", "soft", "sync", { to: "gone", rememberUntil: 1_700 }],
  ["pull-request", "waiting", "client", gone],
  ["pull-request", "waiting", "sync", { to: "soft", expires: 1_700, dropRepository: false }],
  ["pull-request", "soft", "sync", { to: "gone", rememberUntil: 1_700 }],
  ["related", "waiting", "sync", gone],
];
for (const [kind, phase, type, expected] of table) {
  test(`a ${kind} from ${type}, ${phase}, becomes ${expected.to}`, () => {
    const source = type === "sync" ? { type, relay: "wss://peer.example" } : { type };
    const entry = { kind, phase, source } as WaitingEntry;
    assert.deepEqual(expiryOf(entry, now, times), expected);
  });
}

test("jumps of the wall clock are seen in both directions, small drift is not", () => {
  const jump = (wallMs: number): number =>
    clockJumpSeconds({ wallMs: 0, monotonicMs: 0 }, { wallMs: 60_000 + wallMs, monotonicMs: 60_000 }, 300);
  assert.deepEqual([jump(0), jump(299_000), jump(3_600_000), jump(-3_600_000)], [0, 0, 3_600, -3_600]);
});

const graces = { unhostGraceDays: 500 / 86_400, auditEventExpirySecs: 100 };
for (const [status, since, checkedAt, expected] of [
  ["served", 0, null, false],
  ["waiting", 0, 0, false],
  ["leaving", 500, null, true],
  ["leaving", 501, null, false],
  ["leaving", 900, 0, false],
  ["deleted", 500, null, true],
  ["deleted", 900, null, false],
  ["deleted", 900, undefined, false],
  ["deleted", 900, 900, true],
  ["deleted", 900, 901, false],
] as const) {
  const tool = typeof checkedAt === "number" ? `, by the compliance tool at ${checkedAt}` : "";
  test(`the grace of a repository that is ${status} since ${since}${tool} is ${expected ? "" : "not "}over`, () => {
    const row = { status, since, checkedAt } as CatalogueRow;
    assert.equal(isGraceOver(row, now, graces), expected);
  });
}

for (const [jump, before, after] of [
  [3_600, [900, 990, 1_000], [4_600, 4_605]],
  [-3_600, [900, 4_500, 4_600], [1_000, 1_005]],
] as const) {
  test(`a jump of ${jump} s moves the times from before it, and none from after it`, () => {
    const wallSeconds = jump > 0 ? 1_000 : 4_600;
    const look = (seconds: number, monotonicMs: number) => ({ wallMs: seconds * 1_000, monotonicMs });
    const isOlder = takenBefore(jump, look(wallSeconds, 0), look(wallSeconds + jump + 5, 5_000));
    assert.deepEqual(before.map(isOlder), [true, true, true]);
    assert.deepEqual(after.map(isOlder), [false, false]);
    const [old, young] = [before[1], after[0]];
    const entry = { entered: old, firstWaited: old, expires: old + 100 } as WaitingEntry;
    const moved = { entered: old + jump, firstWaited: old + jump, renewed: old + jump, expires: old + 100 + jump };
    assert.deepEqual(movedBy(entry, jump, isOlder), moved);
    const renewed = { ...entry, renewed: young, expires: young + 100 };
    assert.deepEqual(movedBy(renewed, jump, isOlder), { ...moved, renewed: young, expires: young + 100 });
  });
}
