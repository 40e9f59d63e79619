// threats.md row 33 against the started server: pages about events that strangers made as large as they may be.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { kinds } from "../../src/nostr/event.js";
import type { Filter } from "../../src/nostr/filter.js";
import type { Reader, StoredRow } from "../../src/store/port.js";
import { KnownRoots, threadsOf } from "../../src/web/threads.js";
import { heldHere, mebibyte } from "../harness/held-memory.js";
import { newKey, type PagesWorld, startPagesWorld } from "../http/pages-world.js";

/** Rows of so many bytes for every question, and how many bytes of them were taken. */
function fatReader(rows: number, size: number): { reader: Reader; taken: () => number; parsed: () => number } {
  let taken = 0;
  let parsed = 0;
  const row = (kind: number, index: number): StoredRow => {
    const id = index.toString(16).padStart(64, `${kind % 10}`);
    return {
      seq: index + 1,
      id,
      created_at: index,
      size,
      get event() {
        parsed += size;
        return { id, pubkey: "ab".repeat(32), kind, created_at: index, tags: [], content: `title ${index}` };
      },
    } as unknown as StoredRow;
  };
  async function* query(filters: readonly Filter[]): AsyncGenerator<readonly StoredRow[]> {
    const kind = filters[0]?.kinds?.[0] ?? 1;
    for (let index = 0; index < rows; index++) {
      taken += size;
      yield [row(kind, index)];
    }
  }
  return { reader: { query } as unknown as Reader, taken: () => taken, parsed: () => parsed };
}

async function withWorld(story: (world: PagesWorld) => Promise<void>): Promise<void> {
  const world = await startPagesWorld({
    NGIT_DATABASE_BACKEND: "lmdb",
    // Large events count as many.
    NGIT_EVENTS_PER_MINUTE_PER_CONNECTION: "100000",
    NGIT_EVENTS_PER_MINUTE_PER_IP: "100000",
  });
  try {
    await story(world);
  } finally {
    await world.close();
  }
}

describe("threat 33", { timeout: 200_000 }, () => {
  test("threat 33: a repository's page reads so many bytes of issues and no more, and none of them twice", async () => {
    const known = new KnownRoots();
    const first = fatReader(300, mebibyte);
    const threads = await threadsOf(first.reader, known, "30617:a:b", new Set());
    assert.ok(first.taken() <= 24 * mebibyte, `${first.taken() / mebibyte} MiB were taken`);
    assert.equal(threads.isCut, true);
    assert.equal(threads.issues[0]?.title, "title 0");
    const again = fatReader(300, mebibyte);
    await threadsOf(again.reader, known, "30617:a:b", new Set());
    assert.equal(again.parsed(), 0, "roots that were read once are known");
    const small = fatReader(200, 1_000);
    assert.equal((await threadsOf(small.reader, new KnownRoots(), "30617:a:b", new Set())).issues.length, 200);
  });

  test("threat 33: many readers of a page about large issues cost no memory each", async () => {
    await withWorld(async (world) => {
      const owner = newKey();
      await world.host(owner, "fat", [{ "README.md": "# Fat" }]);
      const about = `30617:${owner.pubkey}:fat`;
      // The first is the newest, however long the machine takes for the others: a page shows the newest.
      for (let index = 0; index < 40; index++) {
        await world.publish(
          newKey(),
          kinds.issue,
          [["a", about]],
          `Issue ${index}\n${"x".repeat(900_000)}`,
          index * 600,
        );
      }
      const url = world.url(owner, "fat");
      assert.match(await (await fetch(url)).text(), /Issue 0/);
      const before = heldHere();
      let most = 0;
      const looking = setInterval(() => {
        const { heapUsed, external } = process.memoryUsage();
        most = Math.max(most, heapUsed + external - before);
      }, 2);
      const pages = await Promise.all(
        Array.from({ length: 40 }, async (_, index) => (await fetch(index % 4 === 0 ? world.origin : url)).status),
      );
      clearInterval(looking);
      assert.deepEqual([...new Set(pages)], [200]);
      assert.ok(most < 128 * mebibyte, `${Math.round(most / mebibyte)} MiB were held meanwhile`);
      const left = heldHere() - before;
      assert.ok(left < 16 * mebibyte, `${Math.round(left / mebibyte)} MiB stay`);
    });
  });
});
