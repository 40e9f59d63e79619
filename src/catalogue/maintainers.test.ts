import assert from "node:assert/strict";
import { test } from "node:test";
import { announcement, keyOf, maintainers, nameOf, World } from "../admission/testing/world.js";
import { releasedSiblings } from "./maintainers.js";

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
