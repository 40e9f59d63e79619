// node dist/test/cluster/measure.js — what a commit costs with three machines (processes) on one PostgreSQL, beside one LMDB
// store in the same run: milliseconds until a single event is answered, and from its answer on one machine until another has it.
// On a machine with other work these numbers say little; their ratio says more.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import type { Store } from "../../src/store/port.js";
import { eventOf } from "../../src/store/testing/events.js";
import { NodeProcess } from "./node-process.js";
import { TestPostgres } from "./postgres.js";
import { newFolders, newSchema, openNode } from "./three-nodes.js";

const singles = 300;
const batch = 2_000;

const sorted = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b);
const at = (values: readonly number[], share: number): number =>
  Math.round((sorted(values)[Math.floor(values.length * share)] ?? 0) * 100) / 100;
const summary = (values: readonly number[]) => ({ p50: at(values, 0.5), p99: at(values, 0.99) });

let made = 0;
const next = () => eventOf({ content: `measured ${made++}` });

async function answers(store: Store): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < singles; index++) {
    const begun = performance.now();
    await store.transact((tx) => tx.put(next()));
    times.push(performance.now() - begun);
  }
  return times;
}

async function eventsASecond(store: Store): Promise<number> {
  const begun = performance.now();
  await Promise.all(Array.from({ length: batch }, () => store.transact((tx) => tx.put(next()))));
  return Math.round((batch * 1_000) / (performance.now() - begun));
}

const folder = mkdtempSync(join(tmpdir(), "holdfast-measure-"));
const folders = newFolders();
const postgres = await TestPostgres.start();
try {
  const single = await openLmdbStore(join(folder, "single"));
  const alone = { answer: summary(await answers(single)), eventsASecond: await eventsASecond(single) };
  await single.close();
  const schema = newSchema();
  const [a, b] = await Promise.all(
    ["a", "b"].map((name) => openNode(postgres, { schema, name, folder: folders.folder(name) })),
  );
  const third = await NodeProcess.start({ url: postgres.url(), schema, folder: folders.folder("c"), name: "c" });
  if (!a || !b) throw new Error("no machines");
  const arrived = new Map<string, number>();
  b.store.onCommit(({ entries }) => {
    for (const entry of entries) if (entry.type === "stored") arrived.set(entry.event.id, performance.now());
  });
  const idle = summary(await answers(a.store));
  const lags: number[] = [];
  for (let index = 0; index < singles; index++) {
    const event = next();
    const sent = performance.now();
    await a.store.transact((tx) => tx.put(event));
    while (!arrived.has(event.id)) await new Promise((resolve) => setImmediate(resolve));
    lags.push((arrived.get(event.id) as number) - sent);
  }
  const looks: number[] = [];
  for (let index = 0; index < singles; index++) {
    const begun = performance.now();
    await b.store.upToDate();
    looks.push(performance.now() - begun);
  }
  const writing = third.write(1_000_000);
  const contended = summary(await answers(a.store));
  await third.kill();
  await writing;
  const shared = { answer: idle, live: summary(lags), look: summary(looks), answerWhileAnotherWrites: contended };
  const rate = await eventsASecond(a.store);
  await Promise.all([a.close(), b.close()]);
  process.stdout.write(`${JSON.stringify({ alone, shared: { ...shared, eventsASecond: rate } }, undefined, 2)}\n`);
} finally {
  await postgres.dispose();
  folders.dispose();
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);
