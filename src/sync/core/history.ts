// The jobs that are sent to a relay (spec "History"): batches, catch-up, rotation, layer 4, direct ids, relay lists;
// starts what fits, one negentropy session or four subscriptions; and what the end of a query means for its job, and
// the end of a job for its items: confirmed only when everything was answered, fresh again after a delay otherwise.
// Never stuck: every query has a time-out.

import { retryDelayMs, type SyncConfig } from "./config.js";
import { log, type Relay, type SyncState } from "./core-state.js";
import { isSyncing, makeFresh, nextLayer, setPhase, tagsOf, takeAction, takeGroup, valuesOf } from "./items.js";
import {
  type Asked,
  failuresOf,
  type Item,
  type Job,
  type JobKind,
  type Layer,
  layers,
  phaseOf,
  phases,
  Query,
  type Related,
  type Sweep,
  sliceOf,
} from "./job.js";
import { onListsAnswered, putBackLists, takeLists } from "./list-look-ups.js";
import { outboxQueries, takeOutboxGroup } from "./outbox-filters.js";
import {
  cancelQuery,
  onOwedFailed,
  putBackOwed,
  type QueryEnd,
  queryDeadlineMs,
  sendQuery,
  takeOwed,
} from "./query.js";
import { onQuerySilent, onReconcileFailed, refusedByRule, silenceIn } from "./query-answers.js";
import { hasTurn, isAtOutbox, isRetrying, nextTurnMs, putBack, takeRelated, tryRelatedAgain } from "./rounds.js";
import { noteBatch } from "./standing.js";

type JobParts = Pick<Job, "kind" | "layer" | "items" | "source" | "method" | "queries"> &
  Partial<Pick<Job, "sweep" | "related" | "owed" | "lists">>;

function addJob(state: SyncState, relay: Relay, parts: JobParts): true {
  relay.jobs.push({
    id: state.nextJob++,
    startedMs: state.now.monotonicMs,
    isRetry: parts.kind === "batch" && parts.items.some((item) => failuresOf(relay.items.get(item)) > 0),
    barred: new Set(),
    ended: [],
    unpageable: false,
    sweep: undefined,
    related: undefined,
    owed: undefined,
    lists: undefined,
    undelivered: 0,
    sides: undefined,
    ...parts,
  });
  relay.nextJobMs = state.now.monotonicMs + state.config.syncBatchDelayMs;
  return true;
}

function queriesFor(
  state: SyncState,
  relay: Relay,
  layer: Job["layer"],
  items: readonly Item[],
  since: number | undefined,
): Query[] {
  if (layer === layers.outbox) return outboxQueries(state, relay, items, since);
  const tags = tagsOf(layer, items);
  const values = valuesOf(state.wanted, items);
  return tags.length === 0
    ? [new Query(undefined, items, [sliceOf([], since)])]
    : tags.map((tag) => new Query(tag, items, [sliceOf(values, since)]));
}

const takerOf = (layer: Layer): typeof takeGroup => (layer === layers.outbox ? takeOutboxGroup : takeGroup);

function startSweep(state: SyncState, relay: Relay, source: Sweep["source"]): boolean {
  for (const sweep of relay.sweeps) {
    if (sweep.source !== source || sweep.notBeforeMs > state.now.monotonicMs) continue;
    const items = takerOf(sweep.layer)(state, relay, sweep.items, (item) => relay.items.has(item));
    if (sweep.items.length === 0) relay.sweeps = relay.sweeps.filter((other) => other !== sweep);
    if (items.length === 0) continue;
    const { layer, since } = sweep;
    const queries = queriesFor(state, relay, layer, items, since);
    return addJob(state, relay, { kind: "sweep", layer, items, source, method: "req", sweep, queries });
  }
  return false;
}

function startDirect(state: SyncState, relay: Relay): boolean {
  const owed = takeOwed(relay, state.now.monotonicMs);
  if (!owed) return false;
  const query = new Query(undefined, [], [sliceOf([])]);
  query.toFetch = [...owed.ids];
  const { announcements: layer } = layers;
  return addJob(state, relay, {
    kind: "direct",
    layer,
    items: [],
    source: "direct",
    method: "req",
    owed,
    queries: [query],
  });
}

function startLists(state: SyncState, relay: Relay): boolean {
  if (relay.listsWanted.size === 0) return false;
  const { outbox: layer } = layers;
  const taken = takeLists(state, relay);
  return addJob(state, relay, { kind: "lists", layer, items: [], source: "rotating", method: "req", ...taken });
}

/** Forms the next job, in the order of the spec. False when there is nothing, or it must wait for what runs. */
function startJob(state: SyncState, relay: Relay): boolean {
  if (startDirect(state, relay) || startLists(state, relay) || startSweep(state, relay, "reconnect")) return true;
  const reconciles = !state.config.syncDisableNegentropy && relay.noNegentropyUntilMs <= state.now.monotonicMs;
  const method = reconciles ? "negentropy" : "req";
  // A negentropy session has the relay for itself.
  const mayStart = !reconciles || relay.jobs.length === 0;
  const layer = nextLayer(relay);
  if (layer !== undefined) return mayStart && startBatch(state, relay, layer, method);
  if (relay.jobs.some((job) => job.kind === "batch")) return false;
  const related = takeRelated(state, relay);
  if (!related) return startSweep(state, relay, "rotating");
  if (related.since !== undefined) return startRelated(state, relay, related, "req");
  if (mayStart) return startRelated(state, relay, related, method);
  putBack(relay, related);
  return false;
}

/** Each layer when the one before has ended or failed. */
function startBatch(state: SyncState, relay: Relay, layer: Layer, method: Job["method"]): boolean {
  if (relay.jobs.some((job) => job.kind === "batch" && job.layer !== layer)) return false;
  if (!hasTurn(state, relay)) return false;
  const items = takeAction(state, relay, layer, takerOf(layer));
  const queries = queriesFor(state, relay, layer, items, undefined);
  // A full sync counts from its first question: the relay may have asked for pauses before it.
  if (layer === layers.announcements) relay.lastFullMs = state.now.monotonicMs;
  return addJob(state, relay, { kind: "batch", layer, items, source: relay.round, method, queries });
}

function startRelated(state: SyncState, relay: Relay, related: Related, method: Job["method"]): boolean {
  const tags = related.ids.length > 0 ? ["e", "E"] : [undefined];
  const queries = tags.map((tag) => new Query(tag, [], [sliceOf(related.ids, related.since)]));
  const { roots: layer } = layers;
  const source = related.since === undefined ? "daily" : "rotating";
  return addJob(state, relay, { kind: "related", layer, items: [], source, method, related, queries });
}

const hasWork = (relay: Relay): boolean =>
  relay.jobs.length + relay.sweeps.length + relay.direct.size + relay.owed.length + relay.listsWanted.size > 0 ||
  relay.layerFour !== undefined ||
  relay.deletions.startedWallMs !== undefined ||
  nextLayer(relay) !== undefined;

/** What failed before, what is only looked at once more, and whatever participants wrote is asked for in turns. */
function pacedUntilMs(state: SyncState, relay: Relay): number {
  if (isAtOutbox(relay)) return nextTurnMs(state, relay);
  // A full sync that is refused goes on as long as something of it is due again: its retries are no exception.
  if (isRetrying(relay)) return nextTurnMs(state, relay);
  const isForTheFirstTime = isSyncing(relay) && relay.jobs.every((job) => job.kind === "batch");
  return relay.isInFullSync || isForTheFirstTime ? 0 : nextTurnMs(state, relay);
}

/** Until when pauses of our own keep history from going on; never when there is none to fetch. */
export function workDueMs(state: SyncState, relay: Relay, nowMs: number): number {
  const dueMs = Math.max(relay.historyNotBeforeMs, relay.nextJobMs, state.pacedUntilMs, pacedUntilMs(state, relay));
  return dueMs > nowMs && hasWork(relay) ? dueMs : Number.POSITIVE_INFINITY;
}

/** Sends as much as the relay's limits allow. */
export function startWork(state: SyncState, relay: Relay): void {
  const nowMs = state.now.monotonicMs;
  if (nowMs < Math.max(relay.historyNotBeforeMs, state.pacedUntilMs)) return;
  for (;;) {
    const exclusive = relay.jobs.some((job) => job.method === "negentropy");
    const slotsLeft = (exclusive ? 1 : state.config.syncHistorySubscriptions) - relay.bySub.size;
    if (slotsLeft <= 0 || nowMs < pacedUntilMs(state, relay)) return;
    const asked = nextQueued(relay);
    if (asked) sendQuery(state, relay, asked);
    else if (exclusive || nowMs < relay.nextJobMs || !startJob(state, relay)) return;
  }
}

function nextQueued(relay: Relay): Asked | undefined {
  for (const job of relay.jobs) {
    for (const query of job.queries) if (query.state === "queued") return { job, query };
  }
  return undefined;
}

/** Carries what an answer meant for a query to its job. */
export function settle(state: SyncState, relay: Relay, { job, query }: Asked, end: QueryEnd): void {
  if (end === undefined) return;
  if (typeof end === "object") {
    failJob(state, relay, job, end.failed);
    return;
  }
  query.state = end === "again" ? "queued" : "done";
  if (job.queries.every((other) => other.state === "done")) endJob(state, relay, job);
}

/** Every query has a time-out that runs from sending. */
export function expireQueries(state: SyncState, relay: Relay): void {
  for (const job of [...relay.jobs]) {
    for (const query of job.queries) {
      if (queryDeadlineMs(state, relay, query) > state.now.monotonicMs) continue;
      const asked = { job, query };
      if (query.state !== "reconciling") settle(state, relay, asked, onQuerySilent(state, relay, query));
      else settle(state, relay, asked, onReconcileFailed(state, relay, asked, silenceIn(query), true));
    }
  }
}

function leave({ config, now }: SyncState, relay: Relay, job: Job): void {
  relay.jobs = relay.jobs.filter((other) => other !== job);
  relay.nextJobMs = now.monotonicMs + config.syncBatchDelayMs;
}

/** Those a batch still speaks for: an item's number may be another's by now, which a later batch asks for. */
function itemsOf(relay: Relay, job: Job): Item[] {
  const later = new Set(relay.jobs.flatMap(({ kind, id, items }) => (kind === "batch" && id > job.id ? items : [])));
  return job.items.filter((item) => phaseOf(relay.items.get(item)) === phases.pending && !later.has(item));
}

function endJob(state: SyncState, relay: Relay, job: Job): void {
  if (job.unpageable) {
    failJob(state, relay, job, "unpageable");
    return;
  }
  leave(state, relay, job);
  if (job.lists) onListsAnswered(state, relay, job.lists, true);
  if (job.kind !== "batch") return;
  for (const item of itemsOf(relay, job)) {
    setPhase(state, relay, item, job.barred.has(item) ? phases.barred : phases.confirmed, 0);
  }
  noteBatch(state, relay, job);
  const { id: batch, layer, items, method, ended } = job;
  log(state, "debug", "batch-confirmed", relay, { batch, layer, items: items.length, method, ended });
}

/** A part of a rotating round that failed is asked for again after this. */
const rotateAgainMs = 5 * 60 * 1000;

const failedCodes: Record<JobKind, string> = {
  batch: "batch-failed",
  sweep: "catch-up-failed",
  related: "layer-four-failed",
  direct: "direct-failed",
  lists: "lists-failed",
};

function failJob(state: SyncState, relay: Relay, job: Job, reason: string): void {
  if (!relay.jobs.includes(job)) return;
  for (const query of job.queries) cancelQuery(state, relay, query);
  leave(state, relay, job);
  const { config } = state;
  log(state, "debug", failedCodes[job.kind], relay, { batch: job.id, reason });
  if (job.sweep?.source === "reconnect") relay.catchUpFailed = true;
  if (job.sweep?.source === "rotating")
    relay.sweeps.push({ ...job.sweep, items: [...job.items], notBeforeMs: state.now.monotonicMs + rotateAgainMs });
  if (job.related) tryRelatedAgain(state, relay, job.related);
  if (job.lists) onListsAnswered(state, relay, job.lists, false);
  onOwedFailed(state, relay, job);
  if (job.kind !== "batch") return;
  let worst = 0;
  const retried: Item[] = [];
  for (const item of itemsOf(relay, job)) {
    const failures = failuresOf(relay.items.get(item)) + 1;
    worst = Math.max(worst, failures);
    setPhase(state, relay, item, job.barred.has(item) ? phases.barred : phases.retrying, failures);
    if (!job.barred.has(item)) retried.push(item);
  }
  if (retried.length === 0) return;
  relay.retries.push({ dueMs: state.now.monotonicMs + waitMs(config, reason, worst - 1), items: retried });
}

/** A relay's rule seldom changes within half a minute: what it refuses is asked ever less often. */
function waitMs(config: SyncConfig, reason: string, times: number): number {
  if (reason === "unpageable") return config.unpageableRetryMs;
  const longestSecs = reason === refusedByRule ? config.refusedRetryMaxSecs : config.syncRetryMaxSecs;
  return retryDelayMs({ ...config, syncRetryMaxSecs: longestSecs }, times);
}

/** Failed items whose delay has passed are new again. */
export function reviveRetries(state: SyncState, relay: Relay, nowMs: number): void {
  for (const { dueMs, items } of relay.retries) {
    if (dueMs > nowMs) continue;
    for (const item of items) {
      if (phaseOf(relay.items.get(item)) === phases.retrying) makeFresh(state, relay, item);
    }
  }
  relay.retries = relay.retries.filter((retry) => retry.dueMs > nowMs);
}

/**
 * The link is gone: pending is dropped, its items are new, and not asked for the first time any more. A rotating round
 * goes on with the next link.
 */
export function dropJobs(state: SyncState, relay: Relay): void {
  const isRotating = (sweep: Sweep | undefined): sweep is Sweep => sweep?.source === "rotating";
  const cut = relay.jobs.flatMap(({ sweep, items }) => (isRotating(sweep) ? { ...sweep, items: [...items] } : []));
  relay.sweeps = [...relay.sweeps.filter(isRotating), ...cut].map((sweep) => ({ ...sweep, notBeforeMs: 0 }));
  for (const job of relay.jobs) {
    if (job.related) putBack(relay, job.related);
    if (job.lists) putBackLists(relay, job.lists);
    putBackOwed(state, relay, job);
    if (job.kind !== "batch") continue;
    for (const item of job.items) {
      const word = relay.items.get(item);
      if (phaseOf(word) !== phases.pending) continue;
      setPhase(state, relay, item, phases.pending, Math.max(failuresOf(word), 1));
      makeFresh(state, relay, item);
    }
  }
  relay.jobs = [];
  relay.bySub.clear();
}

/** A full sync begins on an open link: what is under way is called off first. */
export function cancelJobs(state: SyncState, relay: Relay): void {
  for (const job of relay.jobs) for (const query of job.queries) cancelQuery(state, relay, query);
  dropJobs(state, relay);
}
