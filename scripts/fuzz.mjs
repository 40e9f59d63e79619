// The fuzz tests with many more cases than `npm test` tries. FUZZ_RUNS says how many times as many, FUZZ_SEED repeats one.
process.env.FUZZ_RUNS ??= "20";
process.argv.splice(2, 0, "test/fuzz-");
await import("./test.mjs");
