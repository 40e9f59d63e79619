// How long the fuzz tests run. `npm test` tries three tenths of the cases that stand in a test (150 at least, where there
// are so many), `.ci/run` three times as many (`npm run fuzz` with FUZZ_RUNS=3). A failure prints its seed and path, and
// FUZZ_SEED repeats the run.

import fc from "fast-check";

const factor = Number(process.env.FUZZ_RUNS ?? 0.3);

/** Fewer may meet nothing of what they look for. */
const leastCases = 150;

export const runs = (few: number): number => Math.ceil(Math.max(few * factor, Math.min(few, leastCases)));

/** For fc.assert: few cases by default, the same ones again with FUZZ_SEED. */
export const parameters = (few: number) => ({
  numRuns: runs(few),
  ...(process.env.FUZZ_SEED === undefined ? {} : { seed: Number(process.env.FUZZ_SEED) }),
});

/** Text of the pieces that parsers trip over, and of anything at all. */
export const spiced = (pieces: readonly string[], maxLength = 8): fc.Arbitrary<string> =>
  fc
    .array(
      fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...pieces) }, fc.string({ unit: "binary", maxLength: 3 })),
      {
        maxLength,
      },
    )
    .map((parts) => parts.join(""));
