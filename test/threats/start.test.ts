// threats.md row 34: replaying a store full of large events holds a page of them, whatever their size.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import { eventOf } from "../../src/store/testing/events.js";
import { mebibyte } from "../harness/held-memory.js";

/** The largest page of the feed, in bytes of text, and how many events came in all. */
async function replayed(size: number, events: number): Promise<{ most: number; all: number }> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-replay-"));
  try {
    const before = await openLmdbStore(folder);
    for (let index = 0; index < events; index++) {
      await before.transact((tx) => tx.put(eventOf({ at: index, content: "x".repeat(size) })));
    }
    await before.close();
    const store = await openLmdbStore(folder);
    const stop = new AbortController();
    const result = { most: 0, all: 0 };
    for await (const page of store.feed(0, stop.signal)) {
      let bytes = 0;
      for (const entry of page) if (entry.type === "stored") bytes += entry.event.raw.length;
      result.most = Math.max(result.most, bytes);
      result.all += page.length;
      if (result.all === events) stop.abort();
    }
    await store.close();
    return result;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("threat 34: replays page by bytes: what is held does not follow the size of events", async () => {
  const small = await replayed(1_000, 600);
  assert.equal(small.all, 600);
  const large = await replayed(400_000, 120);
  assert.equal(large.all, 120);
  assert.ok(large.most < 2 * mebibyte, `${large.most} bytes in one page`);
});
