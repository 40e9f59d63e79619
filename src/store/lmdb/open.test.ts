import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { storeContract } from "../testing/contract.js";
import { openLmdbStore } from "./open.js";

for (const indexAtRows of [1, 7, 5_000]) {
  storeContract(`LMDB, indexed at ${indexAtRows}`, async (options) => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-store-"));
    return {
      store: await openLmdbStore(folder, { ...options, indexAtRows }),
      dispose: async () => rmSync(folder, { recursive: true, force: true }),
    };
  });
}
