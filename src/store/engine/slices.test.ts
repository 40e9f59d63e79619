import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Turns } from "./slices.js";

test("however many rest, each turn of the event loop resumes one, in the order they came", async () => {
  const turns = new Turns();
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
  const turns = new Turns();
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
