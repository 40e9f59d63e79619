import assert from "node:assert/strict";
import { test } from "node:test";
import { TermOrder } from "./indexing.js";
import { termKeyOf } from "./rows.js";

test("an index run gets every term once, in the order of the keys' types and hashes", () => {
  const seed = 7;
  const terms = Array.from({ length: 5_000 }, (_, number) => `${"#kpqw*"[number % 6]}${number}`);
  const order = new TermOrder(terms, seed);
  let steps = 1;
  while (!order.prepare(900)) steps++;
  assert.equal(steps, 6);
  const ordered = Array.from({ length: order.length }, (_, index) => order.at(index));
  assert.deepEqual(ordered.toSorted(), terms.toSorted());
  const places = ordered.map((term) => {
    const { type, high } = termKeyOf(term, seed);
    return type * 2 ** 25 + (high >>> 7);
  });
  assert.deepEqual(
    places,
    places.toSorted((a, b) => a - b),
  );
});

test("an index run over nothing has nothing to prepare", () => {
  const order = new TermOrder([], 1);
  assert.equal(order.prepare(10), true);
  assert.equal(order.length, 0);
});
