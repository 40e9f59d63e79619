// The fuzz tests with many more cases than `npm test` tries.
import { argumentsOf } from "./program.mjs";

argumentsOf(
  `npm run fuzz [-- --json]      the fuzz tests with more cases than npm test tries

FUZZ_RUNS says how many times as many (20), FUZZ_SEED repeats one that failed.`,
  { json: { type: "boolean" } },
);
process.env.FUZZ_RUNS ??= "20";
process.argv.splice(2, 0, "test/fuzz/");
await import("./test.mjs");
