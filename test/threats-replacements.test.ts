// threats.md row 54: replacing one event for years.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openLmdbStore } from "../src/store/lmdb/open.js";
import { eventOf } from "../src/store/testing/events.js";
import { until } from "./harness/server.js";

const replacements = 2_000;
const tags = [["d", "x".repeat(300)]];

/** One run of a server: replaces an event again and again; answers the store's size and what the feed tells. */
async function run(folder: string, day: number): Promise<{ bytes: number; position: number }> {
  const store = await openLmdbStore(folder, { indexAtRows: 100 });
  for (let index = 0; index < replacements; index += 100) {
    const some = Array.from({ length: 100 }, (_, more) =>
      eventOf({ kind: 30_000, at: day * 10_000 + index + more, tags }),
    );
    await Promise.all(some.map((event) => store.transact((tx) => tx.put(event))));
  }
  const answer = { bytes: store.stats.bytesOnDisk, position: store.position };
  await store.close();
  return answer;
}

test("threat 54: records of removals end: replacing an event day after day does not make the store grow", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-replaced-"));
  try {
    const sizes: number[] = [];
    for (let day = 1; day <= 6; day++) {
      const { bytes, position } = await run(folder, day);
      sizes.push(bytes);
      const store = await openLmdbStore(folder);
      assert.equal(store.position, position);
      assert.equal(store.stats.events, 1);
      const left = async (): Promise<number> => {
        const stop = new AbortController();
        let entries = 0;
        for await (const page of store.feed(0, stop.signal)) {
          entries += page.length;
          if (page.at(-1)?.seq === position) stop.abort();
        }
        return entries;
      };
      assert.ok(await until(async () => (await left()) <= 2), "what is held and the newest change");
      await store.close();
    }
    const [, second = 0] = sizes;
    assert.ok((sizes.at(-1) ?? 0) <= 1.5 * second, sizes.join(" "));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
