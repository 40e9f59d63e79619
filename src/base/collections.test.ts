import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { GatheredBytes, Heap } from "./collections.js";

test("values come out by key, equal keys by the given order, whatever was added, removed and replaced between", () => {
  const step = fc.oneof(
    fc.record({ type: fc.constant("add" as const), key: fc.nat(5) }),
    fc.record({ type: fc.constant("replace" as const), key: fc.nat(5) }),
    fc.record({ type: fc.constant("remove" as const), key: fc.constant(0) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const heap = new Heap<{ key: number; order: number }>((a, b) => a.order < b.order);
      const sorted: { key: number; order: number }[] = [];
      for (const [order, { type, key }] of steps.entries()) {
        const value = { key, order };
        if (type === "remove") assert.equal(heap.removeFirst(), sorted.shift());
        else if (type === "add") heap.add(key, value);
        else if (sorted.shift()) heap.replaceFirst(key, value);
        else continue;
        if (type !== "remove") sorted.push(value);
        sorted.sort((a, b) => a.key - b.key || a.order - b.order);
        assert.equal(heap.first, sorted[0]);
        assert.equal(heap.size, sorted.length);
      }
    }),
  );
});

test("pieces of any size, empty ones too, are one text in their order", () => {
  const gathered = new GatheredBytes();
  const pieces = ["", "a", "", "bc", "d".repeat(1_000), "", "e"];
  for (const piece of pieces) gathered.add(Buffer.from(piece));
  assert.equal(gathered.all.toString(), pieces.join(""));
  assert.equal(gathered.length, 1_004);
  assert.equal(new GatheredBytes().all.length, 0);
});

test("adding never writes into a piece that was given", () => {
  const slab = Buffer.from("abXX");
  const gathered = new GatheredBytes();
  gathered.add(slab.subarray(0, 2));
  gathered.add(Buffer.from("cd"));
  assert.equal(gathered.all.toString(), "abcd");
  assert.equal(slab.toString(), "abXX");
});

test("a million pieces of one byte are held in little more than their bytes", () => {
  const gathered = new GatheredBytes();
  for (let at = 0; at < 1_000_000; at++) gathered.add(Buffer.from([at % 256]));
  assert.equal(gathered.length, 1_000_000);
  assert.ok(gathered.all.buffer.byteLength <= 2_000_000);
});
