// What the waiting room does, in the metrics and in the log (purgatory.md, "Metrics and logs").

import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { type Clock, unixSeconds } from "../base/clock.js";
import { type DecisionLog, releaseRecord } from "../catalogue/decisions.js";
import { repositoryAddress } from "../catalogue/repositories.js";
import type { EntryKind, WaitingEntry, WaitingPhase } from "../catalogue/waiting.js";
import type { Logger } from "../config/logging.js";
import type { TableReader } from "../store/port.js";
import type { Expiry, PurgatoryObserver, Released } from "./context.js";

interface PurgatoryMetrics {
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

/** The markers in square brackets are for scripts. */
export function purgatoryObserver(
  logger: Logger,
  metrics: PurgatoryMetrics,
  decisions: Pick<DecisionLog, "note">,
  clock: Clock,
): PurgatoryObserver {
  return {
    released(released) {
      metrics.released(released);
      const message = `released (${released.via}) after ${released.waitedSeconds} s`;
      decisions.note(releaseRecord(released.entry, unixSeconds(clock), message));
      logger.info({ id: released.id, kind: released.kind, via: released.via }, "released");
    },
    expired(entry, expiry) {
      metrics.expired(entry, expiry);
      const { id, kind, repositories } = entry;
      const text = `[PURGATORY_EXPIRED] id=${id} kind=${kind} source=${entry.source.type} to=${expiry.to}`;
      logger.info({ id, kind, repositories }, text);
    },
    placeholdersExpired(count) {
      metrics.placeholdersExpired(count);
      logger.info({ count }, `[PURGATORY_EXPIRED] kind=placeholder count=${count}`);
    },
    problem: (name, what) => logger.warn({ repo: repositoryAddress(name) }, what),
    progress: (sentence) => logger.info(sentence),
    failed: (what, error) => logger.error({ err: error }, `${what} failed`),
    refsBehind: (error) =>
      logger.error({ err: error }, "refs are written, and what follows them failed; git's own refs are tried again"),
  };
}
