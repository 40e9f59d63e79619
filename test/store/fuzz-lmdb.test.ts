import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import { fuzzStore } from "../../src/store/testing/fuzz.js";
import { runs } from "../fuzz/runs.js";

const seed = Number(process.env.HOLDFAST_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
const cases = runs(2_000);

test(`the LMDB store answers like the naive one, over index runs and restarts (seed ${seed})`, async () => {
  const clock = new ManualClock();
  const root = mkdtempSync(join(tmpdir(), "holdfast-fuzz-"));
  let worlds = 0;
  const openAt = () => openLmdbStore(join(root, String(worlds)), { clock, indexAtRows: 40, rememberTagsAfter: 1 });
  try {
    await fuzzStore({
      seed,
      cases,
      clock,
      open: () => {
        worlds++;
        return openAt();
      },
      reopen: async (store) => {
        await store.close();
        return openAt();
      },
    });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
