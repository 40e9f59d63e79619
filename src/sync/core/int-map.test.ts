import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { IntMap } from "./int-map.js";

it("an IntMap answers like a Map, whatever is put in and taken out", () => {
  const operation = fc.tuple(fc.integer({ min: 0, max: 60 }), fc.boolean(), fc.integer({ min: 0, max: 2 ** 32 - 1 }));
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 400 }), (operations) => {
      const map = new IntMap();
      const model = new Map<number, number>();
      for (const [key, put, value] of operations) {
        if (put) {
          map.set(key * 64, value);
          model.set(key * 64, value);
        } else assert.equal(map.delete(key * 64), model.delete(key * 64));
        assert.equal(map.get(key * 64), model.get(key * 64) ?? -1);
      }
      assert.equal(map.size, model.size);
      assert.deepEqual(
        [...map.keys()].sort((a, b) => a - b),
        [...model.keys()].sort((a, b) => a - b),
      );
    }),
  );
});
