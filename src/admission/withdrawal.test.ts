import assert from "node:assert/strict";
import { test } from "node:test";
import { waitingAnnouncement } from "../catalogue/waiting.js";
import { announcement, elsewhere, keyOf, maintainers, nameOf, outcome, sync, World } from "./testing/world.js";
import { applyChange } from "./verdict.js";
import { withdrawalOf } from "./withdrawal.js";

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
