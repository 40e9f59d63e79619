import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type HousekeepingFacts,
  type HousekeepingRecord,
  housekeepingDue,
  newRecord,
  recordAfter,
} from "./housekeeping.js";

const now = 1_700_000_000;
const day = 86_400;
const rules = { gitRepackAfterPacks: 20, gitCruftIntervalDays: 7, gitCruftAfterRepacks: 10 };
const quiet: Omit<HousekeepingFacts, "record"> = {
  packs: 3,
  bytes: 2 ** 20,
  hasBitmap: true,
  objectBytes: 0,
  hasGarbagePack: false,
  looseRefs: 5,
  freeBytes: 2 ** 40,
};
const done: HousekeepingRecord = { ...newRecord(now - day), doneAt: now - day, packs: 3, hasBitmap: true };

const cases: readonly [
  string,
  Partial<HousekeepingFacts>,
  Partial<HousekeepingRecord> | undefined,
  string | undefined,
][] = [
  ["a new repository without anything", { packs: 0, bytes: 0, hasBitmap: false }, undefined, undefined],
  ["a small one with few packs", { packs: 19, hasBitmap: false }, undefined, undefined],
  ["enough packs", { packs: 20, hasBitmap: false }, undefined, "geometric"],
  ["a first push that is large", { packs: 1, bytes: 2 ** 24, hasBitmap: false }, undefined, "geometric"],
  ["the same size, once it was done", { bytes: 2 ** 30 }, {}, undefined],
  ["packs since the last time, too few", { packs: 22 }, {}, undefined],
  ["packs since the last time, enough", { packs: 23 }, {}, "geometric"],
  ["many packs that were there the last time too", { packs: 40 }, { packs: 40 }, undefined],
  ["many loose refs", { looseRefs: 200 }, {}, "geometric"],
  ["many loose refs and no pack", { packs: 0, looseRefs: 200 }, {}, "geometric"],
  ["the bitmap is gone", { hasBitmap: false }, {}, "geometric"],
  ["there never was a bitmap", { hasBitmap: false }, { hasBitmap: false }, undefined],
  ["it gave way the last time", {}, { isUnfinished: true }, "geometric"],
  ["the tenth repack is over, and enough packs", { packs: 23 }, { repacksSinceCruft: 10 }, "cruft"],
  ["the tenth repack is over, nothing new", {}, { repacksSinceCruft: 10 }, undefined],
  ["a week without change", {}, { cruftAt: now - 7 * day }, undefined],
  ["a week with a repack in it", {}, { cruftAt: now - 7 * day, repacksSinceCruft: 1 }, "cruft"],
  ["a week with one new pack", { packs: 4 }, { cruftAt: now - 7 * day }, "cruft"],
  ["a week, and garbage waits for its end", {}, { cruftAt: now - 7 * day, hasGarbagePack: true }, "cruft"],
  ["not yet a week", { packs: 4 }, { cruftAt: now - 7 * day + 1, hasGarbagePack: true }, undefined],
  ["only garbage left", { packs: 0, hasGarbagePack: true }, { cruftAt: now - 7 * day, hasGarbagePack: true }, "cruft"],
  ["no room for a second copy", { packs: 30, bytes: 2 ** 30, freeBytes: 2 ** 30 }, {}, undefined],
  ["it failed a moment ago", { packs: 30 }, { failures: 1, failedAt: now - 3_599 }, undefined],
  ["it failed an hour ago", { packs: 30 }, { failures: 1, failedAt: now - 3_600 }, "geometric"],
  ["it failed often, half a day ago", { packs: 30 }, { failures: 9, failedAt: now - day / 2 }, undefined],
  ["it failed often, a day ago", { packs: 30 }, { failures: 9, failedAt: now - day }, "geometric"],
  [
    "it failed in the future, says a clock that was set back",
    { packs: 30 },
    { failures: 1, failedAt: now + day },
    "geometric",
  ],
];

describe("whether housekeeping is due", () => {
  for (const [name, facts, record, expected] of cases) {
    it(`${name}: ${expected ?? "no"}`, () => {
      const known = record && { ...done, ...record };
      assert.equal(housekeepingDue({ ...quiet, ...facts, record: known }, rules, now), expected);
    });
  }
});

describe("what is remembered of housekeeping", () => {
  const left = { ...quiet, packs: 2, hasGarbagePack: true };
  it("after an ordinary one: one more, and the week goes on", () => {
    const after = recordAfter({ ...done, failures: 3, isUnfinished: true }, "geometric", "done", left, now);
    const { repacksSinceCruft, cruftAt, packs, failures, isUnfinished } = after;
    assert.deepEqual([repacksSinceCruft, cruftAt, packs, failures, isUnfinished], [1, done.cruftAt, 2, 0, false]);
  });
  it("after one that sorted out garbage: both begin anew", () => {
    const after = recordAfter({ ...done, repacksSinceCruft: 10 }, "cruft", "done", left, now);
    assert.deepEqual([after.repacksSinceCruft, after.cruftAt, after.hasGarbagePack], [0, now, true]);
  });
  it("after one that gave way or failed: what was done before still counts", () => {
    assert.deepEqual(recordAfter(done, "cruft", "interrupted", left, now), { ...done, isUnfinished: true });
    assert.deepEqual(recordAfter(done, "cruft", "failed", left, now), { ...done, failures: 1, failedAt: now });
  });
});
