// How sync is doing, relay by relay, for the status page and `holdfast status`: read only, made when asked for.

import type { Sides } from "./core/messages.js";
import type { OutboxSnapshot } from "./core/outbox-standing.js";
import type { Copy, RelayStateName } from "./core/standing.js";
import type { SyncEngine } from "./engine.js";
import type { RelayCounts, SyncMetrics } from "./metrics.js";

const healthNames = { 1: "healthy", 2: "degraded", 3: "dead", 4: "rate-limited" } as const;

export interface RelayStatus extends RelayCounts {
  readonly relay: string;
  readonly url: string | null;
  readonly bootstrap: boolean;
  readonly waitingOnly: boolean;
  readonly state: RelayStateName;
  readonly health: (typeof healthNames)[keyof typeof healthNames];
  readonly failures: number;
  /** In our words, with the second at which it happened. */
  readonly lastFailure: { readonly kind: string; readonly at: number } | null;
  /** The operator has it left alone. */
  readonly ignored: boolean;
  readonly inStep: boolean;
  /** Unix seconds at which it was in step last; null when it never was, or is now. */
  readonly lastInStep: number | null;
  /** Since then, or since it is followed if it never was; 0 while it is in step. */
  readonly outOfStepSeconds: number;
  /** Repositories followed there, those compared clean at least once, and the second of the oldest such comparison. */
  readonly compared: { readonly repositories: number; readonly clean: number; readonly oldest: number | null };
  /** Seconds until it may be dialled; null while connected or connecting. */
  readonly nextAttemptSeconds: number | null;
  readonly wantedItems: number;
  readonly confirmedItems: number;
  readonly failedItems: number;
  readonly pendingBatches: number;
  readonly liveFilters: number;
  /** Events we have and the relay lacks, as its last comparison found. */
  readonly peerMissingEvents: number;
  readonly rotating: { readonly roots: number; readonly repositories: number };
  /** As a participant's own relay: repositories it is asked about, participants that write there, listened to as they do. */
  readonly outbox: { readonly repositories: number; readonly participants: number; readonly live: boolean };
  /** Unix seconds. */
  readonly lastEvent: number | null;
}

/** A repository's copy at a relay it lists. */
export interface CopyStatus {
  readonly relay: string;
  readonly url: string | null;
  readonly connected: boolean;
  /** Nothing of this repository is known to be missing here now. */
  readonly inStep: boolean;
  /** Unix seconds of the last comparison after which nothing was missing here; null when there was none. */
  readonly lastClean: number | null;
  /** Events on both sides then, where negentropy compared this repository by itself. */
  readonly sides: Sides | null;
}

export interface SyncStatus {
  readonly relays: readonly RelayStatus[];
  readonly connected: number;
  readonly dead: number;
  readonly repositories: number;
  readonly roots: number;
  readonly remembered: { readonly hot: number; readonly cold: number };
  readonly naughty: Readonly<Record<string, number>>;
  /** Repositories some of whose relays found no place under the caps. */
  readonly unplacedRepositories: number;
  /** What is gathered at participants' own relays. */
  readonly outbox: OutboxSnapshot;
}

const secondsOf = (wallMs: number | undefined): number | null =>
  wallMs === undefined ? null : Math.floor(wallMs / 1_000);

export const copyStatus = ({ compared, url, ...copy }: Copy): CopyStatus => ({
  ...copy,
  url: url ?? null,
  lastClean: secondsOf(compared?.cleanWallMs),
  sides: compared?.sides ?? null,
});

export function syncStatus(engine: SyncEngine, metrics: SyncMetrics): SyncStatus {
  const snapshot = engine.snapshot();
  const nowMs = engine.now().monotonicMs;
  const relays = snapshot.relays.map((relay): RelayStatus => {
    const waits = relay.state === "disconnected" && !relay.ignored;
    return {
      relay: relay.relay,
      url: relay.url ?? null,
      bootstrap: relay.bootstrap,
      waitingOnly: relay.waitingOnly,
      state: relay.state,
      health: healthNames[relay.status],
      failures: relay.failures,
      lastFailure: relay.lastFailure
        ? { kind: relay.lastFailure.kind, at: Math.floor(relay.lastFailure.wallMs / 1_000) }
        : null,
      ignored: relay.ignored,
      inStep: relay.inStep,
      lastInStep: relay.inStep ? null : secondsOf(relay.inStepUntilMs),
      outOfStepSeconds: Math.floor(relay.outOfStepMs / 1_000),
      compared: {
        repositories: relay.repositories,
        clean: relay.comparedRepositories,
        oldest: secondsOf(relay.oldestComparedWallMs),
      },
      nextAttemptSeconds: waits ? Math.max(0, Math.ceil((relay.nextDialMs - nowMs) / 1_000)) : null,
      wantedItems: relay.items,
      confirmedItems: relay.confirmedItems,
      failedItems: relay.failedItems,
      pendingBatches: relay.pendingBatches,
      liveFilters: relay.liveFilters,
      peerMissingEvents: relay.peerMissing,
      rotating: { roots: relay.rotatingRoots, repositories: relay.rotatingRepos },
      outbox: {
        repositories: relay.outboxRepositories,
        participants: relay.outboxParticipants,
        live: relay.isOutboxLive,
      },
      lastEvent: secondsOf(relay.lastEventWallMs),
      ...metrics.ofRelay(relay.relay),
    };
  });
  return {
    relays,
    connected: snapshot.connected,
    dead: snapshot.dead,
    repositories: snapshot.repos,
    roots: snapshot.roots,
    remembered: { hot: snapshot.hot, cold: snapshot.cold },
    naughty: snapshot.naughty,
    unplacedRepositories: snapshot.unplaced,
    outbox: snapshot.outbox,
  };
}
