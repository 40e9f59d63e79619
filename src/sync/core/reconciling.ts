// Negentropy's answers (spec "History" 1 and 3): what a finished session leaves to fetch, and how a failed one goes on:
// split by time, or with REQ.

import type { EventId } from "../../nostr/ids.js";
import type { Asked } from "./job.js";
import type { ReconcileFailure } from "./messages.js";
import { splitTime } from "./paging.js";
import { close, endSlice, type QueryEnd } from "./query.js";
import type { Relay } from "./relay.js";
import type { Step, SyncState } from "./state.js";
import { log, tally } from "./telling.js";

export function onReconciled(
  state: SyncState,
  relay: Relay,
  { job, query }: Asked,
  missing: readonly EventId[],
  step: Step,
): QueryEnd {
  job.ended.push(query.name);
  close(relay, query, false, step);
  relay.negentropyFailures = 0;
  tally(step, "negentropy", relay, "ok");
  // Remembered ids are subtracted here, after the exchange: they must not show in our side of it.
  query.toFetch = missing.filter((id) => !state.remembered.has(id, step.now));
  if (query.toFetch.length === 0) return endSlice(state, query, []);
  query.state = "queued";
  return undefined;
}

/** The session is over without a result: split by time, or go on with REQ. `tell`: the relay does not know yet. */
export function onReconcileFailed(
  state: SyncState,
  relay: Relay,
  { job, query }: Asked,
  kind: ReconcileFailure,
  tell: boolean,
  step: Step,
): QueryEnd {
  close(relay, query, tell, step);
  tally(step, "negentropy", relay, kind);
  if (kind === "too-many") {
    const slice = query.slices[query.slices.length - 1]!;
    return endSlice(state, query, splitTime(slice, Math.floor(step.now.wallMs / 1000)));
  }
  query.state = "queued";
  if (kind === "rate-limited") return undefined;
  relay.negentropyFailures += 1;
  if (relay.negentropyFailures >= state.config.negentropyFailuresBeforeGivingUp) {
    relay.negentropyFailures = 0;
    relay.noNegentropyUntilMs = step.now.monotonicMs + state.config.noNegentropyMs;
  }
  if (!relay.warnedNegentropy) {
    relay.warnedNegentropy = true;
    log(step, "warn", "negentropy-fallback", relay, { batch: job.id });
  }
  // What this job has reconciled stays; the rest goes on with REQ.
  job.method = "req";
  return undefined;
}
