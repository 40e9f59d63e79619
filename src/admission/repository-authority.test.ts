import assert from "node:assert/strict";
import { test } from "node:test";
import { applyChange } from "./apply.js";
import { authorisedStates, maintainersOf, releasedSiblings } from "./repository-authority.js";
import {
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
import { waitingAnnouncement } from "./waiting.js";
import { withdrawalOf } from "./withdrawal.js";

test("states of members count, served and waiting, newest first; those of strangers never", async () => {
  const world = new World();
  await world.host("alice", "x", [maintainers("bob")]);
  await world.host("eve", "x", [maintainers("alice")]);
  const served = state("alice", "x", undefined, startSeconds);
  await world.store.put(served);
  const waiting = state("bob", "x", undefined, startSeconds + 5);
  const odd = state("alice", "x", [["refs/heads/main", "-x"]], startSeconds + 3);
  for (const event of [waiting, odd, state("eve", "x", [["refs/heads/main", oid("e")]])]) await world.send(event);
  const states = await authorisedStates(world.store, nameOf("alice", "x"));
  assert.deepEqual(
    states.map(({ event, served: isServed, releasable }) => [event.id, isServed, releasable]),
    [
      [waiting.id, false, true],
      [odd.id, false, false],
      [served.id, true, true],
    ],
  );
  assert.deepEqual([...(await maintainersOf(world.store, nameOf("alice", "x")))], [keyOf("alice"), keyOf("bob")]);
});

test("threats 12, 17: a repository may be filled only from repositories of its own set", async () => {
  const world = new World();
  await world.host("bob", "x");
  await world.host("eve", "x", [maintainers("alice")]);
  await world.send(announcement("alice", "x", [maintainers("bob")]));
  const siblings = await releasedSiblings(world.store, nameOf("alice", "x"));
  assert.deepEqual(
    siblings.map(({ owner }) => owner),
    [keyOf("bob")],
  );
  assert.deepEqual(await releasedSiblings(world.store, nameOf("bob", "x")), []);
});

test("when a waiting announcement expires for good, exceptions that hung on it lapse and nothing is left of it", async () => {
  const world = new World();
  const alice = await world.host("alice", "x", [maintainers("bob")]);
  await world.send(announcement("bob", "x", [maintainers("carol")]), sync);
  assert.equal(outcome(await world.send(elsewhere("carol", "x"))), "store");
  const entry = await waitingAnnouncement(world.store, nameOf("bob", "x"));
  assert.ok(entry);
  const end = await withdrawalOf(world.store, [], [entry], "expired", world.now, () => false);
  assert.deepEqual(end.repositories, [{ name: nameOf("bob", "x"), to: "remove" }]);
  for (const change of end.changes) await applyChange(world.store, change, world.now);
  assert.deepEqual(world.store.ids(), [alice.id]);
  assert.deepEqual(world.store.keys("purgatory"), ["c:all"]);
  assert.ok(
    world.store.keys("catalogue").every((key) => !key.includes(`:${keyOf("bob")}`) || key.startsWith("listing:")),
  );
});
