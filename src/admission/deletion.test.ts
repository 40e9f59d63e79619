import assert from "node:assert/strict";
import { test } from "node:test";
import { decisionsAbout, decisionsOn, putDecisions, recordCount } from "../catalogue/decisions.js";
import { catalogueRow, setCatalogueRow } from "../catalogue/repositories.js";
import { waitingTotals } from "../catalogue/waiting.js";
import { kinds, type Tag } from "../nostr/event.js";
import {
  addressOfRepository,
  announcement,
  client,
  elsewhere,
  keyOf,
  maintainers,
  makeEvent,
  nameOf,
  oid,
  outcome,
  startSeconds,
  state,
  World,
} from "./testing/world.js";
import { decisionRecord } from "./verdict.js";

const later = (seconds: number): number => startSeconds + seconds;
const deletion = (author: string, tags: readonly Tag[], at = later(10)) =>
  makeEvent(keyOf(author), kinds.deletion, tags, at);
const vanish = (author: string, relay: string, at = later(10)) =>
  makeEvent(keyOf(author), kinds.vanish, [["relay", relay]], at);
const a = (owner: string, identifier: string): Tag => ["a", addressOfRepository(owner, identifier)];
const leftInPurgatory = (world: World): string[] => world.store.keys("purgatory").filter((key) => key !== "c:all");

test("the author's deletion removes waiting entries by id and by address, and the repository with the announcement", async () => {
  const world = new World();
  await world.send(announcement("alice", "x"));
  const waitingState = state("alice", "x");
  await world.send(waitingState);
  const byId = await world.send(deletion("alice", [["e", waitingState.id]]));
  assert.equal(outcome(byId), "store");
  assert.equal((await waitingTotals(world.store)).entries, 1);
  const byAddress = await world.send(deletion("alice", [a("alice", "x")], later(11)));
  assert.deepEqual(byAddress.ok && byAddress.repositories, [{ name: nameOf("alice", "x"), to: "remove" }]);
  assert.deepEqual(leftInPurgatory(world), []);
  assert.deepEqual(world.store.keys("catalogue"), []);
  assert.equal(outcome(await world.send(announcement("alice", "x"))), "deleted");
  assert.equal(outcome(await world.send(announcement("alice", "x", [], later(12)))), "hold");
});

test("by address only what is not newer than the request goes", async () => {
  const world = new World();
  await world.send(announcement("alice", "x", [], later(20)));
  await world.send(deletion("alice", [a("alice", "x")], later(10)));
  assert.equal((await waitingTotals(world.store)).entries, 1);
});

test("threats 22: a stranger's deletion, before or after the event, has no effect", async () => {
  const world = new World();
  await world.host("eve", "own");
  const event = announcement("alice", "x");
  assert.equal(outcome(await world.send(deletion("eve", [["e", event.id], a("alice", "x")], later(1)))), "store");
  assert.equal(outcome(await world.send(event)), "hold");
  const verdict = await world.send(deletion("eve", [["e", event.id], a("alice", "x")], later(2)));
  assert.deepEqual(verdict.ok && [verdict.changes, verdict.repositories], [[], []]);
  assert.equal((await waitingTotals(world.store)).entries, 1);
  await world.release(nameOf("alice", "x"));
  await world.send(deletion("eve", [["e", event.id], a("alice", "x")], later(3)));
  assert.ok(world.store.ids().includes(event.id));
  assert.equal((await catalogueRow(world.store, nameOf("alice", "x")))?.status, "served");
});

test("a deletion that concerns nothing here, by somebody with nothing here, is refused; so is one with too many targets", async () => {
  const world = new World();
  assert.equal(outcome(await world.send(deletion("eve", [["e", oid("x").padEnd(64, "0")]]))), "unrelated");
  await world.host("alice", "x");
  assert.equal(outcome(await world.send(deletion("alice", [["e", oid("x").padEnd(64, "0")]]))), "store");
  const many = Array.from({ length: 1_001 }, (_, index): Tag => ["e", oid(`${index}`).padEnd(64, "0")]);
  assert.equal(outcome(await world.send(deletion("alice", many))), "too-many");
});

test("deleting a served announcement ends its repository and the exceptions that leaned on it", async () => {
  const world = new World();
  const event = await world.host("alice", "x", [maintainers("bob")]);
  await world.send(elsewhere("bob", "x"));
  const verdict = await world.send(deletion("alice", [["e", event.id]]));
  assert.ok(verdict.ok && verdict.action === "store");
  assert.deepEqual(verdict.repositories, [{ name: nameOf("alice", "x"), to: "delete" }]);
  assert.deepEqual(
    verdict.withdrawn?.map(({ id, kind }) => [id, kind]),
    [[event.id, kinds.announcement]],
  );
  assert.equal((await catalogueRow(world.store, nameOf("alice", "x")))?.status, "deleted");
  assert.equal(world.store.ids().length, 1);
});

test("a repository announced again after its deletion waits, and keeps its mark", async () => {
  const world = new World();
  const event = await world.host("alice", "x");
  const row = await catalogueRow(world.store, nameOf("alice", "x"));
  assert.ok(row);
  const mark = { created_at: startSeconds, id: event.id };
  setCatalogueRow(world.store, { ...row, mark, governing: event.id });
  await world.send(deletion("alice", [a("alice", "x")]));
  assert.equal(outcome(await world.send(announcement("alice", "x", [], later(20)))), "hold");
  assert.deepEqual((await catalogueRow(world.store, nameOf("alice", "x")))?.mark, mark);
  const again = await world.send(deletion("alice", [a("alice", "x")], later(30)));
  assert.deepEqual(again.ok && again.repositories, [{ name: nameOf("alice", "x"), to: "delete" }]);
});

test("deleting a served state tells which one went", async () => {
  const world = new World();
  await world.host("alice", "x");
  const served = state("alice", "x");
  await world.store.put(served);
  const verdict = await world.send(deletion("alice", [["e", served.id]]));
  assert.ok(verdict.ok && verdict.action === "store");
  assert.deepEqual(
    verdict.withdrawn?.map(({ id, identifier }) => [id, identifier]),
    [[served.id, "x"]],
  );
});

test("threats 30: a vanish request meant for another relay has no effect", async () => {
  const world = new World();
  await world.host("alice", "x");
  for (const relay of ["wss://other.example", "wss://grasp.example.evil", "grasp.example", "https://grasp.example"]) {
    assert.equal(outcome(await world.send(vanish("alice", relay))), "not-allowed", relay);
  }
  assert.equal(world.store.ids().length, 1);
});

test("who vanishes takes along what is stored and what waits, up to that time", async () => {
  for (const relay of ["ALL_RELAYS", "wss://GRASP.example/"]) {
    const world = new World();
    await world.host("alice", "x");
    await world.send(announcement("alice", "y"));
    await world.send(announcement("alice", "z", [], later(99)));
    await world.send(state("alice", "x"));
    const verdict = await world.send(vanish("alice", relay));
    assert.ok(verdict.ok && verdict.action === "store");
    assert.equal((await catalogueRow(world.store, nameOf("alice", "x")))?.status, "deleted");
    assert.equal(await catalogueRow(world.store, nameOf("alice", "y")), undefined);
    assert.equal((await waitingTotals(world.store)).entries, 1);
    assert.equal(world.store.ids().length, 1);
    assert.equal(outcome(await world.send(announcement("alice", "x", [], later(5)))), "vanished");
  }
  assert.equal(outcome(await new World().send(vanish("eve", "ALL_RELAYS"))), "unrelated");
});

test("every verdict can be written down and found again, by event and by repository, within a bound", async () => {
  const world = new World();
  const events = [announcement("alice", "x"), state("alice", "x"), elsewhere("bob", "x"), state("eve", "x")];
  for (const event of events) {
    const verdict = await world.send(event);
    await putDecisions(world.store, [decisionRecord(event, client(), verdict, world.now++)], 3);
  }
  assert.deepEqual(await decisionsOn(world.store, events[0]!.id), []);
  const [refusedRecord] = await decisionsOn(world.store, events[2]!.id);
  assert.equal(refusedRecord?.outcome, "refuse");
  assert.equal(refusedRecord?.code, "service-not-listed");
  assert.deepEqual(
    (await decisionsAbout(world.store, nameOf("alice", "x"), 10)).map(({ id }) => id),
    [events[1]!.id],
  );
  const again = decisionRecord(events[1]!, client(), await world.ask(events[1]!), world.now);
  await putDecisions(world.store, [again], 3);
  assert.equal((await decisionsOn(world.store, events[1]!.id))[0]?.outcome, "known");
  assert.equal(await recordCount(world.store), 3);
  assert.equal(world.store.keys("decisions").filter((key) => key.startsWith("p:")).length, 3);
});
