// threats.md row 33 against the started server: pages about events that strangers made as large as they may be.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { kinds, type Pubkey } from "../../src/nostr/event.js";
import type { Filter } from "../../src/nostr/filter.js";
import type { Store, StoredRow } from "../../src/store/port.js";
import { ThreadIndex } from "../../src/web/talk/thread-index.js";
import { heldHere, mebibyte } from "../harness/held-memory.js";
import { newKey, type PagesWorld, startPagesWorld } from "../http/pages-world.js";

const owner = "ab".repeat(32) as Pubkey;
const address = `30617:${owner}:fat`;

/** Rows of so many bytes for every question, and how many bytes of them were looked at. */
function fatStore(rows: number, size: number): { store: Store; lookedAt: () => number; parsed: () => number } {
  let lookedAt = 0;
  let parsed = 0;
  const row = (kind: number, index: number): StoredRow => {
    const id = index.toString(16).padStart(64, "0");
    const tags = [["a", address]];
    const event = { id, pubkey: owner, created_at: index, kind, tags, content: `title ${index}\n${"x".repeat(100)}` };
    return {
      seq: index + 1,
      id,
      created_at: index,
      size,
      get event() {
        parsed += size;
        return event;
      },
      get json() {
        const text = Buffer.from(JSON.stringify(event));
        return {
          toString(encoding: BufferEncoding, start: number, end: number) {
            lookedAt += end - start;
            return text.toString(encoding, start, end);
          },
        };
      },
    } as unknown as StoredRow;
  };
  async function* query(filters: readonly Filter[]): AsyncGenerator<readonly StoredRow[]> {
    const kind = filters[0]?.kinds?.[0] ?? 1;
    if (kind !== kinds.issue) return;
    for (let index = 0; index < rows; index++) yield [row(kind, index)];
  }
  const store = { query, latest: async () => undefined, row: async () => undefined, onCommit: () => () => undefined };
  return { store: store as unknown as Store, lookedAt: () => lookedAt, parsed: () => parsed };
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
  test("threat 33: of large issues a list reads the beginnings and no more, and none of them twice", async () => {
    const fat = fatStore(300, mebibyte);
    const index = new ThreadIndex(fat.store);
    const threads = await index.of({ owner, identifier: "fat" });
    assert.equal(fat.parsed(), 0, "no event of a megabyte is read as a whole");
    assert.ok(fat.lookedAt() <= 300 * 32 * 1024, `${fat.lookedAt() / mebibyte} MiB were looked at`);
    // One that is large hides none that is older.
    assert.equal(threads.issues.length, 300);
    assert.equal(threads.issues[0]?.title, "title 299");
    const before = fat.lookedAt();
    await index.of({ owner, identifier: "fat" });
    assert.equal(fat.lookedAt(), before, "issues that were read once are known");
    index.close();
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
      const url = `${world.url(owner, "fat")}/issues`;
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
