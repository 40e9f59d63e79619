import { test } from "node:test";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { createMemoryStore } from "../../src/store/memory/memory-store.js";
import { fuzzStore } from "../../src/store/testing/fuzz.js";
import { runs } from "../fuzz/runs.js";

const seed = Number(process.env.HOLDFAST_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
const cases = runs(5_000);

test(`the memory store answers like the naive one (seed ${seed})`, async () => {
  const clock = new ManualClock();
  await fuzzStore({ seed, cases, clock, open: async () => createMemoryStore({ clock }) });
});
