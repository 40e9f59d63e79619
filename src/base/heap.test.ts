import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Heap } from "./heap.js";

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
