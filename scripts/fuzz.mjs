// The fuzz tests with many more cases than `npm test` tries.
import { argumentsOf } from "./program.mjs";

argumentsOf(
  `npm run fuzz [-- --json]      the fuzz tests with more cases than npm test tries

FUZZ_RUNS multiplies the cases that stand in the tests (20; npm test: 0.3), FUZZ_SEED repeats one that failed.`,
  { json: { type: "boolean" } },
);
process.env.FUZZ_RUNS ??= "20";
process.argv.splice(2, 0, "test/fuzz/", "test/relay/fuzz", "test/store/fuzz");
await import("./test.mjs");
