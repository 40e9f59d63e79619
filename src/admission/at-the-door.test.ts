import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { refusedForDisk } from "./at-the-door.js";

describe("an event while the disk fills up", () => {
  const cases: readonly [string, number, { git: number; relay: number }, boolean][] = [
    ["an issue below the mark", 1_621, { git: 0.94, relay: 0.94 }, true],
    ["an issue at the mark", 1_621, { git: 0, relay: 0.95 }, false],
    ["an issue while only git's disk is full", 1_621, { git: 0.99, relay: 0.5 }, true],
    ["an announcement while only git's disk is full", 30_617, { git: 0.99, relay: 0.5 }, false],
    ["a state while only git's disk is full", 30_618, { git: 0.95, relay: 0.5 }, false],
    ["a pull request while only git's disk is full", 1_618, { git: 0.95, relay: 0.5 }, false],
    ["a deletion on a full disk", 5, { git: 1, relay: 1 }, true],
    ["a request to vanish on a full disk", 62, { git: 1, relay: 1 }, true],
  ];
  for (const [name, kind, used, isTaken] of cases) {
    it(`${name} is ${isTaken ? "taken" : "refused"}`, () => {
      const refusal = refusedForDisk({ kind }, used, 95);
      assert.equal(refusal === undefined, isTaken);
      if (refusal) assert.equal(refusal.code, "disk-full");
    });
  }
});
