// Each world is clean as the core is; with the old behaviour, put between the world and the core, it is not.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { faults } from "./faults.js";
import { run, runsKept } from "./run.js";
import { noHardships } from "./scenario.js";

/** Seed 1 is a small world; most faults show in it already. */
const seeds = Array.from({ length: 15 }, (_, at) => at + 1);

describe("a fault that once was", () => {
  const clean = runsKept();
  for (const { was, mistake, properties, hardships, manners, hours = 3 } of faults) {
    it(`would be noticed: ${was}`, () => {
      const options = { hours, hardships: { ...noHardships, ...hardships }, ...(manners && { manners }) };
      const isIt = (problem: string): boolean => properties.some((n) => problem.startsWith(`property ${n}:`));
      for (const seed of seeds) {
        assert.deepEqual(clean({ ...options, seed }).problems, [], `seed ${seed}`);
        if (run({ ...options, seed, broken: mistake, endsAt: isIt }).problems.some(isIt)) return;
      }
      assert.fail("nothing noticed it");
    });
  }
});
