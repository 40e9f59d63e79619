// Jobs on their way to a relay: batches, catch-up, rotation, layer 4, direct ids (spec "History"). Starts what fits
// (one negentropy session or four subscriptions), runs each query to its end, and decides what its end means for
// the items: confirmed only when everything was answered, fresh again after a delay otherwise. Never stuck: every
// query has a time-out that runs from sending.

import { nextAction, nextLayer } from "./actions.js";
import { historyRoom, tagsOf, textOf, valueBytes, valuesOf } from "./filters.js";
import { failuresOf, type Item, layers, phaseOf, phases, slotOf } from "./items.js";
import type { Job, JobKind, Query, Related, Sweep } from "./job.js";
import { takeRelated } from "./layer-four.js";
import { cancelQuery, sendQuery } from "./query.js";
import { makeFresh, type Relay, setWord } from "./relay.js";
import { rotateAgainSoon } from "./rotation.js";
import type { Step, SyncState } from "./state.js";

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

function addJob(
  state: SyncState,
  relay: Relay,
  step: Step,
  parts: Pick<Job, "kind" | "layer" | "items" | "source" | "method"> & {
    sweep?: Sweep;
    related?: Related;
  },
  queries: Query[],
): void {
  relay.jobs.push({
    id: state.nextJob++,
    startedMs: step.now.monotonicMs,
    barred: new Set(),
    ended: [],
    unpageable: false,
    sweep: undefined,
    related: undefined,
    ...parts,
    queries,
  });
}

function queriesFor(state: SyncState, layer: Job["layer"], items: readonly Item[], since: number | undefined): Query[] {
  const tags = tagsOf(layer, items);
  const values = valuesOf(state.wanted, items);
  return tags.length === 0
    ? [newQuery(undefined, items, [], since)]
    : tags.map((tag) => newQuery(tag, items, values, since));
}

export const mayReconcile = (state: SyncState, relay: Relay, nowMs: number): boolean =>
  !state.config.disableNegentropy && relay.noNegentropyUntilMs <= nowMs;

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
    addJob(
      state,
      relay,
      step,
      { kind: "sweep", layer, items, source, method: "req", sweep },
      queriesFor(state, layer, items, since),
    );
    return true;
  }
  return false;
}

function startDirect(state: SyncState, relay: Relay, step: Step): boolean {
  if (relay.direct.length === 0) return false;
  const query = newQuery(undefined, [], [], undefined);
  query.toFetch = relay.direct.splice(0);
  addJob(
    state,
    relay,
    step,
    { kind: "direct", layer: layers.announcements, items: [], source: "direct", method: "req" },
    [query],
  );
  return true;
}

/** Forms the next job, in the order of the spec. False when there is nothing, or it must wait for what runs. */
function startJob(state: SyncState, relay: Relay, step: Step): boolean {
  if (startDirect(state, relay, step) || startSweep(state, relay, "reconnect", step)) return true;
  const layer = nextLayer(relay);
  if (layer !== undefined) {
    // Each layer when the one before has ended or failed; a negentropy session has the relay for itself.
    const method = mayReconcile(state, relay, step.now.monotonicMs) ? "negentropy" : "req";
    if (
      method === "negentropy"
        ? relay.jobs.length > 0
        : relay.jobs.some((job) => job.kind === "batch" && job.layer !== layer)
    )
      return false;
    const action = nextAction(state, relay);
    if (!action) return false;
    const source = relay.round;
    addJob(
      state,
      relay,
      step,
      { kind: "batch", ...action, source, method },
      queriesFor(state, action.layer, action.items, undefined),
    );
    return true;
  }
  if (relay.jobs.some((job) => job.kind === "batch")) return false;
  const related = takeRelated(state, relay, step);
  if (related) {
    const method = mayReconcile(state, relay, step.now.monotonicMs) ? "negentropy" : "req";
    if (method === "negentropy" && relay.jobs.length > 0) {
      relay.layerFour?.ready.unshift(related);
      return false;
    }
    const queries =
      related.ids.length > 0
        ? ["e", "E"].map((tag) => newQuery(tag, [], related.ids, undefined))
        : [newQuery(undefined, [], [], undefined)];
    addJob(
      state,
      relay,
      step,
      { kind: "related", layer: layers.roots, items: [], source: "daily", method, related },
      queries,
    );
    return true;
  }
  return startSweep(state, relay, "rotating", step);
}

/** Sends as much as the relay's limits allow. */
export function startWork(state: SyncState, relay: Relay, step: Step): void {
  if (step.now.monotonicMs < relay.historyNotBeforeMs) return;
  for (;;) {
    const exclusive = relay.jobs.some((job) => job.method === "negentropy");
    const slotsLeft = (exclusive ? 1 : state.config.maxHistorySubscriptions) - relay.bySub.size;
    if (slotsLeft <= 0) return;
    const job = relay.jobs.find((other) => other.queries.some((query) => query.state === "queued"));
    const query = job?.queries.find((other) => other.state === "queued");
    if (job && query) sendQuery(state, relay, job, query, step);
    else if (exclusive || !startJob(state, relay, step)) return;
  }
}

export function endQuery(state: SyncState, relay: Relay, job: Job, query: Query, step: Step): void {
  query.state = "done";
  if (job.queries.every((other) => other.state === "done")) endJob(state, relay, job, step);
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
  const noted = state.config.failuresUntilNoted;
  for (const item of job.items) {
    const word = relay.items.get(item);
    if (word < 0 || phaseOf(word) !== phases.pending) continue;
    setWord(relay, item, job.barred.has(item) ? phases.barred : phases.confirmed, 0, slotOf(word), noted);
  }
  step.out.push({
    type: "log",
    level: "debug",
    code: "batch-confirmed",
    relay: relay.key,
    fields: { batch: job.id, layer: job.layer, items: job.items.length, method: job.method, ended: job.ended },
  });
}

export function failJob(state: SyncState, relay: Relay, job: Job, reason: string, step: Step): void {
  if (!relay.jobs.includes(job)) return;
  for (const query of job.queries) cancelQuery(relay, query, step);
  leave(relay, job);
  const { config } = state;
  const kindOf: Record<JobKind, string> = {
    batch: "batch-failed",
    sweep: "catch-up-failed",
    related: "layer-four-failed",
    direct: "direct-failed",
  };
  step.out.push({
    type: "log",
    level: "debug",
    code: kindOf[job.kind],
    relay: relay.key,
    fields: { batch: job.id, reason },
  });
  if (job.kind === "sweep" && job.source === "reconnect") relay.catchUpFailed = true;
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
    if (word < 0 || phaseOf(word) !== phases.pending) continue;
    const failures = failuresOf(word) + 1;
    worst = Math.max(worst, failures);
    setWord(
      relay,
      item,
      job.barred.has(item) ? phases.barred : phases.retrying,
      failures,
      slotOf(word),
      config.failuresUntilNoted,
    );
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
  if (relay.retries.length === 0) return;
  const due = relay.retries.filter((retry) => retry.dueMs <= nowMs);
  if (due.length === 0) return;
  relay.retries = relay.retries.filter((retry) => retry.dueMs > nowMs);
  for (const { items } of due) {
    for (const item of items) {
      const word = relay.items.get(item);
      if (word >= 0 && phaseOf(word) === phases.retrying) makeFresh(relay, item, state.config.failuresUntilNoted);
    }
  }
}

/** The link is gone: pending is dropped, its items are new. */
export function dropJobs(state: SyncState, relay: Relay): void {
  for (const job of relay.jobs) {
    if (job.related) relay.layerFour?.ready.push(job.related);
    for (const item of job.items) {
      const word = relay.items.get(item);
      if (job.kind === "batch" && word >= 0 && phaseOf(word) === phases.pending) {
        makeFresh(relay, item, state.config.failuresUntilNoted);
      }
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
