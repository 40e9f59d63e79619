// The numbers of sync, named as in event-sync.md "Metrics". Counts are kept here by relay and handed over when asked,
// gauges are read from the core's snapshot at that moment. Labels are relay addresses in normal form and our own
// words; nothing a relay wrote.

import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { gaugeOf } from "../base/gauge.js";
import type { Command, RelayKey } from "./core/messages.js";
import type { OutboxSnapshot } from "./core/outbox-standing.js";
import type { CoreSnapshot, RelaySnapshot } from "./core/standing.js";

export interface RelayCounts {
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly gapEvents: number;
}

export type SyncMetrics = ReturnType<typeof createSyncMetrics>;

/** Nothing is gathered. */
export const noOutbox: OutboxSnapshot = {
  ...{ repositories: 0, participants: 0, relays: 0, connected: 0, live: 0, unlisted: 0, incomplete: 0, unplaced: 0 },
  lists: { found: 0, none: 0, asked: 0 },
};

const states = ["disconnected", "connecting", "syncing", "live", "live-with-failures"] as const;

/** relay → label → count. */
class Tally {
  readonly byRelay = new Map<string, Map<string, number>>();

  add(relay: string, label: string, by: number): void {
    const labels = this.byRelay.get(relay) ?? new Map<string, number>();
    labels.set(label, (labels.get(label) ?? 0) + by);
    this.byRelay.set(relay, labels);
  }

  get(relay: string, label: string): number {
    return this.byRelay.get(relay)?.get(label) ?? 0;
  }
}

/** Relays that are tracked no more keep their counts until there are too many of them. */
const maxRelaysCounted = 5_000;

export function createSyncMetrics(registry: Registry, maxRelayLabels: () => number) {
  const registers = [registry];
  const empty = { relays: [], connected: 0, dead: 0, hot: 0, cold: 0, unplaced: 0, outbox: noOutbox };
  let snapshot: () => Pick<CoreSnapshot, keyof typeof empty> & Partial<Pick<CoreSnapshot, "naughty">> = () => empty;
  const tallies: Tally[] = [];

  const labelsOf = () => {
    const traffic = new Map<string, number>();
    for (const relay of transferred.byRelay.keys()) {
      traffic.set(relay, transferred.get(relay, "in") + transferred.get(relay, "out"));
    }
    const names = [
      ...snapshot().relays.map(({ relay }) => relay),
      ...traffic.keys(),
      ...counts.connection_attempts.byRelay.keys(),
    ];
    return relayLabels(names, traffic, maxRelayLabels());
  };
  const tallied = (name: string, help: string, label?: string): Tally => {
    const tally = new Tally();
    tallies.push(tally);
    new Counter<string>({
      name,
      help,
      labelNames: ["relay", ...(label === undefined ? [] : [label])],
      registers,
      collect() {
        this.reset();
        const labelOf = labelsOf();
        for (const [relay, values] of tally.byRelay) {
          for (const [value, total] of values) {
            this.inc({ relay: labelOf(relay), ...(label !== undefined && { [label]: value }) }, total);
          }
        }
      },
    });
    return tally;
  };
  /** Undefined: there is nothing to say of this one. */
  type Read = (relay: RelaySnapshot) => number | undefined;
  const perRelay = (name: string, help: string, read: Read, how: "sum" | "max" = "sum") =>
    new Gauge({
      name,
      help,
      labelNames: ["relay"],
      registers,
      collect() {
        this.reset();
        const labelOf = labelsOf();
        const values = new Map<string, number>();
        for (const relay of snapshot().relays) {
          const [label, value] = [labelOf(relay.relay), read(relay)];
          const before = values.get(label) ?? 0;
          if (value !== undefined) values.set(label, how === "sum" ? before + value : Math.max(before, value));
        }
        for (const [relay, value] of values) this.set({ relay }, value);
      },
    });
  const perRelayAnd = (
    name: string,
    help: string,
    label: string,
    read: (relay: RelaySnapshot) => readonly (readonly [string, number])[],
  ) =>
    new Gauge<string>({
      name,
      help,
      labelNames: ["relay", label],
      registers,
      collect() {
        this.reset();
        const labelOf = labelsOf();
        for (const relay of snapshot().relays) {
          for (const [value, count] of read(relay)) this.inc({ relay: labelOf(relay.relay), [label]: value }, count);
        }
      },
    });
  const plain = (name: string, help: string, read: () => number): void => gaugeOf(registry, name, help, read);

  const transferred = tallied("ngit_sync_bytes_total", "Bytes of messages from (in) and to (out) relays", "direction");
  const counts = {
    connection_attempts: tallied("ngit_sync_connection_attempts_total", "Dials of relays, by result", "result"),
    gap_events: tallied("ngit_sync_gap_events_total", "New events that live should have brought"),
    negentropy: tallied("ngit_sync_negentropy_total", "Negentropy sessions, by result", "result"),
    dropped_events: tallied(
      "ngit_sync_dropped_events_total",
      "Events that were not asked for or over budget",
      "reason",
    ),
    full_syncs: tallied(
      "ngit_sync_full_syncs_total",
      "Complete comparisons with a relay, by what called for them",
      "reason",
    ),
    outbox_events: tallied("ngit_sync_outbox_events_total", "Events newly accepted from participants' own relays"),
    undelivered_ids: tallied(
      "ngit_sync_undelivered_ids_total",
      "Events a relay said it has and did not send when asked",
    ),
  };
  /** Of relays that only participants name the numbers of all together are told: a dead one is nobody's trouble here. */
  const ifListed =
    (read: Read): Read =>
    (relay) =>
      relay.isUnlisted ? undefined : read(relay);
  perRelay(
    "ngit_sync_relay_connected",
    "1 while connected",
    ifListed((relay) => (relay.connected ? 1 : 0)),
  );
  perRelay(
    "ngit_sync_relay_status",
    "1 healthy, 2 degraded, 3 dead, 4 rate-limited",
    ifListed((relay) => relay.status),
    "max",
  );
  perRelay(
    "ngit_sync_relay_failures",
    "Failures to connect in a row",
    ifListed((relay) => relay.failures),
    "max",
  );
  perRelay("ngit_sync_pending_batches", "Batches of history queued or in flight", (relay) => relay.pendingBatches);
  perRelay("ngit_sync_live_filters", "Open live filters", (relay) => relay.liveFilters);
  perRelay(
    "ngit_sync_peer_missing_events",
    "Events we have and the relay lacks, as its last comparison found",
    (relay) => relay.peerMissing,
  );
  perRelay(
    "ngit_sync_in_step_seconds",
    "Since a relay was last in step, or since it is followed if it never was; 0 while it is",
    ifListed((relay) => (relay.ignored ? undefined : relay.outOfStepMs / 1_000)),
    "max",
  );
  plain(
    "ngit_sync_unplaced_repositories",
    "Repositories some of whose relays found no place under the caps",
    () => snapshot().unplaced,
  );
  plain(
    "ngit_sync_outbox_participants",
    "People whose own relays are asked about repositories here",
    () => snapshot().outbox.participants,
  );
  plain(
    "ngit_sync_outbox_incomplete_repositories",
    "Repositories some of whose participants' relays have not answered yet",
    () => snapshot().outbox.incomplete,
  );
  plain(
    "ngit_sync_outbox_unplaced_repositories",
    "Repositories some of whose participants' relays found no place under the caps",
    () => snapshot().outbox.unplaced,
  );
  new Gauge({
    name: "ngit_sync_outbox_relays",
    help: "Participants' own relays: asked (all of them), connected, live (listened to as they write)",
    labelNames: ["state"],
    registers,
    collect() {
      const { relays, connected, live } = snapshot().outbox;
      this.set({ state: "asked" }, relays);
      this.set({ state: "connected" }, connected);
      this.set({ state: "live" }, live);
    },
  });
  new Gauge({
    name: "ngit_sync_outbox_lists",
    help: "Relay lists of participants: found, none (nobody knows one), asked (being looked for)",
    labelNames: ["result"],
    registers,
    collect() {
      for (const [result, count] of Object.entries(snapshot().outbox.lists)) this.set({ result }, count);
    },
  });
  plain(
    "ngit_sync_relays_tracked_total",
    "Relays that are followed",
    () => snapshot().relays.filter(({ isUnlisted }) => !isUnlisted).length,
  );
  plain("ngit_sync_relays_connected_total", "Relays that are connected", () => snapshot().connected);
  plain("ngit_sync_relays_dead_total", "Relays that failed for a day", () => snapshot().dead);
  perRelayAnd(
    "ngit_sync_relay_state",
    "1 for the state a relay is in (relay=other: how many are in it)",
    "state",
    (relay) => states.map((name) => [name, name === relay.state ? 1 : 0]),
  );
  perRelayAnd(
    "ngit_sync_rotating",
    "Roots and repositories without a live filter, asked for in turn",
    "kind",
    (relay) => [
      ["root", relay.rotatingRoots],
      ["repository", relay.rotatingRepos],
    ],
  );
  new Gauge({
    name: "ngit_sync_remembered",
    help: "Refused events kept for another judgement (hot) and ids not fetched again (cold)",
    labelNames: ["tier"],
    registers,
    collect() {
      const { hot, cold } = snapshot();
      this.set({ tier: "hot" }, hot);
      this.set({ tier: "cold" }, cold);
    },
  });
  new Gauge({
    name: "ngit_sync_naughty_relays_total",
    help: "Relays left alone because they are plainly broken",
    labelNames: ["category"],
    registers,
    collect() {
      for (const [category, count] of Object.entries(snapshot().naughty ?? {})) this.set({ category }, count);
    },
  });
  const events = new Counter({
    name: "ngit_sync_events_total",
    help: "Events newly accepted from relays, by how they came",
    labelNames: ["source"],
    registers,
  });
  const unpageable = new Counter({
    name: "ngit_sync_unpageable_total",
    help: "Histories that a relay's pages cannot show completely",
    registers,
  });
  const lag = new Histogram({
    name: "ngit_sync_live_lag_seconds",
    help: "From an event's created_at to its being stored here, live only",
    buckets: [0.5, 1, 2, 5, 10, 30, 60, 300, 1_800, 3_600],
    registers,
  });

  return {
    /** From now on gauges are read from here. */
    watch(read: () => CoreSnapshot): void {
      // One look for all numbers of a scrape.
      let taken: CoreSnapshot | undefined;
      snapshot = () => {
        if (!taken) {
          taken = read();
          setImmediate(() => {
            taken = undefined;
          });
        }
        return taken;
      };
    },
    count({ counter, relay = "", label = "", by = 1 }: Extract<Command, { type: "count" }>): void {
      if (counter === "events") events.inc({ source: label });
      else if (counter === "unpageable") unpageable.inc();
      else counts[counter].add(relay, label, by);
      if (counts.connection_attempts.byRelay.size > maxRelaysCounted) forgetUntracked();
    },
    lag: (seconds: number): void => lag.observe(seconds),
    bytes: (relay: RelayKey, direction: "in" | "out", count: number): void => transferred.add(relay, direction, count),
    /** For the status page. */
    ofRelay: (relay: RelayKey): RelayCounts => ({
      bytesIn: transferred.get(relay, "in"),
      bytesOut: transferred.get(relay, "out"),
      gapEvents: counts.gap_events.get(relay, ""),
    }),
  };

  function forgetUntracked(): void {
    const tracked = new Set(snapshot().relays.map(({ relay }) => relay));
    for (const tally of tallies) {
      for (const relay of [...tally.byRelay.keys()]) if (!tracked.has(relay)) tally.byRelay.delete(relay);
    }
  }
}

const otherRelays = "other";

/**
 * Which relays have a label of their own in the metrics: the busiest, up to a limit; the quietest share `other`, so
 * that strangers' announcements cannot make labels without end. `bytes`: what went over each relay's links.
 */
export function relayLabels(
  relays: Iterable<string>,
  bytes: ReadonlyMap<string, number>,
  max: number,
): (relay: string) => string {
  const all = [...new Set(relays)];
  if (all.length <= max) return (relay) => relay;
  const busiest = all.sort((a, b) => (bytes.get(b) ?? 0) - (bytes.get(a) ?? 0) || (a < b ? -1 : 1)).slice(0, max);
  const own = new Set(busiest);
  return (relay) => (own.has(relay) ? relay : otherRelays);
}
