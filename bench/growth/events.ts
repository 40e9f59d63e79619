// More events in the store: taking some in, asking, starting, memory, disk, compaction. The store is filled through its own
// door without checking signatures; what is measured then is a whole server over it.

import { join } from "node:path";
import { filterJson } from "../../src/nostr/filter.js";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import type { Store } from "../../src/store/port.js";
import { Random } from "../../src/store/testing/random.js";
import { Asker } from "../asker.js";
import { anonymousBytes, processorMs } from "../process-costs.js";
import { type BenchServer, inFolder, startBenchServer } from "../processes.js";
import { Corpus, fill, ingest, queryShapes } from "../store.js";
import type { Curve, Values } from "./curve.js";

const lastTaken = 20_000;
const inFlight = 1_000;
/** As many before: a program that is compiled while it runs has to have run. */
const asked = 300;
const filledAtOnce = 100_000;

/** All threads of this process: LMDB writes in one of its own. */
async function costUs(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

async function filled(store: Store, corpus: Corpus, size: number, progress: (text: string) => void): Promise<Values> {
  const last = Math.min(lastTaken, size);
  for (let done = 0; done < size - last; done += filledAtOnce) {
    await fill(store, corpus, Math.min(filledAtOnce, size - last - done));
    progress(`${store.stats.events.toLocaleString("en")} of ${size.toLocaleString("en")} events`);
  }
  const events = Array.from({ length: last }, () => corpus.event());
  const takenUs = await costUs(() => ingest(store, events, inFlight));
  return { "an event taken in": takenUs / last, "disk, an event": store.stats.bytesOnDisk / store.stats.events };
}

async function asking(server: BenchServer, corpus: Corpus): Promise<Values> {
  const asker = await Asker.connect(server.port);
  const values: Record<string, number> = {};
  for (const [name, make] of Object.entries(queryShapes(corpus, new Random(8)))) {
    const question = (): string => JSON.stringify(filterJson(make()));
    for (let count = 0; count < asked; count++) await asker.ask(question());
    const beforeMs = processorMs(server.pid);
    for (let count = 0; count < asked; count++) await asker.ask(question());
    values[`REQ ${name}`] = ((processorMs(server.pid) - beforeMs) / asked) * 1_000;
  }
  asker.close();
  return values;
}

async function compaction(folder: string): Promise<Values> {
  const store = await openLmdbStore(folder);
  const us = await costUs(() => store.compact());
  const { events, bytesOnDisk } = store.stats;
  await store.close();
  return { compaction: us / 1e6, "disk, an event, compacted": bytesOnDisk / events };
}

const shapes = Object.keys(queryShapes(new Corpus(1, "growing"), new Random(1)));

export const eventsCurve: Curve = {
  name: "events",
  of: "events",
  sizes: [1_000_000, 3_000_000, 10_000_000],
  series: [
    { name: "an event taken in", unit: "µs of processor time", work: "one" },
    ...shapes.map((shape) => ({ name: `REQ ${shape}`, unit: "µs of processor time", work: "one" as const })),
    { name: "start", unit: "ms of processor time", work: "one" },
    { name: "memory", unit: "MiB", work: "one" },
    { name: "disk, an event", unit: "bytes", work: "one" },
    { name: "disk, an event, compacted", unit: "bytes", work: "one" },
    { name: "compaction", unit: "s of processor time", work: "each" },
  ],
  measure: (size, progress) =>
    inFolder(async (folder) => {
      const corpus = new Corpus(7, "growing");
      const store = await openLmdbStore(join(folder, "relay"));
      const taken = await filled(store, corpus, size, progress);
      await store.close();
      progress("a server over it");
      const server = await startBenchServer(folder);
      const start = processorMs(server.pid);
      const questions = await asking(server, corpus);
      const memory = anonymousBytes(server.pid) / 2 ** 20;
      await server.close();
      progress("compaction");
      return { ...taken, ...questions, start, memory, ...(await compaction(join(folder, "relay"))) };
    }),
};
