import assert from "node:assert/strict";
import { test } from "node:test";
import { type ListEntry, repositoryList } from "../catalogue/bans-and-lists.js";
import { catalogueRow } from "../catalogue/repositories.js";
import { announcement, elsewhere, keyOf, maintainers, nameOf, outcome, startSeconds, World } from "./testing/world.js";

const later = (seconds: number): number => startSeconds + seconds;
const author = (name: string): ListEntry => ({ type: "author", pubkey: keyOf(name) });

test("a maintainer of a released repository may have his announcement here without a repository", async () => {
  const world = new World();
  await world.host("alice", "x", [maintainers("bob")]);
  const verdict = await world.send(elsewhere("bob", "x"));
  assert.equal(outcome(verdict), "store");
  assert.equal(verdict.rule, "maintainer-exception");
  assert.deepEqual(verdict.ok && verdict.repositories, []);
  assert.equal(await catalogueRow(world.store, nameOf("bob", "x")), undefined);
  assert.equal(outcome(await world.send(elsewhere("bob", "y"))), "service-not-listed");
  assert.equal(outcome(await world.send(elsewhere("carol", "x", [maintainers("alice")]))), "service-not-listed");
});

test("the exception needs a released repository and overrides no list", async () => {
  const waiting = new World();
  await waiting.send(announcement("alice", "x", [maintainers("bob")]));
  assert.equal(outcome(await waiting.send(elsewhere("bob", "x"))), "service-not-listed");
  const black = new World({ lists: { repositoryBlacklist: repositoryList([author("bob")]) } });
  await black.host("alice", "x", [maintainers("bob")]);
  assert.equal(outcome(await black.send(elsewhere("bob", "x"))), "repository-blocked");
  const white = new World({ lists: { repositoryWhitelist: repositoryList([author("alice")]) } });
  await white.host("alice", "x", [maintainers("bob")]);
  assert.equal(outcome(await white.send(elsewhere("bob", "x"))), "service-not-listed");
  const fallen = new World();
  await fallen.host("alice", "x", [maintainers("bob")]);
  fallen.lists = { ...fallen.lists, repositoryBlacklist: repositoryList([author("alice")]) };
  assert.equal(outcome(await fallen.send(elsewhere("bob", "x"))), "service-not-listed");
});

test("an exception lapses when its author leaves the set, also further down the chain", async () => {
  const world = new World();
  await world.host("alice", "x", [maintainers("bob")]);
  const bob = elsewhere("bob", "x", [maintainers("carol")]);
  const carol = elsewhere("carol", "x");
  await world.send(bob);
  assert.equal(outcome(await world.send(carol)), "store");
  const kept = await world.send(announcement("alice", "x", [maintainers("bob"), ["name", "n"]], later(1)));
  assert.equal(outcome(kept), "store");
  assert.equal(world.store.ids().length, 3);
  const dropped = announcement("alice", "x", [], later(2));
  await world.send(dropped);
  assert.deepEqual(world.store.ids(), [dropped.id]);
});

test("an exception lapses when the repository it leans on leaves, unless another one holds it", async () => {
  const world = new World();
  await world.host("alice", "x", [maintainers("bob")]);
  await world.send(elsewhere("bob", "x"));
  await world.host("dave", "x", [maintainers("bob")]);
  const bobHere = (): boolean => world.store.ids().includes(elsewhere("bob", "x").id);
  await world.send(elsewhere("alice", "x", [maintainers("bob")], later(1)));
  assert.ok(bobHere());
  await world.send(elsewhere("dave", "x", [maintainers("bob")], later(1)));
  assert.ok(!bobHere());
});

test("a maintainer with a repository of his own keeps it when he is dropped from another's set", async () => {
  const world = new World();
  await world.host("alice", "x", [maintainers("bob")]);
  const bob = await world.host("bob", "x");
  await world.send(announcement("alice", "x", [], later(1)));
  assert.ok(world.store.ids().includes(bob.id));
});
