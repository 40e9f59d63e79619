import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Filter } from "../../nostr/filter.js";
import type { Store } from "../port.js";
import { eventOf } from "../testing/events.js";
import { openLmdbStore } from "./open.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-passing-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Some are larger than a block of memory, some pages need several blocks. */
const contentBytes = (at: number): number => (at % 10 === 3 ? 200_000 : at % 3 === 0 ? 60_000 : at);

/** A store whose rows have left memory: compaction waits for the index. */
async function indexedStore(name: string): Promise<Store> {
  const store = await openLmdbStore(join(folder, name), { indexAtRows: 1 });
  await store.transact(async (tx) => {
    await tx.put(eventOf({ kind: 7, at: 5, content: "the oldest" }));
    for (let at = 10; at < 50; at++) await tx.put(eventOf({ kind: 1, at, content: "x".repeat(contentBytes(at)) }));
  });
  await store.compact();
  return store;
}

async function textsOf(store: Store, filters: readonly Filter[], passingRows: boolean): Promise<string[]> {
  const texts: string[] = [];
  for await (const page of store.query(filters, { pageRows: 3, passingRows })) {
    for (const row of page) texts.push(row.json.toString());
  }
  return texts;
}

test("rows that pass are whole when they are copied, also one that was found long before its page", async () => {
  const store = await indexedStore("whole");
  const filters: Filter[] = [{ kinds: [7] }, { kinds: [1] }];
  const texts = await textsOf(store, filters, true);
  assert.equal(texts.length, 41);
  assert.match(texts[40] ?? "", /the oldest/);
  assert.deepEqual(texts, await textsOf(store, filters, false));
  await store.close();
});

test("rows that pass lie where those of the page before lay, and rows that are kept do not", async () => {
  const store = await indexedStore("again");
  const memories = async (passingRows: boolean): Promise<Set<unknown>> => {
    const found = new Set<unknown>();
    for await (const [row] of store.query([{ kinds: [1] }], { pageRows: 1, passingRows })) {
      found.add(`${row?.json.byteOffset}`).add(row?.json.buffer);
    }
    return found;
  };
  // One place for the small ones, one for the large ones that fit a block; the four that do not have one each.
  const passing = await memories(true);
  assert.ok(passing.size <= 8, `${passing.size} places`);
  assert.ok((await memories(false)).size > 25);
  await store.close();
});
