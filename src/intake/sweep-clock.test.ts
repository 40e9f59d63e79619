// Wall clocks that jump while entries wait (purgatory.md, "Waiting room"): at whatever moment of a sweep.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { announcement, nameOf, oid, state } from "../admission/testing/world.js";
import { waitingAnnouncement } from "../catalogue/waiting.js";
import { Room } from "./testing/room.js";

const hourMs = 3_600_000;

async function waiting(context: TestContext) {
  const room = await Room.open();
  context.after(() => room.close());
  const enter = (identifier: string) => room.send(announcement("alice", identifier, [], room.now));
  const phaseOf = async (identifier: string): Promise<string | undefined> =>
    (await waitingAnnouncement(room.store, nameOf("alice", identifier)))?.phase;
  return { room, enter, phaseOf };
}

test("a clock that jumps in the middle of a sweep ends no wait", async (context) => {
  const { room, enter, phaseOf } = await waiting(context);
  await enter("early");
  const { sweepExpired } = room.store;
  context.mock.method(room.store, "sweepExpired", (...args: Parameters<typeof sweepExpired>) => {
    room.clock.jumpWall(hourMs);
    return sweepExpired.apply(room.store, args);
  });
  await room.sweep();
  context.mock.restoreAll();
  assert.equal(await phaseOf("early"), "waiting");
  await room.sweep();
  assert.equal(await phaseOf("early"), "waiting");
  await room.advance(31 * 60);
  assert.equal(await phaseOf("early"), "soft", "its half hour is over by the time that passed");
});

test("what comes after a clock went back in the middle of a sweep waits its own half hour", async (context) => {
  const { room, enter, phaseOf } = await waiting(context);
  await enter("early");
  room.clock.advance(10_000);
  room.clock.jumpWall(hourMs);
  const { sweepExpired } = room.store;
  context.mock.method(room.store, "sweepExpired", async (...args: Parameters<typeof sweepExpired>) => {
    room.clock.jumpWall(-hourMs);
    await enter("late");
    return sweepExpired.apply(room.store, args);
  });
  await room.sweep();
  context.mock.restoreAll();
  assert.deepEqual([await phaseOf("early"), await phaseOf("late")], ["waiting", "waiting"]);
  await room.advance(29 * 60);
  assert.deepEqual([await phaseOf("early"), await phaseOf("late")], ["waiting", "waiting"]);
  await room.advance(2 * 60);
  assert.deepEqual([await phaseOf("early"), await phaseOf("late")], ["soft", "soft"]);
});

for (const [where, jumpMs] of [
  ["back", -hourMs],
  ["ahead", hourMs],
] as const) {
  test(`what came after a jump ${where} and before it was noticed waits its own half hour`, async (context) => {
    const { room, enter, phaseOf } = await waiting(context);
    await enter("before");
    room.clock.advance(10_000);
    room.clock.jumpWall(jumpMs);
    room.clock.advance(10_000);
    await enter("after");
    await room.sweep();
    await room.advance(29 * 60);
    assert.deepEqual([await phaseOf("before"), await phaseOf("after")], ["waiting", "waiting"]);
    await room.advance(2 * 60);
    assert.deepEqual([await phaseOf("before"), await phaseOf("after")], ["soft", "soft"]);
  });
}

test("a wait that is renewed after the clock went back, and before that was noticed, goes on for its half hour", async (context) => {
  const { room, enter, phaseOf } = await waiting(context);
  await enter("renewed");
  room.clock.jumpWall(hourMs);
  await room.sweep();
  room.clock.advance(10_000);
  room.clock.jumpWall(-hourMs);
  await room.send(state("alice", "renewed", [["refs/heads/main", oid("far")]], room.now));
  await room.sweep();
  assert.equal(await phaseOf("renewed"), "waiting");
  await room.advance(29 * 60);
  assert.equal(await phaseOf("renewed"), "waiting");
  await room.advance(2 * 60);
  assert.equal(await phaseOf("renewed"), "soft");
});
