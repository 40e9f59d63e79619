// What the end of a query means for its job, and the end of a job for its items (spec "History" 5): confirmed only when
// everything was answered, fresh again after a delay otherwise. Never stuck: every query has a time-out.

import { noteBatch } from "./in-step.js";
import { failuresOf, type Item, phaseOf, phases } from "./items.js";
import type { Asked, Job, JobKind } from "./job.js";
import { putBack, tryRelatedAgain } from "./layer-four.js";
import { onOwedFailed, putBackOwed } from "./owed.js";
import { cancelQuery, type QueryEnd, queryDeadlineMs } from "./query.js";
import { onQuerySilent } from "./query-refused.js";
import { onReconcileFailed, silenceIn } from "./reconciling.js";
import type { Relay } from "./relay.js";
import { cutRounds, rotateAgainSoon } from "./rotation.js";
import type { Step, SyncState } from "./state.js";
import { log } from "./telling.js";
import { makeFresh, setPhase } from "./words.js";

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
      if (queryDeadlineMs(state, relay, query) > step.now.monotonicMs) continue;
      const asked = { job, query };
      if (query.state !== "reconciling") settle(state, relay, asked, onQuerySilent(relay, query, step), step);
      else settle(state, relay, asked, onReconcileFailed(state, relay, asked, silenceIn(query), true, step), step);
    }
  }
}

function leave({ config }: SyncState, relay: Relay, job: Job, step: Step): void {
  relay.jobs = relay.jobs.filter((other) => other !== job);
  relay.nextJobMs = step.now.monotonicMs + config.batchDelayMs;
  const { sweep } = job;
  if (!sweep) return;
  sweep.running -= 1;
  if (sweep.running + sweep.items.length === 0) relay.sweeps = relay.sweeps.filter((other) => other !== sweep);
}

/** Those a batch still speaks for: an item's number may be another's by now, which a later batch asks for. */
function itemsOf(relay: Relay, job: Job): Item[] {
  const later = new Set(relay.jobs.flatMap(({ kind, id, items }) => (kind === "batch" && id > job.id ? items : [])));
  return job.items.filter((item) => phaseOf(relay.items.get(item)) === phases.pending && !later.has(item));
}

function endJob(state: SyncState, relay: Relay, job: Job, step: Step): void {
  if (job.unpageable) {
    failJob(state, relay, job, "unpageable", step);
    return;
  }
  leave(state, relay, job, step);
  if (job.kind !== "batch") return;
  for (const item of itemsOf(relay, job)) {
    setPhase(state, relay, item, job.barred.has(item) ? phases.barred : phases.confirmed, 0);
  }
  noteBatch(state, relay, job);
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
  leave(state, relay, job, step);
  const { config } = state;
  log(step, "debug", failedCodes[job.kind], relay, { batch: job.id, reason });
  if (job.sweep?.source === "reconnect") relay.catchUpFailed = true;
  if (job.sweep?.source === "rotating") rotateAgainSoon(relay, job.sweep, job.items, step.now.monotonicMs);
  if (job.related) tryRelatedAgain(state, relay, job.related);
  onOwedFailed(state, relay, job, step);
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

/** The link is gone: pending is dropped, its items are new, and not asked for the first time any more. */
export function dropJobs(state: SyncState, relay: Relay): void {
  cutRounds(relay);
  for (const job of relay.jobs) {
    if (job.related) putBack(relay, job.related);
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
  relay.sweeps = [];
}

/** A full sync begins on an open link: what is under way is called off first. */
export function cancelJobs(state: SyncState, relay: Relay, step: Step): void {
  for (const job of relay.jobs) for (const query of job.queries) cancelQuery(relay, query, step);
  dropJobs(state, relay);
}
