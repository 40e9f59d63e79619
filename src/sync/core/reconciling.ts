// Negentropy's answers (spec "History" 1 and 3): what a finished session leaves to fetch, and how a failed one goes on:
// split by time, with fewer values, later, or with REQ.

import type { EventId } from "../../nostr/ids.js";
import type { Asked, Job, Query } from "./job.js";
import type { ReconcileFailure } from "./messages.js";
import { splitTime } from "./paging.js";
import { close, endSlice, type QueryEnd } from "./query.js";
import { awaitAuth, fewerValues } from "./query-refused.js";
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
  relay.splitsInVain = 0;
  tally(step, "negentropy", relay, "ok");
  // Remembered ids are subtracted here, after the exchange: they must not show in our side of it.
  query.toFetch = missing.filter((id) => !state.remembered.has(id, step.now));
  if (query.toFetch.length === 0) return endSlice(state, query, []);
  query.state = "queued";
  return undefined;
}

/** The session is over without a result. `tell`: the relay does not know yet. */
export function onReconcileFailed(
  state: SyncState,
  relay: Relay,
  asked: Asked,
  kind: ReconcileFailure,
  tell: boolean,
  step: Step,
): QueryEnd {
  const { job, query } = asked;
  close(relay, query, tell, step);
  tally(step, "negentropy", relay, kind);
  switch (kind) {
    case "too-many":
      return lessTime(state, relay, query, step);
    case "too-many-values": {
      const fewer = fewerValues(state, relay, asked);
      if (fewer) return fewer.end;
      break;
    }
    case "auth-required":
      if (relay.authPending) return awaitAuth(relay, query, step);
      break;
    case "rate-limited":
      query.state = "queued";
      return undefined;
    case "ours":
      return { failed: "own-store" };
    case "failed":
      countFailure(state, relay, job, step);
      break;
  }
  // What this job has reconciled stays; the rest goes on with REQ.
  job.method = "req";
  query.state = "queued";
  return undefined;
}

/** Halved, until that has led nowhere for too long: then this stretch of time is asked for by REQ. */
function lessTime(state: SyncState, relay: Relay, query: Query, step: Step): QueryEnd {
  const { maxSplitsInVain, maxSplitsPerQuery } = state.config;
  const slice = query.slices[query.slices.length - 1]!;
  const isInVain = relay.splitsInVain >= maxSplitsInVain || query.splits >= maxSplitsPerQuery;
  const parts = isInVain ? undefined : splitTime(slice, Math.floor(step.now.wallMs / 1000));
  if (!parts) return endSlice(state, query, [{ ...slice, byRequest: true }]);
  relay.splitsInVain += 1;
  query.splits += 1;
  return endSlice(state, query, parts);
}

/** Three in a row, and the relay is not asked this way for a day. */
function countFailure(state: SyncState, relay: Relay, job: Job, step: Step): void {
  relay.negentropyFailures += 1;
  if (relay.negentropyFailures >= state.config.negentropyFailuresBeforeGivingUp) {
    relay.negentropyFailures = 0;
    relay.noNegentropyUntilMs = step.now.monotonicMs + state.config.noNegentropyMs;
  }
  if (relay.warnedNegentropy) return;
  relay.warnedNegentropy = true;
  log(step, "warn", "negentropy-fallback", relay, { batch: job.id });
}

/** The relay's time begins when it is asked, and stands while we look into our own store. */
export function onReconcileProgress(query: Query, ours: boolean, step: Step): void {
  query.heardMs = step.now.monotonicMs;
  if (!query.readsOwn) query.answered = true;
  else if (!ours) query.sentMs = step.now.monotonicMs;
  query.readsOwn = ours;
}

/** Silence, and whose it is. */
export const silenceIn = (query: Query): ReconcileFailure =>
  query.readsOwn ? "ours" : query.slowedDown ? "rate-limited" : "failed";
