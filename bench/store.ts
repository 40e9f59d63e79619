// What the LMDB store does: durable ingest, the REQ shapes of goal P2 over a large store, times and ids for
// negentropy, opening. The corpus comes from a seed: 1 KB events, about nine index entries each, times that
// mostly grow (a relay's life) or random ones (an import, the worst case for the index).

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EventId, VerifiedEvent } from "../src/nostr/event.js";
import type { Filter } from "../src/nostr/filter.js";
import { openLmdbStore } from "../src/store/lmdb/open.js";
import type { Store } from "../src/store/port.js";
import { eventOf, pubkeyOf } from "../src/store/testing/events.js";
import { Random } from "../src/store/testing/random.js";
import type { Benchmark } from "./rows.js";

export interface StoreBenchOptions {
  readonly events?: number;
  readonly inFlight?: number;
  readonly seed?: number;
  readonly times?: "growing" | "random";
}

export interface StoreBenchRow {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
}

const firstTime = 1_600_000_000;
const timeSpan = 100_000_000;
const growth = 100;
const authors = 20_000;
const repositories = 5_000;
const text = "A sentence that somebody wrote about a change in a repository of some size. ".repeat(6);

export class Corpus {
  readonly ids: EventId[] = [];
  readonly #random: Random;

  #made = 0;

  constructor(
    seed: number,
    readonly times: "growing" | "random",
  ) {
    this.#random = new Random(seed);
  }

  /** Few authors and repositories have most of the events. */
  #zipf = (count: number): number => Math.floor(count ** this.#random.next()) - 1;

  repository = (number: number): string => `30617:${pubkeyOf(number)}:repository-${number}`;

  event(): VerifiedEvent {
    const random = this.#random;
    const author = this.#zipf(authors);
    const at =
      firstTime + (this.times === "random" ? random.below(timeSpan) : this.#made++ * growth + random.below(10_000));
    const root = this.ids.length > 0 ? (this.ids[random.below(this.ids.length)] as EventId) : "";
    const content = text + random.next();
    const repository = this.repository(this.#zipf(repositories));
    const people = [pubkeyOf(this.#zipf(authors)), pubkeyOf(this.#zipf(authors))];
    const event = eventOf({
      author,
      at,
      content,
      kind: random.pick([1, 7, 1111, 1617, 1621, 1630]),
      tags: [["a", repository], ["e", root, "", "root"], ...people.map((key) => ["p", key]), ["alt", "something"]],
    });
    if (random.chance(0.2)) this.ids.push(event.id);
    return event;
  }
}

/** Puts events in large transactions, as quickly as the store can. */
export async function fill(store: Store, corpus: Corpus, events: number): Promise<void> {
  const aTransaction = 5_000;
  for (let done = 0; done < events; done += aTransaction) {
    const batch = Array.from({ length: Math.min(aTransaction, events - done) }, () => corpus.event());
    await store.transact(async (tx) => {
      for (const event of batch) await tx.put(event);
    });
  }
}

export async function ingest(store: Store, events: readonly VerifiedEvent[], inFlight: number): Promise<number[]> {
  const latencies: number[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let event = events[next++]; event; event = events[next++]) {
      const put = event;
      const startedMs = performance.now();
      await store.transact((tx) => tx.put(put));
      latencies.push(performance.now() - startedMs);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return latencies.sort((a, b) => a - b);
}

const quantile = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;

async function answer(store: Store, filter: Filter): Promise<number> {
  let rows = 0;
  for await (const page of store.query([filter])) rows += page.length;
  return rows;
}

async function queryTimes(store: Store, filters: readonly Filter[]): Promise<{ times: number[]; rows: number }> {
  const times: number[] = [];
  let rows = 0;
  for (const filter of filters) {
    const startedMs = performance.now();
    rows += await answer(store, filter);
    times.push(performance.now() - startedMs);
  }
  return { times: times.sort((a, b) => a - b), rows: rows / filters.length };
}

export function queryShapes(corpus: Corpus, random: Random): Record<string, () => Filter> {
  const ids = (count: number): EventId[] => Array.from({ length: count }, () => random.pick(corpus.ids));
  const author = (): number => Math.floor(authors ** random.next()) - 1;
  return {
    "by id": () => ({ ids: ids(1) }),
    "kinds, limit 500": () => ({ kinds: [1621, 1617], limit: 500 }),
    "#a × 100, limit 500": () => ({
      tags: new Map([["a", Array.from({ length: 100 }, () => corpus.repository(random.below(repositories)))]]),
      limit: 500,
    }),
    "#e × 1,000, limit 5,000": () => ({ tags: new Map([["e", ids(1_000)]]), limit: 5_000 }),
    "#e × 1,000, limit 500": () => ({ tags: new Map([["e", ids(1_000)]]), limit: 500 }),
    "author + kind + #p": () => ({
      authors: [pubkeyOf(author())],
      kinds: [1111],
      tags: new Map([["p", [pubkeyOf(author())]]]),
      limit: 500,
    }),
    "author + kind + d": () => ({
      authors: [pubkeyOf(author())],
      kinds: [30_617],
      tags: new Map([["d", ["repository-1"]]]),
    }),
  };
}

export async function run(options: StoreBenchOptions = {}): Promise<StoreBenchRow[]> {
  const { events = 1_000_000, inFlight = 1_000, seed = 7, times = "growing" } = options;
  const folder = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
  const rows: StoreBenchRow[] = [];
  const note = (what: string, value: number, unit: string): void => {
    rows.push({ what, value, unit });
    process.stderr.write(`${what}: ${Math.round(value * 100) / 100} ${unit}\n`);
  };
  const corpus = new Corpus(seed, times);
  let store = await openLmdbStore(folder);
  const chunk = Math.min(20_000, events);
  try {
    let first: number[] = [];
    let spentMs = 0;
    for (let done = 0; done < events; done += chunk) {
      const batch = Array.from({ length: chunk }, () => corpus.event());
      const startedMs = performance.now();
      const cpu = process.cpuUsage();
      const latencies = await ingest(store, batch, inFlight);
      const ms = performance.now() - startedMs;
      spentMs += ms;
      if (done === 0) first = latencies;
      if (done === 0 || (done + chunk) % 100_000 === 0) {
        const { user, system } = process.cpuUsage(cpu);
        note(`ingest, ${inFlight} in flight, at ${done + chunk}`, (chunk / ms) * 1_000, "events/s");
        note("  process CPU an event", (user + system) / chunk, "µs");
        note("  p99", quantile(latencies, 0.99), "ms");
      }
    }
    note("ingest p50, empty store", quantile(first, 0.5), "ms");
    note("ingest overall", (events / spentMs) * 1_000, "events/s");
    const oneByOne = await ingest(
      store,
      Array.from({ length: 1_000 }, () => corpus.event()),
      1,
    );
    note("ingest one by one", 1_000 / (oneByOne.reduce((sum, ms) => sum + ms, 0) / 1_000), "events/s");
    note("bytes on disk", store.stats.bytesOnDisk / store.stats.events, "bytes an event");
    note("RSS after ingest", process.memoryUsage().rss / 2 ** 20, "MiB");
    await store.close();
    const startedMs = performance.now();
    store = await openLmdbStore(folder);
    note(`open with ${events} events`, performance.now() - startedMs, "ms");
    const random = new Random(seed + 1);
    for (const [name, make] of Object.entries(queryShapes(corpus, random))) {
      const filters = Array.from({ length: 300 }, make);
      const { times, rows: found } = await queryTimes(store, filters);
      note(`${name} p50 (${Math.round(found)} rows)`, quantile(times, 0.5), "ms");
      note(`${name} p99`, quantile(times, 0.99), "ms");
    }
    await measureTimedIds(store, events, note);
    note("RSS at the end", process.memoryUsage().rss / 2 ** 20, "MiB");
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return rows;
}

async function measureTimedIds(
  store: Store,
  events: number,
  note: (what: string, value: number, unit: string) => void,
): Promise<void> {
  const width = timeSpan * Math.min(1, 100_000 / events);
  const filters: [string, Filter][] = [
    ["times and ids of about 100k", { since: firstTime, until: firstTime + Math.floor(width) }],
    ["times and ids of all", {}],
    ["times and ids by two kinds", { kinds: [1621, 1617] }],
  ];
  for (const [name, filter] of filters) {
    const startedMs = performance.now();
    const found = await store.timedIds(filter, 2_000_000);
    note(`${name} (${found?.length})`, performance.now() - startedMs, "ms");
  }
}

const shown = (value: number): string => (value < 100 ? value.toFixed(2) : Math.round(value).toLocaleString("en"));

export const storeBenchmark: Benchmark = {
  name: "store",
  async run() {
    const rows = await run({ events: Number(process.env.BENCH_EVENTS ?? 1_000_000) });
    return rows.map(({ what, value, unit }) => ({
      goal: "-",
      work: `store, ${what}`,
      measured: `${shown(value)} ${unit}`,
    }));
  },
};

if (process.argv[1]?.endsWith("bench/store.js")) {
  const [events = "1000000", inFlight = "1000", times] = process.argv.slice(2);
  await run({ events: Number(events), inFlight: Number(inFlight), times: times === "random" ? "random" : "growing" });
}
