// The waiting room's numbers (purgatory.md, "Metrics and logs").

import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { EntryKind, WaitingEntry, WaitingPhase } from "../catalogue/waiting.js";
import type { TableReader } from "../store/port.js";
import type { Released } from "./store-released.js";
import type { Expiry } from "./sweep.js";

export interface PurgatoryMetrics {
  released(released: Released): void;
  expired(entry: WaitingEntry, expiry: Expiry): void;
  placeholdersExpired(count: number): void;
}

type EntryLabel = `${EntryKind | "placeholder"}:${WaitingPhase}`;
type EntryCounts = ReadonlyMap<EntryLabel, number>;

export function createPurgatoryMetrics(registry: Registry, counts: () => Promise<EntryCounts>): PurgatoryMetrics {
  const registers = [registry];
  new Gauge({
    name: "ngit_purgatory_entries",
    help: "Events that wait for git data",
    labelNames: ["kind", "phase"],
    registers,
    async collect() {
      this.reset();
      for (const [key, count] of await counts()) {
        const [kind = "", phase = ""] = key.split(":");
        this.set({ kind, phase }, count);
      }
    },
  });
  const expired = new Counter({
    name: "ngit_purgatory_expired_total",
    help: "Events whose git data did not come in time",
    labelNames: ["kind", "source"],
    registers,
  });
  const released = new Counter({
    name: "ngit_purgatory_released_total",
    help: "Events served because their git data is here",
    labelNames: ["kind", "via"],
    registers,
  });
  const wait = new Histogram({
    name: "ngit_purgatory_wait_seconds",
    help: "How long events waited before they were served",
    buckets: [1, 5, 20, 60, 180, 600, 1800, 21_600, 86_400, 604_800],
    registers,
  });
  return {
    released({ kind, via, waitedSeconds }) {
      released.inc({ kind, via });
      wait.observe(waitedSeconds);
    },
    expired(entry) {
      // When its time was over. A soft one that goes for good was counted then.
      if (entry.phase === "waiting") expired.inc({ kind: entry.kind, source: entry.source.type });
    },
    // Only clients push.
    placeholdersExpired: (count) => expired.inc({ kind: "placeholder", source: "client" }, count),
  };
}

/** How many entries of each kind wait, counted when somebody asks. */
export async function countEntries(reader: TableReader): Promise<EntryCounts> {
  const counts = new Map<EntryLabel, number>();
  for await (const [, entry] of reader.rows<WaitingEntry>("purgatory", { prefix: "e:" })) {
    const key = `${entry.kind}:${entry.phase}` as const;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  // Data that came before its event.
  for await (const _row of reader.rows("purgatory", { prefix: "g:" })) {
    counts.set("placeholder:waiting", (counts.get("placeholder:waiting") ?? 0) + 1);
  }
  return counts;
}
