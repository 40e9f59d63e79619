import assert from "node:assert/strict";
import { test } from "node:test";
import { applyChange } from "./apply.js";
import { releasedSiblings } from "./repository-authority.js";
import { announcement, elsewhere, keyOf, maintainers, nameOf, outcome, sync, World } from "./testing/world.js";
import { waitingAnnouncement } from "./waiting.js";
import { withdrawalOf } from "./withdrawal.js";

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
