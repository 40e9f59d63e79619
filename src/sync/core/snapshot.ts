// A view of the core for gauges, the status page and the simulator. Read only; made when asked for.

import { type RelayStateName, stateName } from "./connection.js";
import type { HealthStatus } from "./health.js";
import { isInStep } from "./in-step.js";
import type { NaughtyKind, RelayKey, Time } from "./messages.js";
import { type Relay, urlOf } from "./relay.js";
import type { SyncState } from "./state.js";

export interface RelaySnapshot {
  readonly relay: RelayKey;
  readonly url: string | undefined;
  readonly bootstrap: boolean;
  /** Only announcements that wait name it: who is followed for them is not for strangers to know. */
  readonly waitingOnly: boolean;
  readonly state: RelayStateName;
  readonly connected: boolean;
  readonly status: HealthStatus;
  readonly failures: number;
  readonly lastFailure: { readonly kind: string; readonly wallMs: number } | undefined;
  readonly ignored: boolean;
  /** Every wanted item confirmed, none failed, barred or overdue, and nothing in flight. */
  readonly inStep: boolean;
  /** Wall time at which it was last in step; undefined when it never was, or is now. */
  readonly inStepUntilMs: number | undefined;
  /** Since it was last in step, or since it is followed if it never was; 0 while it is. */
  readonly outOfStepMs: number;
  /** Repositories followed there; how many of them were ever compared clean, and when the one that waits longest was. */
  readonly repositories: number;
  readonly comparedRepositories: number;
  readonly oldestComparedWallMs: number | undefined;
  /** Monotonic time before which it is not dialled. */
  readonly nextDialMs: number;
  readonly items: number;
  readonly confirmedItems: number;
  readonly failedItems: number;
  readonly retryingItems: number;
  readonly barredItems: number;
  readonly pendingBatches: number;
  /** Monotonic time at which the oldest batch started. */
  readonly oldestBatchMs: number | undefined;
  readonly liveFilters: number;
  readonly rotatingRoots: number;
  readonly rotatingRepos: number;
  readonly peerMissing: number;
  readonly lastEventWallMs: number | undefined;
  readonly offersInFlight: number;
  readonly historySubscriptions: number;
}

export interface CoreSnapshot {
  readonly relays: readonly RelaySnapshot[];
  readonly connected: number;
  readonly dead: number;
  readonly naughty: Readonly<Record<NaughtyKind, number>>;
  readonly hot: number;
  readonly cold: number;
  readonly repos: number;
  readonly roots: number;
  /** Places in tables, free ones included: what memory follows. */
  readonly tables: { readonly repos: number; readonly roots: number; readonly early: number };
  readonly unplaced: number;
  readonly waitingOnlyRelays: number;
}

function oldestOf({ compared }: Relay): number | undefined {
  let oldest: number | undefined;
  for (const { cleanWallMs } of compared.values()) oldest = Math.min(oldest ?? cleanWallMs, cleanWallMs);
  return oldest;
}

export function snapshotOf(state: SyncState, now: Time): CoreSnapshot {
  const relays: RelaySnapshot[] = [];
  for (const relay of state.relays.values()) {
    const connected = relay.status === "connected";
    const linkMs = connected ? now.monotonicMs - relay.connectedMs : undefined;
    const inStep = isInStep(state, relay, now.monotonicMs);
    // An event on its way is noticed here before the relay is looked at again.
    const lastInStep = relay.inStep ? now : relay.lastInStep;
    const batches = relay.jobs.filter((job) => job.kind === "batch");
    relays.push({
      relay: relay.key,
      url: urlOf(relay),
      bootstrap: relay.bootstrap,
      waitingOnly: !relay.bootstrap && relay.fullRepos === 0,
      state: stateName(relay),
      connected,
      status: state.health.status(relay.key, now, linkMs),
      // A link that has lasted says more than what was before it.
      failures: (linkMs ?? 0) >= state.config.steadyLinkMs ? 0 : state.health.of(relay.key).failures,
      lastFailure: state.health.of(relay.key).lastFailure,
      ignored: state.ignored.has(relay.key),
      inStep,
      inStepUntilMs: inStep ? undefined : lastInStep?.wallMs,
      outOfStepMs: inStep ? 0 : Math.max(0, now.monotonicMs - (lastInStep?.monotonicMs ?? relay.followedMs)),
      repositories: relay.fullRepos,
      comparedRepositories: relay.compared.size,
      oldestComparedWallMs: oldestOf(relay),
      nextDialMs: Math.max(relay.notBeforeMs, state.health.dialAtMs(relay.key, now)),
      items: relay.items.size,
      confirmedItems: relay.confirmedItems,
      failedItems: relay.failedItems,
      retryingItems: relay.retries.reduce((sum, retry) => sum + retry.items.length, 0),
      barredItems: relay.barredItems,
      pendingBatches: batches.length,
      oldestBatchMs: batches.length > 0 ? Math.min(...batches.map((job) => job.startedMs)) : undefined,
      liveFilters: relay.openFilters,
      rotatingRoots: relay.turns.roots.items,
      rotatingRepos: relay.turns.repos.items,
      peerMissing: relay.peerMissing,
      lastEventWallMs: relay.lastEventWallMs,
      offersInFlight: relay.offersInFlight,
      historySubscriptions: relay.bySub.size,
    });
  }
  return {
    relays,
    connected: relays.filter((relay) => relay.connected).length,
    dead: relays.filter((relay) => relay.status === 3).length,
    naughty: state.health.naughty(now),
    hot: state.remembered.hotSize,
    cold: state.remembered.cold.size,
    repos: state.wanted.repos.size,
    roots: state.wanted.rootCount,
    tables: state.wanted.tableSizes,
    unplaced: state.unplaced.size,
    waitingOnlyRelays: state.waitingOnlyRelays,
  };
}
