// threats.md row 54: replacing one event for years.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import type { Store } from "../../src/store/port.js";
import { eventOf } from "../../src/store/testing/events.js";
import { until } from "../harness/server.js";

const replacements = 600;
const tags = [["d", "x".repeat(300)]];

async function replace(store: Store, day: number): Promise<void> {
  for (let index = 0; index < replacements; index += 100) {
    const some = Array.from({ length: 100 }, (_, more) =>
      eventOf({ kind: 30_000, at: day * 10_000 + index + more, tags }),
    );
    await Promise.all(some.map((event) => store.transact((tx) => tx.put(event))));
  }
}

async function entriesLeft(store: Store): Promise<number> {
  const stop = new AbortController();
  let entries = 0;
  for await (const page of store.feed(0, stop.signal)) {
    entries += page.length;
    if (page.at(-1)?.seq === store.position) stop.abort();
  }
  return entries;
}

/** One run of a server: replaces an event again and again; answers the store's size and what the feed tells. */
async function run(folder: string, day: number): Promise<{ bytes: number; position: number }> {
  const store = await openLmdbStore(folder, { indexAtRows: 100 });
  await replace(store, day);
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
      assert.ok(await until(async () => (await entriesLeft(store)) <= 2), "what is held and the newest change");
      await store.close();
    }
    const [, second = 0] = sizes;
    assert.ok((sizes.at(-1) ?? 0) <= 1.5 * second, sizes.join(" "));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("threat 54: a process that runs for months forgets removals that are a day old and that every follower has read", {
  timeout: 900_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-replaced-"));
  const clock = new ManualClock();
  const store = await openLmdbStore(folder, { indexAtRows: 100, clock });
  const nextDay = (): void => clock.advance(86_400_000);
  try {
    const sizes: number[] = [];
    for (let day = 1; day <= 6; day++) {
      await replace(store, day);
      nextDay();
      assert.ok((await entriesLeft(store)) > replacements - 1, "those of the last day are told");
      sizes.push(store.stats.bytesOnDisk);
    }
    assert.ok(await until(async () => (await entriesLeft(store)) <= replacements + 1), "those before it are not");
    assert.ok((sizes.at(-1) ?? 0) <= 1.5 * (sizes[2] ?? 0), sizes.join(" "));

    const reading = new AbortController();
    const follower = store.feed(0, reading.signal)[Symbol.asyncIterator]();
    const read = (await follower.next()).value as readonly unknown[];
    let told = read.length;
    const before = await entriesLeft(store);
    await replace(store, 7);
    nextDay();
    await replace(store, 8);
    nextDay();
    nextDay();
    while (told < before + 2 * replacements) told += ((await follower.next()).value as readonly unknown[]).length;
    const isForgotten = async (): Promise<boolean> => {
      nextDay();
      return (await entriesLeft(store)) <= 2;
    };
    assert.ok(await until(isForgotten), "read by all: what is held and the newest change");
    reading.abort();
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
