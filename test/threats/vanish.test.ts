// threats.md row 39, second half: a request to vanish by a key with very many events.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { judgeVanish } from "../../src/admission/deletion.js";
import { client, keyOf, makeEvent, oid, startSeconds, World } from "../../src/admission/testing/world.js";
import type { Filter } from "../../src/nostr/filter.js";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import { createMemoryStore } from "../../src/store/memory/memory-store.js";
import type { Reader, Store } from "../../src/store/port.js";
import { eventOf, pubkeyOf } from "../../src/store/testing/events.js";
import { heldHere, mebibyte } from "../harness/held-memory.js";
import { until } from "../harness/server.js";

const count = 1_500;
/** Removals a commit may carry: few enough that nobody waits for them. */
const mostAtOnce = 250;
const vanish = eventOf({ kind: 62, at: 10_000, tags: [["relay", "ALL_RELAYS"]] });
const theirs = eventOf({ author: 2 });
const later = eventOf({ at: 20_000, content: "later" });
const events = Array.from({ length: count }, (_, index) =>
  eventOf({ at: index, kind: index % 2 ? 1 : 30_000, tags: [["d", `${index}`]] }),
);
const ofAuthor: Filter = { authors: [pubkeyOf(1)] };

async function fill(store: Store): Promise<void> {
  await Promise.all([...events, theirs, later].map((event) => store.transact((tx) => tx.put(event))));
}

async function idsOf(store: Store, filter: Filter): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of store.query([filter])) ids.push(...page.map(({ id }) => id));
  return ids;
}

async function assertGone(store: Store): Promise<void> {
  assert.deepEqual(await idsOf(store, ofAuthor), [later.id, vanish.id]);
  assert.deepEqual(await idsOf(store, { kinds: [1] }), [later.id, theirs.id]);
  assert.equal(await store.count([ofAuthor]), 2);
  assert.equal((await store.timedIds(ofAuthor, 5_000))?.length, 2);
  for (const event of events.slice(0, 400)) {
    assert.equal(await store.has(event.id), false);
    assert.equal(await store.latest({ kind: 30_000, pubkey: pubkeyOf(1), identifier: "0" }), undefined);
  }
  const again = await store.transact((tx) => tx.put(events[7] as never));
  assert.deepEqual(again, { stored: false, reason: "deleted" });
}

const isDone = (store: Store): Promise<boolean> => until(() => store.stats.events === 3);

describe("threat 39", { timeout: 200_000 }, () => {
  for (const backend of ["memory", "LMDB"] as const) {
    test(`threat 39: whoever vanishes is gone at once, and many events leave in small commits (${backend})`, async () => {
      const folder = mkdtempSync(join(tmpdir(), "holdfast-vanish-"));
      const store = backend === "memory" ? createMemoryStore() : await openLmdbStore(folder, { indexAtRows: 300 });
      try {
        await fill(store);
        let most = 0;
        const removed = new Set<string>();
        store.onCommit(({ entries }) => {
          const removals = entries.filter((entry) => entry.type === "removed");
          most = Math.max(most, removals.length);
          for (const { id } of removals as { id: string }[]) removed.add(id);
        });
        await store.transact((tx) => tx.put(vanish));
        await assertGone(store);
        assert.ok(await isDone(store));
        await assertGone(store);
        assert.equal(removed.size, count);
        assert.ok(most <= mostAtOnce, `${most} in one commit`);
      } finally {
        await store.close();
        rmSync(folder, { recursive: true, force: true });
      }
    });
  }

  test("threat 39: judging a request does not hold the events that go, only what follows from their end", async () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-vanish-"));
    const store = await openLmdbStore(folder);
    const large = 80;
    const repository = `30617:${keyOf("bob")}:x`;
    const pullRequests = Array.from({ length: large }, (_, index) =>
      makeEvent(
        keyOf("alice"),
        1618,
        [
          ["a", repository],
          ["c", oid(`${index}`)],
          ["subject", "x".repeat(mebibyte / 4)],
        ],
        startSeconds + index,
        "y".repeat(mebibyte / 2),
      ),
    );
    try {
      for (const event of pullRequests.splice(0)) await store.transact((tx) => tx.put(event));
      const request = makeEvent(keyOf("alice"), 62, [["relay", "ALL_RELAYS"]], startSeconds + large);
      const before = heldHere();
      let most = 0;
      // What waits is looked up after the stored events were read.
      const watched = (reader: Reader): Reader =>
        new Proxy(reader, {
          get(target, name) {
            if (name === "rows") most = Math.max(most, heldHere() - before);
            const value: unknown = Reflect.get(target, name, target);
            return typeof value === "function" ? value.bind(target) : value;
          },
        });
      const verdict = await store.transact((tx) =>
        judgeVanish(
          request,
          { reader: watched(tx), source: client(), nowSeconds: startSeconds + large },
          new World().settings,
        ),
      );
      assert.ok(verdict.ok && verdict.action === "store");
      assert.equal(verdict.withdrawn?.length, large);
      assert.deepEqual(verdict.withdrawn?.[0]?.repositories, [repository]);
      assert.ok(most < 16 * mebibyte, `${Math.round(most / mebibyte)} MiB were held`);
    } finally {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("threat 39: a removal that was cut short hides the rest at the next start and goes on", async () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-vanish-"));
    try {
      const store = await openLmdbStore(folder, { indexAtRows: 300 });
      await fill(store);
      await store.transact((tx) => tx.put(vanish));
      await store.close();
      const copy = await openLmdbStore(folder, { readOnly: true });
      assert.ok(copy.stats.events > 3, "something was left to do");
      await copy.close();
      const next = await openLmdbStore(folder);
      await assertGone(next);
      assert.ok(await isDone(next));
      await assertGone(next);
      await next.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
