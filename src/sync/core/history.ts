// Jobs on their way to a relay: batches, catch-up, rotation, layer 4, direct ids (spec "History"). Starts what fits
// (one negentropy session or four subscriptions), runs each query to its end, and decides what its end means for
// the items: confirmed only when everything was answered, fresh again after a delay otherwise. Never stuck: every
// query has a time-out that runs from sending.

import { nextLayer, takeAction } from "./actions.js";
import { historyRoom, tagsOf, textOf, valueBytes, valuesOf } from "./filters.js";
import { failuresOf, type Item, type Layer, layers, phaseOf, phases } from "./items.js";
import type { Asked, Job, JobKind, Query, Related, Sweep } from "./job.js";
import { takeRelated } from "./layer-four.js";
import { cancelQuery, type QueryEnd, queryDeadlineMs, sendQuery } from "./query.js";
import { onReconcileFailed } from "./reconciling.js";
import type { Relay } from "./relay.js";
import { rotateAgainSoon } from "./rotation.js";
import type { Step, SyncState } from "./state.js";
import { log } from "./telling.js";
import { makeFresh, setPhase } from "./words.js";

function newQuery(
  tag: string | undefined,
  items: readonly Item[],
  values: readonly string[],
  since: number | undefined,
): Query {
  return {
    tag,
    items,
    slices: [{ values, ...(since !== undefined && { since }) }],
    state: "queued",
    name: "",
    sentMs: 0,
    heardMs: 0,
    boundary: new Set(),
    page: undefined,
    toFetch: [],
    asked: new Set(),
    delivered: 0,
  };
}

type JobParts = Pick<Job, "kind" | "layer" | "items" | "source" | "method" | "queries"> &
  Partial<Pick<Job, "sweep" | "related">>;

function addJob(state: SyncState, relay: Relay, step: Step, parts: JobParts): true {
  relay.jobs.push({
    id: state.nextJob++,
    startedMs: step.now.monotonicMs,
    barred: new Set(),
    ended: [],
    unpageable: false,
    sweep: undefined,
    related: undefined,
    ...parts,
  });
  return true;
}

function queriesFor(state: SyncState, layer: Job["layer"], items: readonly Item[], since: number | undefined): Query[] {
  const tags = tagsOf(layer, items);
  const values = valuesOf(state.wanted, items);
  return tags.length === 0
    ? [newQuery(undefined, items, [], since)]
    : tags.map((tag) => newQuery(tag, items, values, since));
}

/** The next stretch of a sweep that is still in targets. */
function takeFromSweep(state: SyncState, relay: Relay, sweep: Sweep): Item[] {
  const room = historyRoom(state.config, relay);
  const items: Item[] = [];
  let bytes = 0;
  while (sweep.cursor < sweep.items.length) {
    const item = sweep.items[sweep.cursor]!;
    const value = textOf(state.wanted, item);
    const size = value === undefined ? 0 : valueBytes(value);
    if (items.length > 0 && (items.length >= room.values || bytes + size > room.bytes)) break;
    sweep.cursor += 1;
    if (!relay.items.has(item)) continue;
    items.push(item);
    bytes += size;
    if (value === undefined || size > state.config.longValueBytes + 3) break;
  }
  return items;
}

function startSweep(state: SyncState, relay: Relay, source: Sweep["source"], step: Step): boolean {
  for (const sweep of relay.sweeps) {
    if (sweep.source !== source) continue;
    const items = takeFromSweep(state, relay, sweep);
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
  if (relay.direct.length === 0) return false;
  const query = newQuery(undefined, [], [], undefined);
  query.toFetch = relay.direct.splice(0);
  const { announcements: layer } = layers;
  return addJob(state, relay, step, {
    kind: "direct",
    layer,
    items: [],
    source: "direct",
    method: "req",
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
  if (mayStart) return startRelated(state, relay, related, method, step);
  relay.layerFour?.ready.unshift(related);
  return false;
}

/** Each layer when the one before has ended or failed. */
function startBatch(state: SyncState, relay: Relay, layer: Layer, method: Job["method"], step: Step): boolean {
  if (relay.jobs.some((job) => job.kind === "batch" && job.layer !== layer)) return false;
  const items = takeAction(state, relay, layer);
  const queries = queriesFor(state, layer, items, undefined);
  return addJob(state, relay, step, { kind: "batch", layer, items, source: relay.round, method, queries });
}

function startRelated(state: SyncState, relay: Relay, related: Related, method: Job["method"], step: Step): boolean {
  const tags = related.ids.length > 0 ? ["e", "E"] : [undefined];
  const queries = tags.map((tag) => newQuery(tag, [], related.ids, undefined));
  const { roots: layer } = layers;
  return addJob(state, relay, step, { kind: "related", layer, items: [], source: "daily", method, related, queries });
}

/** Sends as much as the relay's limits allow. */
export function startWork(state: SyncState, relay: Relay, step: Step): void {
  if (step.now.monotonicMs < relay.historyNotBeforeMs) return;
  for (;;) {
    const exclusive = relay.jobs.some((job) => job.method === "negentropy");
    const slotsLeft = (exclusive ? 1 : state.config.maxHistorySubscriptions) - relay.bySub.size;
    if (slotsLeft <= 0) return;
    const asked = nextQueued(relay);
    if (asked) sendQuery(state, relay, asked, step);
    else if (exclusive || !startJob(state, relay, step)) return;
  }
}

function nextQueued(relay: Relay): Asked | undefined {
  for (const job of relay.jobs) {
    for (const query of job.queries) if (query.state === "queued") return { job, query };
  }
  return undefined;
}

/** Carries what an answer meant for a query to its job. */
export function settle(state: SyncState, relay: Relay, { job, query }: Asked, end: QueryEnd, step: Step): void {
  if (end === undefined) return;
  if (end !== "ended") {
    failJob(state, relay, job, end.failed, step);
    return;
  }
  query.state = "done";
  if (job.queries.every((other) => other.state === "done")) endJob(state, relay, job, step);
}

/** Every query has a time-out that runs from sending. */
export function expireQueries(state: SyncState, relay: Relay, step: Step): void {
  for (const job of [...relay.jobs]) {
    for (const query of job.queries) {
      if (queryDeadlineMs(state, query) > step.now.monotonicMs) continue;
      const asked = { job, query };
      if (query.state !== "reconciling") settle(state, relay, asked, { failed: "silence" }, step);
      else settle(state, relay, asked, onReconcileFailed(state, relay, asked, "failed", true, step), step);
    }
  }
}

function leave(relay: Relay, job: Job): void {
  relay.jobs = relay.jobs.filter((other) => other !== job);
  if (job.sweep) job.sweep.running -= 1;
}

function endJob(state: SyncState, relay: Relay, job: Job, step: Step): void {
  if (job.unpageable) {
    failJob(state, relay, job, "unpageable", step);
    return;
  }
  leave(relay, job);
  if (job.kind !== "batch") return;
  for (const item of job.items) {
    if (phaseOf(relay.items.get(item)) !== phases.pending) continue;
    setPhase(state, relay, item, job.barred.has(item) ? phases.barred : phases.confirmed, 0);
  }
  const { id: batch, layer, items, method, ended } = job;
  log(step, "debug", "batch-confirmed", relay, { batch, layer, items: items.length, method, ended });
}

const failedCodes: Record<JobKind, string> = {
  batch: "batch-failed",
  sweep: "catch-up-failed",
  related: "layer-four-failed",
  direct: "direct-failed",
};

function failJob(state: SyncState, relay: Relay, job: Job, reason: string, step: Step): void {
  if (!relay.jobs.includes(job)) return;
  for (const query of job.queries) cancelQuery(relay, query, step);
  leave(relay, job);
  const { config } = state;
  log(step, "debug", failedCodes[job.kind], relay, { batch: job.id, reason });
  if (job.sweep?.source === "reconnect") relay.catchUpFailed = true;
  if (job.sweep?.source === "rotating") rotateAgainSoon(state, relay, job.sweep, step);
  if (job.related && job.related.failures < config.failuresUntilNoted) {
    job.related.failures += 1;
    relay.layerFour?.ready.push(job.related);
  }
  if (job.kind !== "batch") return;
  let worst = 0;
  const retried: Item[] = [];
  for (const item of job.items) {
    const word = relay.items.get(item);
    if (phaseOf(word) !== phases.pending) continue;
    const failures = failuresOf(word) + 1;
    worst = Math.max(worst, failures);
    setPhase(state, relay, item, job.barred.has(item) ? phases.barred : phases.retrying, failures);
    if (!job.barred.has(item)) retried.push(item);
  }
  if (retried.length === 0) return;
  const delayMs =
    reason === "unpageable"
      ? config.unpageableRetryMs
      : config.retryDelaysMs[Math.min(worst, config.retryDelaysMs.length) - 1]!;
  relay.retries.push({ dueMs: step.now.monotonicMs + delayMs, items: retried });
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

/** The link is gone: pending is dropped, its items are new. */
export function dropJobs(state: SyncState, relay: Relay): void {
  for (const job of relay.jobs) {
    if (job.related) relay.layerFour?.ready.push(job.related);
    if (job.kind !== "batch") continue;
    for (const item of job.items) {
      if (phaseOf(relay.items.get(item)) === phases.pending) makeFresh(state, relay, item);
    }
  }
  relay.jobs = [];
  relay.bySub.clear();
  relay.sweeps = [];
}

/** A full sync begins on an open link: what is under way is called off first. */
export function cancelJobs(state: SyncState, relay: Relay, step: Step): void {
  for (const job of relay.jobs) for (const query of job.queries) cancelQuery(relay, query, step);
  dropJobs(state, relay);
}
