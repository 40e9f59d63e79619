// threats.md 15: a full disk refuses writes clearly, reads go on, and writes work again when there is room.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import { StoreFullError } from "../../src/store/port.js";
import { eventOf } from "../../src/store/testing/events.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-full-"));
const smallDisk = join(folder, "disk");
mkdirSync(smallDisk);
const isMounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=12m", "tmpfs", smallDisk]).status === 0;
after(() => {
  if (isMounted) spawnSync("umount", ["--lazy", smallDisk]);
  rmSync(folder, { recursive: true, force: true });
});

test("below the reserve writes are refused, questions are answered, and space brings writes back", async () => {
  let free = 1_000;
  const store = await openLmdbStore(join(folder, "injected"), { reserveBytes: 500, freeBytes: async () => free });
  const first = eventOf({ content: "first" });
  await store.transact((tx) => tx.put(first));
  // A writer at work looks for room every 20 ms, one that begins anew at once: this one has come to its end.
  await new Promise(setImmediate);
  free = 499;
  await assert.rejects(
    store.transact((tx) => tx.put(eventOf({ content: "second" }))),
    StoreFullError,
  );
  assert.equal((await store.transact((tx) => tx.put(first))).stored, false);
  assert.equal(await store.count([{}]), 1);
  assert.equal(store.position, 1);
  await new Promise(setImmediate);
  free = 500;
  assert.equal((await store.transact((tx) => tx.put(eventOf({ content: "third" })))).stored, true);
  await store.close();
});

test("a disk that is really full loses nothing acknowledged and recovers without a restart", {
  skip: isMounted ? false : "mounting a small disk needs root",
}, async () => {
  const path = join(smallDisk, "store");
  // The reserve is switched off: the error comes from the disk itself, in the middle of a commit.
  const options = { reserveBytes: 0, indexAtRows: 200 };
  const store = await openLmdbStore(path, options);
  const ballast = join(smallDisk, "ballast");
  writeFileSync(ballast, Buffer.alloc(6 * 2 ** 20));
  const acknowledged: string[] = [];
  const content = "x".repeat(4_000);
  let refusal: unknown;
  for (let count = 0; count < 5_000 && !refusal; count += 20) {
    const events = Array.from({ length: 20 }, (_, index) => eventOf({ content: `${content}${count + index}` }));
    const outcomes = await Promise.allSettled(events.map((event) => store.transact((tx) => tx.put(event))));
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === "fulfilled") acknowledged.push(events[index]?.id as string);
      else refusal = outcome.reason;
    }
  }
  assert.ok(refusal instanceof StoreFullError, String(refusal));
  assert.ok(acknowledged.length > 100);
  assert.equal(await store.count([{}]), acknowledged.length);
  await assert.rejects(
    store.transact((tx) => tx.put(eventOf({ content: "y".repeat(5 * 2 ** 20) }))),
    StoreFullError,
  );
  assert.equal(await store.count([{}]), acknowledged.length);
  unlinkSync(ballast);
  for (let count = 0; count < 300; count++) {
    const event = eventOf({ content: `after ${count}` });
    assert.equal((await store.transact((tx) => tx.put(event))).stored, true);
    acknowledged.push(event.id);
  }
  await store.close();
  const again = await openLmdbStore(path, options);
  const found: string[] = [];
  for await (const page of again.query([{ kinds: [1] }])) for (const row of page) found.push(row.id);
  assert.deepEqual(found.sort(), acknowledged.sort());
  await again.close();
});
