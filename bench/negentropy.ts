// NIP-77 set reconciliation: time a side, ours and nostr-tools' in the same run.
//   node dist/bench/negentropy.js [items …]      (100000 and 1000000 without arguments)
// Goal P4: 100,000 items with 1,000 differences in at most 50 ms a side; identical sets in one round.

import { pathToFileURL } from "node:url";
import { nip77 } from "nostr-tools";
import { NegentropyClient } from "../src/nostr/negentropy/client.js";
import { NegentropyRecords, type TimedIds } from "../src/nostr/negentropy/records.js";
import { NegentropyServer } from "../src/nostr/negentropy/server.js";
import { type Item, timedIdsOf, twoSides } from "../src/nostr/negentropy/testing/sets.js";
import { messageFromHex, messageToHex } from "../src/nostr/negentropy/wire.js";

export interface NegentropyRow {
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

export function run(sizes: readonly number[] = [100_000, 1_000_000]): NegentropyRow[] {
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

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const sizes = process.argv.slice(2).map(Number);
  console.table(sizes.length > 0 ? run(sizes) : run());
  console.log("client and server: milliseconds of one side in all rounds, hex included; prepare: once a session.");
  console.log("nostr-tools' row: its client against our server.");
}
