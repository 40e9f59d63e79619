import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { heldHere } from "../../../test/harness/held-memory.js";
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

test("readers who make no room hold nothing of the large pages they were given", async () => {
  const store = await openLmdbStore(join(folder, "no-room"), { indexAtRows: 1 });
  const largeBytes = 1_000_000;
  const readers = 60;
  await store.transact(async (tx) => {
    for (let at = 0; at < 3; at++) await tx.put(eventOf({ kind: 1, at, content: "x".repeat(largeBytes) }));
  });
  await store.compact();
  const stop = new AbortController();
  const before = heldHere();
  const waiting: Promise<unknown>[] = [];
  let given = 0;
  const read = async (isInRoom: () => void): Promise<void> => {
    const never = new Promise<void>((_, reject) =>
      stop.signal.addEventListener("abort", () => reject(new Error("stop"))),
    );
    let pages = 0;
    const beforePage = (): Promise<void> | undefined => {
      if (pages++ === 0) return undefined;
      isInRoom();
      return never;
    };
    for await (const page of store.query([{ kinds: [1] }], { passingRows: true, beforePage })) given += page.length;
  };
  for (let one = 0; one < readers; one++) {
    await new Promise<void>((resolve) => waiting.push(read(resolve).catch(() => undefined)));
  }
  assert.equal(given, readers);
  const heldMore = heldHere() - before;
  stop.abort();
  await Promise.all(waiting);
  await store.close();
  assert.ok(heldMore < (readers * largeBytes) / 4, `${heldMore} bytes are held`);
});
