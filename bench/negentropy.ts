// NIP-77 set reconciliation: time a side, ours and nostr-tools' in the same run.
// Goal P4: 100,000 items with 1,000 differences in at most 50 ms a side; identical sets in one round.

import { nip77 } from "nostr-tools";
import { NegentropyClient, NegentropyServer } from "../src/nostr/negentropy/reconcile.js";
import { NegentropyRecords, type TimedIds } from "../src/nostr/negentropy/records.js";
import { type Item, timedIdsOf, twoSides } from "../src/nostr/negentropy/testing/sets.js";
import { messageFromHex, messageToHex } from "../src/nostr/negentropy/wire.js";
import { type Benchmark, type BenchRow, milliseconds } from "./rows.js";

interface NegentropyRow {
  readonly implementation: string;
  readonly items: number;
  readonly differences: number;
  readonly prepareMs: number;
  readonly clientMs: number;
  readonly serverMs: number;
  readonly rounds: number;
  readonly kilobytes: number;
  readonly found: number;
}

interface Sides {
  /** Fingerprint sums or the like: everything that is done once a session. */
  prepare(): void;
  initiate(): string;
  answer(message: string): string;
  step(message: string): string | undefined;
  found(): number;
}

function ours(client: TimedIds, server: TimedIds): Sides {
  let asking: NegentropyClient;
  let answering: NegentropyServer;
  let found = 0;
  return {
    prepare() {
      asking = new NegentropyClient(new NegentropyRecords(client));
      answering = new NegentropyServer(new NegentropyRecords(server));
    },
    initiate: () => messageToHex(asking.initiate()),
    answer(message) {
      const answer = answering.reconcile(messageFromHex(message)!);
      if (!answer.ok) throw new Error(answer.error);
      return messageToHex(answer.message);
    },
    step(message) {
      const step = asking.reconcile(messageFromHex(message)!);
      if (!step.ok) throw new Error(step.error);
      found += step.have.length + step.need.length;
      return step.message && messageToHex(step.message);
    },
    found: () => found,
  };
}

/** Its storage is filled and sorted before the clock starts: only reconciling is compared. */
function theirs(client: readonly Item[], server: readonly Item[]): Sides {
  const storageOf = (items: readonly Item[]) => {
    const storage = new nip77.NegentropyStorageVector();
    for (const { time, id } of items) storage.insert(time, id);
    storage.seal();
    return storage;
  };
  const asking = new nip77.Negentropy(storageOf(client), 500_000);
  // It has only the asking side: a server of ours answers, so that both find the same.
  const answering = new NegentropyServer(new NegentropyRecords(timedIdsOf(server)));
  let found = 0;
  return {
    prepare() {},
    initiate: () => asking.initiate(),
    answer(message) {
      const answer = answering.reconcile(messageFromHex(message)!);
      if (!answer.ok) throw new Error(answer.error);
      return messageToHex(answer.message);
    },
    step(message) {
      const count = () => {
        found++;
      };
      return asking.reconcile(message, count, count) ?? undefined;
    },
    found: () => found,
  };
}

function measure(implementation: string, items: number, differences: number, sides: Sides): NegentropyRow {
  let clientMs = 0;
  let serverMs = 0;
  let bytes = 0;
  let rounds = 0;
  const began = performance.now();
  sides.prepare();
  // Both sides prepare alike: half of it is one side's.
  const prepareMs = (performance.now() - began) / 2;
  let at = performance.now();
  let message: string | undefined = sides.initiate();
  clientMs += performance.now() - at;
  while (message !== undefined) {
    at = performance.now();
    const answer = sides.answer(message);
    serverMs += performance.now() - at;
    bytes += (message.length + answer.length) / 2;
    at = performance.now();
    message = sides.step(answer);
    clientMs += performance.now() - at;
    rounds++;
  }
  const tenths = (ms: number) => Math.round(ms * 10) / 10;
  return {
    implementation,
    items,
    differences,
    prepareMs: tenths(prepareMs),
    clientMs: tenths(clientMs),
    serverMs: tenths(serverMs),
    rounds,
    kilobytes: Math.round(bytes / 1000),
    found: sides.found(),
  };
}

function run(sizes: readonly number[] = [100_000, 1_000_000]): NegentropyRow[] {
  const rows: NegentropyRow[] = [];
  for (const items of sizes) {
    for (const differences of [0, 1000]) {
      const sides = twoSides(items - differences / 2, differences / 2, differences / 2, 3e7, items);
      const client = timedIdsOf(sides.ours);
      const server = timedIdsOf(sides.theirs);
      // The first of three is a warm-up in all but name; all are shown.
      for (let repeat = 0; repeat < 3; repeat++) {
        rows.push(measure("ours", items, differences, ours(client, server)));
      }
      rows.push(measure("nostr-tools", items, differences, theirs(sides.ours, sides.theirs)));
    }
  }
  return rows;
}

export const negentropyBenchmark: Benchmark = {
  name: "negentropy",
  async run() {
    const all = run();
    const rows: BenchRow[] = [];
    for (const items of new Set(all.map((row) => row.items))) {
      for (const differences of [0, 1000]) rows.push(rowOf(all, items, differences));
    }
    return rows;
  },
};

/** The second and third of three runs; the slower side counts, with what it prepares once a session. */
function rowOf(all: readonly NegentropyRow[], items: number, differences: number): BenchRow {
  const same = all.filter((row) => row.items === items && row.differences === differences);
  const own = same.filter((row) => row.implementation === "ours").slice(1);
  const other = same.find((row) => row.implementation !== "ours");
  const sideMs = Math.min(...own.map((row) => Math.max(row.clientMs, row.serverMs) + row.prepareMs));
  const rounds = own[0]?.rounds ?? 0;
  const isGoal = items === 100_000;
  return {
    goal: isGoal ? "P4" : "-",
    work: `NIP-77, ${items.toLocaleString("en")} items, ${differences.toLocaleString("en")} differences`,
    measured: `${milliseconds(sideMs)} a side, ${rounds} ${rounds === 1 ? "round" : "rounds"}`,
    ...(other && { limit: `nostr-tools ${milliseconds(other.clientMs)}`, ratio: sideMs / other.clientMs }),
    ...(isGoal && {
      target: differences === 0 ? "one round" : "≤ 50 ms a side",
      met: differences === 0 ? rounds === 1 : sideMs <= 50,
    }),
  };
}
