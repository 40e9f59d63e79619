import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DomainThrottle } from "./domains.js";

test("no window of a minute ever holds more starts than the rate, and the freed moment is exact", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20_000), { maxLength: 200 }), fc.integer({ min: 1, max: 6 }), (gaps, rate) => {
      const throttle = new DomainThrottle(() => ({ concurrent: 1_000, rate }), 60_000);
      const starts: number[] = [];
      let nowMs = 0;
      for (const gap of gaps) {
        nowMs += gap;
        const inWindow = starts.filter((start) => start > nowMs - 60_000).length;
        assert.equal(throttle.hasRate(nowMs), inWindow < rate);
        const freesAtMs = throttle.rateFreesAtMs(nowMs);
        if (freesAtMs === undefined) {
          throttle.connect(nowMs);
          starts.push(nowMs);
        } else {
          assert.ok(starts.filter((start) => start > freesAtMs - 60_000).length < rate);
          assert.equal(starts.filter((start) => start > freesAtMs - 1 - 60_000).length, rate);
        }
      }
    }),
  );
});

test("places are counted, and a finish without a start is a bug", () => {
  const throttle = new DomainThrottle(() => ({ concurrent: 2, rate: 30 }), 60_000);
  throttle.start(0);
  throttle.start(0);
  assert.equal(throttle.hasCapacity(0), false);
  throttle.finish();
  assert.equal(throttle.hasCapacity(0), true);
  throttle.finish();
  assert.throws(() => throttle.finish());
  assert.equal(throttle.isIdle(59_999), false);
  assert.equal(throttle.isIdle(60_000), true);
});
