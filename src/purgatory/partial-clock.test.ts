// The clock of a partial state when the wall clock does not go evenly.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { announcement, nameOf, oid, state } from "../admission/testing/world.js";
import { unixSeconds } from "../base/clock.js";
import { partialPush, startPartial } from "../catalogue/waiting.js";
import { Room } from "../intake/testing/room.js";
import { PartialClock } from "./partial-clock.js";

const name = nameOf("alice", "part");
const graceSeconds = 10;

/** Everything that can happen without the clock has happened. */
const settled = async (): Promise<void> => {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
};

/** A state of which a push brought a part, and when its clock was found to be over by the wall. The machine leads already, or not yet. */
async function pushed(context: TestContext, leads = true) {
  const room = await Room.open();
  const event = state("alice", "part", [["refs/heads/main", oid("far")]], room.now);
  await room.send(announcement("alice", "part", [], room.now));
  await room.send(event);
  const looks: boolean[] = [];
  const epochs: (number | undefined)[] = [];
  const open = () =>
    new PartialClock({
      store: room.store,
      clock: room.clock,
      graceSeconds: () => graceSeconds,
      isOver: async (_, { epoch }) => {
        epochs.push(epoch);
        const { since } = (await partialPush(room.store, name, event.id))!;
        looks.push(since + graceSeconds <= unixSeconds(room.clock));
      },
      failed: (error) => assert.fail(String(error)),
    });
  const clock = open();
  if (leads) await clock.open();
  await room.store.transact(async (tx) => void (await startPartial(tx, name, event.id, room.now)));
  context.after(async () => {
    await clock.close();
    await room.close();
  });
  const advance = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second++) {
      room.clock.advance(1_000);
      await settled();
    }
  };
  return { room, event, clock, open, looks, epochs, advance };
}

test("a partial state's clock that ran out while the wall clock went back is set again", async (context) => {
  const { room, event, clock, looks, advance } = await pushed(context);
  await clock.watch(name, event.id);
  room.clock.jumpWall(-60_000);
  await advance(12);
  assert.deepEqual(looks, [false]);
  await advance(70);
  assert.equal(looks.at(-1), true);
  const count = looks.length;
  await advance(100);
  assert.equal(looks.length, count, "it runs out once");
});

test("a partial state's clock that is set while the wall clock is wrong runs out soon after it is right again", async (context) => {
  const { room, event, clock, looks, advance } = await pushed(context);
  room.clock.jumpWall(-3_600_000);
  await clock.watch(name, event.id);
  room.clock.jumpWall(3_600_000);
  await advance(12);
  assert.deepEqual(looks, [true]);
});

test("a partial state waits no longer than twice its grace when the wall clock goes back and stays there", async (context) => {
  const { room, event, clock, looks, advance } = await pushed(context);
  await clock.watch(name, event.id);
  room.clock.jumpWall(-365 * 86_400_000);
  await advance(24);
  assert.deepEqual(looks, [false, true]);
});

test("a clock that was put back while the server was down does not keep a partial state for longer than its grace", async (context) => {
  const { room, clock, looks, advance } = await pushed(context, false);
  room.clock.jumpWall(-365 * 86_400_000);
  await clock.open();
  await advance(12);
  assert.deepEqual(looks, [true]);
});

test("a machine that does not lead starts no clock; the one that leads next goes on from the rows", async (context) => {
  const { event, clock, looks, epochs, advance } = await pushed(context, false);
  await clock.watch(name, event.id);
  await advance(graceSeconds + 2);
  assert.deepEqual(looks, []);
  await clock.open({ epoch: 3 });
  await advance(2);
  assert.deepEqual([looks, epochs], [[true], [3]], "as the work of the leader of that epoch");
  await clock.close();
  await clock.watch(name, event.id);
  await advance(graceSeconds + 2);
  assert.deepEqual(looks, [true]);
});
