// Power may fail at any moment: whatever was acknowledged is there, and every index agrees with the log.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as after } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { EventId, VerifiedEvent } from "../../src/nostr/event.js";
import { type Filter, filterJson, matcherOf } from "../../src/nostr/filter.js";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import type { Store } from "../../src/store/port.js";
import { pubkeyOf } from "../../src/store/testing/events.js";
import { Random } from "../../src/store/testing/random.js";
import { isEveryFault } from "../faults/every-fault.js";

const program = fileURLToPath(new URL("./ingest.js", import.meta.url));
const rounds = Number(process.env.HOLDFAST_KILL_ROUNDS ?? (isEveryFault ? 100 : 10));
const seed = Number(process.env.HOLDFAST_KILL_SEED ?? Math.floor(Math.random() * 2 ** 31));

async function ingestUntilKilled(folder: string, round: number, random: Random): Promise<EventId[]> {
  const child = spawn(process.execPath, [program, folder, String(seed + round)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const acknowledged: EventId[] = [];
  // By what it has done, not by the clock: on a busy machine it might do nothing in any given time.
  const enough = random.below(150);
  const laterMs = random.below(10);
  let isReady = false;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === "ready") isReady = true;
    else if (line.length === 64) acknowledged.push(line as EventId);
    if (isReady && acknowledged.length >= enough) void after(laterMs).then(() => child.kill("SIGKILL"));
  }
  const [code, signal] = await exited;
  assert.equal(signal, "SIGKILL", `the child ended by itself with ${code}`);
  assert.ok(isReady);
  return acknowledged;
}

async function idsOf(store: Store, filter: Filter): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of store.query([filter])) for (const row of page) ids.push(row.id);
  return ids.sort();
}

/** The log is the truth: every event in it under every term, nothing else anywhere. */
async function assertIndexesAgree(store: Store): Promise<ReadonlyMap<string, VerifiedEvent>> {
  const live = new Map<string, VerifiedEvent>();
  let reached = 0;
  const controller = new AbortController();
  if (store.position > 0) {
    for await (const page of store.feed(0, controller.signal)) {
      for (const entry of page) {
        reached = entry.seq;
        if (entry.type === "stored") live.set(entry.event.id, entry.event);
      }
      if (reached === store.position) break;
    }
  }
  assert.equal(store.stats.events, live.size);
  const filters: Filter[] = [
    {},
    { ids: [...live.keys()] as EventId[] },
    { kinds: [1] },
    { kinds: [5, 1621] },
    { kinds: [30_617, 10_002] },
    ...Array.from({ length: 10 }, (_, author) => ({ authors: [pubkeyOf(author)] })),
    ...Array.from({ length: 10 }, (_, author) => ({ authors: [pubkeyOf(author)], kinds: [1, 30_617] })),
    ...Array.from({ length: 20 }, (_, topic) => ({ tags: new Map([["t", [`topic-${topic}`]]]) })),
    ...Array.from({ length: 10 }, (_, person) => ({ tags: new Map([["p", [pubkeyOf(person)]]]) })),
  ];
  for (const filter of filters) {
    const matches = matcherOf(filter);
    const expected = [...live.values()].filter(matches).map(({ id }) => id);
    assert.deepEqual(await idsOf(store, filter), expected.sort(), JSON.stringify(filterJson(filter)).slice(0, 500));
    assert.equal(await store.count([filter]), expected.length);
  }
  const repositories = [...live.values()].filter(({ kind }) => kind === 30_617).map(({ id }) => id);
  assert.deepEqual(await idsOf(store, { search: "words" }), repositories.sort());
  for (const event of live.values()) assert.equal(await store.deletionOf(event), undefined);
  return live;
}

/** Read after each run and without changing anything: the next start forgets the removals of this one. */
async function noteRemovals(folder: string, gone: Set<string>): Promise<void> {
  const store = await openLmdbStore(folder, { readOnly: true });
  if (store.position > 0) {
    for await (const page of store.feed(0, new AbortController().signal)) {
      for (const entry of page) if (entry.type === "removed") gone.add(entry.id);
      if (page.at(-1)?.seq === store.position) break;
    }
  }
  await store.close();
}

test(`after ${rounds} kills everything acknowledged is there and every index agrees (seed ${seed})`, async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-kill-"));
  const random = new Random(seed);
  const acknowledged: EventId[] = [];
  const gone = new Set<string>();
  try {
    for (let round = 1; round <= rounds; round++) {
      acknowledged.push(...(await ingestUntilKilled(folder, round, random)));
      await noteRemovals(folder, gone);
      if (round % 20 !== 0 && round !== rounds) continue;
      const store = await openLmdbStore(folder, { indexAtRows: 60, reserveBytes: 0 });
      const live = await assertIndexesAgree(store);
      for (const id of acknowledged) {
        assert.ok(live.has(id) || gone.has(id), `${id} was acknowledged and is lost (round ${round})`);
        assert.notEqual(await store.row("meta", `last-${id}`), undefined);
      }
      await store.close();
    }
    assert.ok(acknowledged.length > rounds, "the children had time to do something");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
