// Negentropy's answers (spec "History" 1 and 3): what a finished session leaves to fetch, and how a failed one goes on:
// split by time, or with REQ. Also the time-outs of all queries, because a session's is one of them.

import type { EventId } from "../../nostr/ids.js";
import type { Job, Query } from "./job.js";
import type { ReconcileFailure } from "./messages.js";
import { splitTime } from "./paging.js";
import { close, type Ends, endSlice, queryDeadlineMs } from "./query.js";
import type { Relay } from "./relay.js";
import type { Step, SyncState } from "./state.js";

export function onReconciled(
  state: SyncState,
  relay: Relay,
  job: Job,
  query: Query,
  missing: readonly EventId[],
  ends: Ends,
  step: Step,
): void {
  job.ended.push(query.name);
  close(relay, query, false, step);
  relay.negentropyFailures = 0;
  step.out.push({ type: "count", counter: "negentropy", relay: relay.key, label: "ok", by: 1 });
  // Remembered ids are subtracted here, after the exchange: they must not show in our side of it.
  query.toFetch = missing.filter((id) => !state.remembered.has(id, step.now));
  if (query.toFetch.length > 0) query.state = "queued";
  else endSlice(state, relay, job, query, [], ends, step);
}

/** The session is over without a result: split by time, or go on with REQ. */
export function onReconcileFailed(
  state: SyncState,
  relay: Relay,
  job: Job,
  query: Query,
  kind: ReconcileFailure,
  tell: boolean,
  ends: Ends,
  step: Step,
): void {
  close(relay, query, tell, step);
  step.out.push({ type: "count", counter: "negentropy", relay: relay.key, label: kind, by: 1 });
  if (kind === "rate-limited") {
    query.state = "queued";
    return;
  }
  if (kind === "too-many") {
    const slice = query.slices[query.slices.length - 1]!;
    endSlice(state, relay, job, query, splitTime(slice, Math.floor(step.now.wallMs / 1000)), ends, step);
    return;
  }
  relay.negentropyFailures += 1;
  if (relay.negentropyFailures >= state.config.negentropyFailuresBeforeGivingUp) {
    relay.negentropyFailures = 0;
    relay.noNegentropyUntilMs = step.now.monotonicMs + state.config.noNegentropyMs;
  }
  if (!relay.warnedNegentropy) {
    relay.warnedNegentropy = true;
    step.out.push({
      type: "log",
      level: "warn",
      code: "negentropy-fallback",
      relay: relay.key,
      fields: { batch: job.id },
    });
  }
  // What this job has reconciled stays; the rest goes on with REQ.
  job.method = "req";
  query.state = "queued";
}

export function expireQueries(state: SyncState, relay: Relay, ends: Ends, step: Step): void {
  for (const job of [...relay.jobs]) {
    for (const query of job.queries) {
      if (queryDeadlineMs(state, query) > step.now.monotonicMs) continue;
      if (query.state === "reconciling") onReconcileFailed(state, relay, job, query, "failed", true, ends, step);
      else {
        ends.failed(state, relay, job, "silence", step);
        break;
      }
    }
  }
}
