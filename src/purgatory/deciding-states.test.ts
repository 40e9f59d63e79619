import assert from "node:assert/strict";
import { test } from "node:test";
import { maintainers, nameOf, oid, startSeconds, state, World } from "../admission/testing/world.js";
import { canDecide, decidingStates } from "./deciding-states.js";

test("states of members count, served and waiting, newest first; those of strangers never", async () => {
  const world = new World();
  await world.host("alice", "x", [maintainers("bob")]);
  await world.host("eve", "x", [maintainers("alice")]);
  const served = state("alice", "x", undefined, startSeconds);
  await world.store.put(served);
  const waiting = state("bob", "x", undefined, startSeconds + 5);
  const odd = state("alice", "x", [["refs/heads/main", "-x"]], startSeconds + 3);
  for (const event of [waiting, odd, state("eve", "x", [["refs/heads/main", oid("e")]])]) await world.send(event);
  const states = await decidingStates(world.store, nameOf("alice", "x"));
  assert.deepEqual(
    states.map((found) => [found.event.id, found.entry !== undefined, canDecide(found)]),
    [
      [waiting.id, true, true],
      [odd.id, true, false],
      [served.id, false, true],
    ],
  );
});
