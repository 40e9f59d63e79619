import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DueTimes } from "./due-times.js";

test("moments come out by time, equal ones in the order they went in", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20)), (times) => {
      const due = new DueTimes<number>();
      for (const [index, atMs] of times.entries()) due.add(atMs, index);
      const expected = times
        .map((atMs, index) => ({ atMs, index }))
        .sort((a, b) => a.atMs - b.atMs || a.index - b.index);
      const seen = expected.map(() => due.pop());
      assert.deepEqual(
        seen.map((moment) => moment?.value),
        expected.map((entry) => entry.index),
      );
      assert.equal(due.size, 0);
      assert.equal(due.pop(), undefined);
    }),
  );
});
