// Forms the jobs that are sent to a relay: batches, catch-up, rotation, layer 4, direct ids (spec "History"), in that
// order, and starts what fits: one negentropy session or four subscriptions. What becomes of them: job-ends.ts.

import { nextLayer, takeAction, takeGroup } from "./actions.js";
import { isSyncing } from "./connection.js";
import { tagsOf, valuesOf } from "./filters.js";
import { hasTurn } from "./full-syncs.js";
import { failuresOf, type Item, type Layer, layers } from "./items.js";
import { type Asked, type Job, Query, type Related, type Sweep } from "./job.js";
import { putBack, takeRelated } from "./layer-four.js";
import { takeOwed } from "./owed.js";
import { nextTurnMs } from "./pace.js";
import { sendQuery } from "./query.js";
import type { Relay } from "./relay.js";
import type { Step, SyncState } from "./state.js";

type JobParts = Pick<Job, "kind" | "layer" | "items" | "source" | "method" | "queries"> &
  Partial<Pick<Job, "sweep" | "related" | "owed">>;

function addJob(state: SyncState, relay: Relay, step: Step, parts: JobParts): true {
  relay.jobs.push({
    id: state.nextJob++,
    startedMs: step.now.monotonicMs,
    isRetry: parts.kind === "batch" && parts.items.some((item) => failuresOf(relay.items.get(item)) > 0),
    barred: new Set(),
    ended: [],
    unpageable: false,
    sweep: undefined,
    related: undefined,
    owed: undefined,
    undelivered: 0,
    sides: undefined,
    ...parts,
  });
  relay.nextJobMs = step.now.monotonicMs + state.config.batchDelayMs;
  return true;
}

function queriesFor(state: SyncState, layer: Job["layer"], items: readonly Item[], since: number | undefined): Query[] {
  const tags = tagsOf(layer, items);
  const values = valuesOf(state.wanted, items);
  return tags.length === 0
    ? [new Query(undefined, items, [], since)]
    : tags.map((tag) => new Query(tag, items, values, since));
}

function startSweep(state: SyncState, relay: Relay, source: Sweep["source"], step: Step): boolean {
  for (const sweep of relay.sweeps) {
    if (sweep.source !== source) continue;
    const items = takeGroup(state, relay, sweep.items, (item) => relay.items.has(item));
    if (items.length === 0) {
      if (sweep.running === 0) relay.sweeps = relay.sweeps.filter((other) => other !== sweep);
      continue;
    }
    sweep.running += 1;
    const { layer, since } = sweep;
    const queries = queriesFor(state, layer, items, since);
    return addJob(state, relay, step, { kind: "sweep", layer, items, source, method: "req", sweep, queries });
  }
  return false;
}

function startDirect(state: SyncState, relay: Relay, step: Step): boolean {
  const owed = takeOwed(relay, step.now.monotonicMs);
  if (!owed) return false;
  const query = new Query(undefined, [], []);
  query.toFetch = [...owed.ids];
  const { announcements: layer } = layers;
  return addJob(state, relay, step, {
    kind: "direct",
    layer,
    items: [],
    source: "direct",
    method: "req",
    owed,
    queries: [query],
  });
}

/** Forms the next job, in the order of the spec. False when there is nothing, or it must wait for what runs. */
function startJob(state: SyncState, relay: Relay, step: Step): boolean {
  if (startDirect(state, relay, step) || startSweep(state, relay, "reconnect", step)) return true;
  const reconciles = !state.config.disableNegentropy && relay.noNegentropyUntilMs <= step.now.monotonicMs;
  const method = reconciles ? "negentropy" : "req";
  // A negentropy session has the relay for itself.
  const mayStart = !reconciles || relay.jobs.length === 0;
  const layer = nextLayer(relay);
  if (layer !== undefined) return mayStart && startBatch(state, relay, layer, method, step);
  if (relay.jobs.some((job) => job.kind === "batch")) return false;
  const related = takeRelated(state, relay, step);
  if (!related) return startSweep(state, relay, "rotating", step);
  if (related.since !== undefined) return startRelated(state, relay, related, "req", step);
  if (mayStart) return startRelated(state, relay, related, method, step);
  putBack(relay, related);
  return false;
}

/** Each layer when the one before has ended or failed. */
function startBatch(state: SyncState, relay: Relay, layer: Layer, method: Job["method"], step: Step): boolean {
  if (relay.jobs.some((job) => job.kind === "batch" && job.layer !== layer)) return false;
  if (!hasTurn(state, relay, step)) return false;
  const items = takeAction(state, relay, layer);
  const queries = queriesFor(state, layer, items, undefined);
  return addJob(state, relay, step, { kind: "batch", layer, items, source: relay.round, method, queries });
}

function startRelated(state: SyncState, relay: Relay, related: Related, method: Job["method"], step: Step): boolean {
  const tags = related.ids.length > 0 ? ["e", "E"] : [undefined];
  const queries = tags.map((tag) => new Query(tag, [], related.ids, related.since));
  const { roots: layer } = layers;
  const source = related.since === undefined ? "daily" : "rotating";
  return addJob(state, relay, step, { kind: "related", layer, items: [], source, method, related, queries });
}

const hasWork = (relay: Relay): boolean =>
  relay.jobs.length + relay.sweeps.length + relay.direct.length + relay.owed.length > 0 ||
  relay.layerFour !== undefined ||
  relay.deletions.startedWallMs !== undefined ||
  nextLayer(relay) !== undefined;

/** What failed before, and what is only looked at once more, is asked for in turns. */
function pacedUntilMs(state: SyncState, relay: Relay): number {
  const isForTheFirstTime = isSyncing(relay) && relay.jobs.every((job) => job.kind === "batch" && !job.isRetry);
  return relay.isInFullSync || isForTheFirstTime ? 0 : nextTurnMs(state, relay);
}

/** Until when pauses of our own keep history from going on; never when there is none to fetch. */
export function workDueMs(state: SyncState, relay: Relay, nowMs: number): number {
  const dueMs = Math.max(relay.historyNotBeforeMs, relay.nextJobMs, state.pacedUntilMs, pacedUntilMs(state, relay));
  return dueMs > nowMs && hasWork(relay) ? dueMs : Number.POSITIVE_INFINITY;
}

/** The next request waits until what history brought is within its share: nobody's clock runs meanwhile. */
export function noteDownload(state: SyncState, bytes: number, nowMs: number): void {
  const tookMs = (bytes * 1000) / state.config.historyBytesPerSecond;
  state.pacedUntilMs = Math.max(state.pacedUntilMs, nowMs) + tookMs;
}

/** Sends as much as the relay's limits allow. */
export function startWork(state: SyncState, relay: Relay, step: Step): void {
  const nowMs = step.now.monotonicMs;
  if (nowMs < Math.max(relay.historyNotBeforeMs, state.pacedUntilMs)) return;
  for (;;) {
    const exclusive = relay.jobs.some((job) => job.method === "negentropy");
    const slotsLeft = (exclusive ? 1 : state.config.maxHistorySubscriptions) - relay.bySub.size;
    if (slotsLeft <= 0 || nowMs < pacedUntilMs(state, relay)) return;
    const asked = nextQueued(relay);
    if (asked) sendQuery(state, relay, asked, step);
    else if (exclusive || nowMs < relay.nextJobMs || !startJob(state, relay, step)) return;
  }
}

function nextQueued(relay: Relay): Asked | undefined {
  for (const job of relay.jobs) {
    for (const query of job.queries) if (query.state === "queued") return { job, query };
  }
  return undefined;
}
