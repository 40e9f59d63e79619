import assert from "node:assert/strict";
import { test } from "node:test";
import { rememberId } from "../catalogue/decisions.js";
import { catalogueRow, setCatalogueRow } from "../catalogue/repositories.js";
import { putWaiting, waitingAnnouncement, waitingEntry, waitingTotals } from "../catalogue/waiting.js";
import type { EventId, Tag } from "../nostr/event.js";
import { refusalText } from "../nostr/refusals.js";
import {
  addressOfRepository,
  announcement,
  elsewhere,
  keyOf,
  maintainers,
  nameOf,
  oid,
  outcome,
  startSeconds,
  state,
  sync,
  World,
} from "./testing/world.js";

const later = (seconds: number): number => startSeconds + seconds;

test("a state by the owner waits, and its repositories are named", async () => {
  const world = new World();
  await world.host("alice", "x");
  const verdict = await world.send(state("alice", "x"));
  assert.ok(verdict.ok && verdict.action === "hold");
  assert.equal(verdict.entry.kind, "state");
  assert.deepEqual(verdict.entry.repositories, [addressOfRepository("alice", "x")]);
  assert.deepEqual(verdict.repositories, []);
});

test("who may write a state is said by announcements served or waiting, and the refusals are the known sentences", async () => {
  const world = new World();
  const none = await world.send(state("alice", "x"));
  assert.ok(!none.ok);
  assert.equal(refusalText(none), "invalid: no announcement exists for this repository");
  await world.send(announcement("alice", "x", [maintainers("bob")]));
  const stranger = await world.send(state("eve", "x"));
  assert.ok(!stranger.ok);
  assert.equal(refusalText(stranger), "invalid: author not authorized for this repository");
  assert.equal(outcome(await world.send(state("bob", "x"))), "hold");
  assert.equal(outcome(await world.send(state("bob", "y"))), "no-announcement");
});

test("a state in the other format waits where none was used yet, and is refused by name where one was", async () => {
  const world = new World();
  const long = (id: string): Tag => ["refs/heads/main", id.repeat(64)];
  await world.host("alice", "x", [maintainers("bob")]);
  assert.equal(outcome(await world.send(state("alice", "x", [long("a")]))), "hold");
  const row = await catalogueRow(world.store, nameOf("alice", "x"));
  assert.ok(row);
  const mark = { id: "f".repeat(64) as EventId, created_at: startSeconds };
  setCatalogueRow(world.store, { ...row, mark });
  const refused = await world.send(state("alice", "x", [long("b")], later(1)));
  assert.equal(outcome(refused), "object-format");
  assert.ok(!refused.ok && /SHA-256.*SHA-1/.test(refused.message));
  // Where the author decides in another one that can hold it, it waits for that one.
  await world.send(announcement("bob", "x"));
  const verdict = await world.send(state("bob", "x", [long("c")], later(2)));
  assert.ok(verdict.ok && verdict.action === "hold");
  assert.deepEqual(verdict.entry.repositories, [addressOfRepository("bob", "x")]);
  const mixed: Tag[] = [long("a"), ["refs/heads/b", "b".repeat(40)]];
  assert.equal(outcome(await world.send(state("alice", "x", mixed, later(3)))), "object-format");
});

test("threats 11: an ex-maintainer and somebody listed only elsewhere are refused", async () => {
  const world = new World();
  await world.host("alice", "x", [maintainers("bob")]);
  await world.send(announcement("alice", "x", [], later(1)));
  assert.equal(outcome(await world.send(state("bob", "x", undefined, later(2)))), "not-a-maintainer");
  await world.host("carol", "y", [maintainers("eve")]);
  assert.equal(outcome(await world.send(state("eve", "x"))), "not-a-maintainer");
});

test("threats 11: a replayed older state is known, not held", async () => {
  const world = new World();
  await world.host("alice", "x");
  await world.store.put(state("alice", "x", undefined, later(10)));
  const verdict = await world.send(state("alice", "x", undefined, later(5)));
  assert.equal(outcome(verdict), "known");
  assert.equal((await waitingTotals(world.store)).entries, 0);
});

test("threats 12: a stranger who announces the same identifier gets nothing of the owner's states, nor the reverse", async () => {
  const world = new World();
  await world.host("alice", "x");
  await world.host("eve", "x");
  const verdict = await world.send(state("alice", "x"));
  assert.ok(verdict.ok && verdict.action === "hold");
  assert.deepEqual(verdict.entry.repositories, [addressOfRepository("alice", "x")]);
  const other = await world.send(state("eve", "x"));
  assert.ok(other.ok && other.action === "hold");
  assert.deepEqual(other.entry.repositories, [addressOfRepository("eve", "x")]);
});

test("threats 17: when a thousand keys list the owner, a state concerns few repositories, mutual ones first, at bounded cost", async () => {
  const world = new World({ config: { purgatoryAnnouncementsPerHourPerIp: 10_000 } });
  await world.host("alice", "x", [maintainers("bob")]);
  for (let index = 0; index < 1_100; index++) {
    await world.send(announcement(`s${index}`, "x", [maintainers("alice", "bob")]), sync);
  }
  await world.host("bob", "x", [maintainers("alice")]);
  world.store.reads = 0;
  const verdict = await world.ask(state("alice", "x"));
  assert.ok(verdict.ok && verdict.action === "hold");
  assert.equal(verdict.entry.repositories.length, 20);
  assert.deepEqual(verdict.entry.repositories.slice(0, 2), [
    addressOfRepository("alice", "x"),
    addressOfRepository("bob", "x"),
  ]);
  assert.ok(world.store.reads < 20_000, `${world.store.reads} reads`);
  world.store.reads = 0;
  assert.equal(outcome(await world.ask(state("eve", "x"))), "not-a-maintainer");
  assert.ok(world.store.reads < 50, `${world.store.reads} reads for a stranger`);
});

test("a flood of later listings does not hide the repository that listed a key first", async () => {
  const world = new World();
  await world.host("alice", "x", [maintainers("bob")]);
  world.now += 10;
  for (let index = 0; index < 1_050; index++)
    await world.send(announcement(`s${index}`, "x", [maintainers("bob")]), sync);
  const verdict = await world.ask(state("bob", "x"));
  assert.ok(verdict.ok && verdict.action === "hold");
  assert.equal(verdict.entry.repositories[0], addressOfRepository("alice", "x"));
});

test("a leaving repository takes no states", async () => {
  const world = new World();
  await world.host("alice", "x");
  await world.send(elsewhere("alice", "x", [], later(1)));
  assert.equal(outcome(await world.send(state("alice", "x"))), "not-a-maintainer");
});

const faults: { name: string; refs: Tag[]; fault: RegExp }[] = [
  {
    name: "a ref listed twice",
    refs: [
      ["refs/heads/a", oid("1")],
      ["refs/heads/a", oid("1")],
    ],
    fault: /listed twice/,
  },
  {
    name: "a branch beside its directory",
    refs: [
      ["refs/heads/a/b", oid("1")],
      ["refs/heads/a", oid("1")],
    ],
    fault: /cannot exist together/,
  },
  {
    name: "the same, further apart",
    refs: [
      ["refs/heads/a", oid("1")],
      ["refs/heads/b", oid("1")],
      ["refs/heads/a/b/c", oid("1")],
    ],
    fault: /cannot exist together/,
  },
  { name: "a name with dots", refs: [["refs/heads/a..b", oid("1")]], fault: /not a name/ },
  {
    name: "threats 5: a name with control bytes, not echoed raw",
    refs: [["refs/heads/a\nb", oid("1")]],
    fault: /^"refs\/heads\/a\\nb"/,
  },
  { name: "a name ending in .lock", refs: [["refs/tags/v.lock", oid("1")]], fault: /not a name/ },
];
for (const { name, refs, fault } of faults) {
  test(`a state git could never apply is refused: ${name}`, async () => {
    const world = new World();
    await world.host("alice", "x");
    const verdict = await world.send(state("alice", "x", refs));
    assert.equal(outcome(verdict), "bad-state");
    if (!verdict.ok) assert.match(verdict.message, fault);
  });
}

test("names that only look alike are fine: a-b beside a, peeled tags, a branch and a tag of one name", async () => {
  const world = new World();
  await world.host("alice", "x");
  const refs: Tag[] = [
    ["refs/heads/a", oid("1")],
    ["refs/heads/a-b", oid("1")],
    ["refs/heads/a.b/c", oid("2")],
    ["refs/tags/a", oid("3")],
    ["refs/tags/a^{}", oid("4")],
  ];
  assert.equal(outcome(await world.send(state("alice", "x", refs))), "hold");
});

test("threats 1: a state whose object ids are refspecs or options waits and can never be released", async () => {
  for (const value of [
    "+refs/heads/x:refs/heads/main",
    "--upload-pack=touch /tmp/x",
    oid("1").toUpperCase(),
    "",
    "ref: refs/heads/x",
  ]) {
    const world = new World();
    await world.host("alice", "x");
    const verdict = await world.send(
      state("alice", "x", [
        ["refs/heads/ok", oid("1")],
        ["refs/heads/main", value],
      ]),
    );
    assert.ok(verdict.ok && verdict.action === "hold", value);
    assert.equal(verdict.entry.releasable, false, value);
  }
});

test("a state without refs is served when its repository is, and neither starts nor prolongs anything otherwise", async () => {
  const world = new World();
  await world.send(announcement("alice", "x"));
  world.now += 600;
  const waiting = await world.send(state("alice", "x", []));
  assert.ok(waiting.ok && waiting.action === "hold" && !waiting.entry.releasable);
  assert.equal((await waitingAnnouncement(world.store, nameOf("alice", "x")))?.expires, later(1_800));
  await world.release(nameOf("alice", "x"));
  assert.equal(outcome(await world.send(state("alice", "x", [], later(1)))), "store");
});

test("an authorised state restarts the clock of a waiting announcement and revives a soft one", async () => {
  const world = new World();
  await world.send(announcement("alice", "x"));
  world.now = later(600);
  await world.send(state("alice", "x"));
  const entry = await waitingAnnouncement(world.store, nameOf("alice", "x"));
  assert.equal(entry?.expires, later(600 + 1_800));
  assert.ok(entry);
  await putWaiting(world.store, { ...entry, phase: "soft", expires: later(90_000) });
  await world.setStatus(nameOf("alice", "x"), "soft");
  world.now = later(9_000);
  const verdict = await world.send(state("alice", "x", undefined, later(9_000)), sync);
  assert.ok(verdict.ok && verdict.action === "hold");
  assert.deepEqual(verdict.repositories, [{ name: nameOf("alice", "x"), to: "create" }]);
  assert.equal((await catalogueRow(world.store, nameOf("alice", "x")))?.status, "waiting");
  assert.equal((await waitingAnnouncement(world.store, nameOf("alice", "x")))?.phase, "waiting");
});

test("ten states of an author wait for an identifier: a newer one takes the place of his oldest", async () => {
  const world = new World();
  await world.host("alice", "x");
  const states = Array.from({ length: 11 }, (_, index) => state("alice", "x", undefined, later(index)));
  for (const event of states) assert.equal(outcome(await world.send(event)), "hold");
  assert.equal((await waitingTotals(world.store)).entries, 10);
  assert.equal(await waitingEntry(world.store, states[0]!.id), undefined);
  assert.equal(outcome(await world.send(state("alice", "x", undefined, later(-1)))), "too-many-waiting");
});

test("threats 19: a flood of big states takes nobody's place; whoever holds most gives way", async () => {
  const world = new World({ config: { purgatoryMaxBytes: 200_000, purgatoryAnnouncementsPerHourPerIp: 1_000 } });
  await world.host("alice", "x");
  const big = (author: string, identifier: string, at: number) =>
    state(
      author,
      identifier,
      [
        ["refs/heads/main", oid("1")],
        ["note", "n".repeat(30_000)],
      ],
      at,
    );
  let refusals = 0;
  for (let index = 0; index < 8; index++) {
    await world.host("eve", `e${index}`);
    if (outcome(await world.send(big("eve", `e${index}`, startSeconds))) !== "hold") refusals++;
  }
  assert.ok(refusals > 0);
  assert.equal(outcome(await world.send(big("alice", "x", startSeconds))), "hold");
  assert.ok((await waitingTotals(world.store)).bytes <= 200_000);
});

test("threats 30: what sync could not complete is remembered against sync only; a client may send it at any time", async () => {
  const world = new World();
  await world.host("alice", "x");
  const event = state("alice", "x");
  rememberId(world.store, event.id, {
    pubkey: keyOf("alice"),
    kind: 30_618,
    reason: "expired",
    relay: null,
    until: later(500),
  });
  assert.equal(outcome(await world.send(event, sync)), "known");
  assert.equal(outcome(await world.send(event)), "hold");
  assert.deepEqual(world.store.keys("remembered"), []);
});

test("the same waiting state again changes nothing", async () => {
  const world = new World();
  await world.host("alice", "x");
  await world.send(state("alice", "x"));
  const before = world.store.keys("purgatory");
  world.now += 100;
  assert.equal(outcome(await world.send(state("alice", "x"))), "known");
  assert.deepEqual(world.store.keys("purgatory"), before);
});
