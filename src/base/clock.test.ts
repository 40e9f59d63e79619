import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { LoopTurns } from "./clock.js";

test("however many rest, each turn of the event loop resumes one, in the order they came", async () => {
  const turns = new LoopTurns();
  const resumed: string[] = [];
  const rests = ["a", "b", "c"].map((name) => turns.rest().then(() => resumed.push(name)));
  const seen: number[] = [];
  while (resumed.length < 3) {
    await nextTurn();
    seen.push(resumed.length);
  }
  await Promise.all(rests);
  assert.deepEqual(resumed, ["a", "b", "c"]);
  assert.deepEqual(seen, [1, 2, 3]);
});

test("who rests again goes behind the others", async () => {
  const turns = new LoopTurns();
  const order: string[] = [];
  const walk = async (name: string): Promise<void> => {
    for (let step = 0; step < 3; step++) {
      await turns.rest();
      order.push(name);
    }
  };
  await Promise.all([walk("a"), walk("b")]);
  assert.equal(order.join(""), "ababab");
});

test("who begins late in a turn of the event loop waits for a turn of its own", async () => {
  const turns = new LoopTurns();
  const begun: string[] = [];
  const begin = async (name: string, nowMs: number): Promise<void> => {
    await turns.begin(nowMs);
    begun.push(name);
  };
  assert.equal(turns.begin(100), undefined);
  assert.equal(turns.begin(103), undefined);
  const waiting = [begin("a", 103.5), begin("b", 103.5)];
  await Promise.resolve();
  assert.deepEqual(begun, []);
  await nextTurn();
  assert.deepEqual(begun, ["a"]);
  await Promise.all(waiting);
  assert.deepEqual(begun, ["a", "b"]);
  await nextTurn();
  assert.equal(turns.begin(200), undefined);
});

test("a turn of the event loop is late a moment after somebody asked first, and the next one is not", async () => {
  const turns = new LoopTurns();
  assert.equal(turns.isLate(100), false);
  assert.equal(turns.isLate(103), false);
  assert.equal(turns.isLate(103.5), true);
  await nextTurn();
  assert.equal(turns.isLate(104), false);
});
