import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { sortedInTurns } from "./others-first.js";

test("a list that is sorted in turns is in the order that sort gives it, equal ones as they came", async () => {
  const byKey = (a: readonly [number, number], b: readonly [number, number]): number => a[0] - b[0];
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(20), { maxLength: 2_000, size: "max" }), async (keys) => {
      const items = keys.map((key, index) => [key, index] as const);
      assert.deepEqual(await sortedInTurns(items, byKey), items.toSorted(byKey));
    }),
    { numRuns: 30 },
  );
});

test("others have their turn while a long list is sorted", async () => {
  let turns = 0;
  const count = (): void => {
    turns += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const items = Array.from({ length: 50_000 }, (_, index) => (index * 7_919) % 50_021);
  // Each comparison takes a while.
  const slowly = (a: number, b: number): number => {
    for (let spin = 0; spin < 200; spin++) Math.sqrt(spin * a);
    return a - b;
  };
  const sorted = await sortedInTurns(items, slowly);
  clearImmediate(next);
  assert.deepEqual(sorted.slice(0, 3), items.toSorted((a, b) => a - b).slice(0, 3));
  assert.ok(turns > 3, `${turns} turns`);
});
