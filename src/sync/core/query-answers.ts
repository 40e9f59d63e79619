// What a refusal, silence or a negentropy session's end means for a query (spec "History" 1 and 3): wait, authenticate,
// fetch, or ask for less. What is too large is asked for in smaller parts, and the size that was too large is kept as a
// limit of this link; one bad value is found by halves, so that the others do not suffer.

import type { RelayLimits } from "../../net/relay-dialer.js";
import type { EventId } from "../../nostr/event.js";
import type { Meaning } from "./closed-reasons.js";
import { hourMs } from "./config.js";
import { log, type Relay, type SyncState, tally } from "./core-state.js";
import { textOf } from "./items.js";
import type { Asked, Job, Query, Slice } from "./job.js";
import type { ReconcileFailure } from "./messages.js";
import { halves, smallestCap, splitTime } from "./paging.js";
import { close, endSlice, lastSlice, pageLimit, type QueryEnd } from "./query.js";

/** Learned the hard way, kept like what NIP-11 states. */
export function learnLimit(relay: Relay, limits: RelayLimits): void {
  relay.limits = { ...relay.limits, ...limits };
}

/** So many values were too many. The kind beside them counts as one (items.ts). */
export const learnValues = (relay: Relay, values: number): void =>
  learnLimit(relay, { maxFilterValues: Math.max(1, values >> 1) + 1 });

/** Understood and not done: asking again soon would bring the same answer. */
export const refusedByRule = "refused";

export function onQueryClosed(state: SyncState, relay: Relay, { job, query }: Asked, meaning: Meaning): QueryEnd {
  close(state, relay, query, false);
  switch (meaning) {
    case "rate-limited":
      return "again";
    case "auth-required":
      return awaitAuth(state, relay, query);
    case "too-many-results":
      return smallerPages(state, relay, query);
    case "invalid":
    case "too-many-values":
      if (query.state === "fetching") return fewerIds(relay, query);
      if (meaning === "too-many-values") noteTooMany(relay, query);
      return halve(state, relay, job, query, meaning === "too-many-values");
    default:
      return { failed: meaning === "refused" ? refusedByRule : "closed" };
  }
}

function awaitAuth(state: SyncState, relay: Relay, query: Query): QueryEnd {
  if (!relay.authPending) return { failed: refusedByRule };
  query.state = "auth";
  query.heardMs = state.now.monotonicMs;
  return undefined;
}

/** The slice's filter names more values than the relay takes. */
function noteTooMany(relay: Relay, query: Query): void {
  if (lastSlice(query).values.length > 1) learnValues(relay, lastSlice(query).values.length);
}

function smallerPages(state: SyncState, relay: Relay, query: Query): QueryEnd {
  const limit = pageLimit(state, relay);
  if (query.state !== "paging" || limit <= smallestCap) return { failed: "closed" };
  learnLimit(relay, { maxLimit: limit >> 1 });
  return "again";
}

function fewerIds(relay: Relay, query: Query): QueryEnd {
  if (query.sentIds.length <= 1) return { failed: "invalid" };
  learnValues(relay, query.sentIds.length);
  return "again";
}

/**
 * Two slices of half the values, or of half the authors; undefined when there is only one. Where there are both and one
 * value is left, it is the value that is wrong, unless the relay said that there are too many.
 */
function halfSlices({ related }: Job, { tag }: Query, slice: Slice, areTooMany: boolean): Slice[] | undefined {
  if (tag !== undefined && slice.values.length > 1) return halves(slice.values).map((values) => ({ ...slice, values }));
  if (tag !== undefined && !areTooMany) return undefined;
  const authors = slice.authors ?? related?.authors ?? [];
  return authors.length > 1 ? halves(authors).map((half) => ({ ...slice, authors: half })) : undefined;
}

function halve(state: SyncState, relay: Relay, job: Job, query: Query, areTooMany: boolean): QueryEnd {
  const slice = lastSlice(query);
  const parts = halfSlices(job, query, slice, areTooMany);
  if (parts) return endSlice(state, query, parts);
  if (query.tag === undefined) return { failed: "invalid" };
  for (const item of query.items) if (textOf(state.wanted, item) === slice.values[0]) job.barred.add(item);
  log(state, "warn", "value-refused", relay, { batch: job.id });
  return endSlice(state, query, []);
}

/** A session's filter names too much. Undefined when it cannot be made smaller. */
function fewerValues(state: SyncState, relay: Relay, { job, query }: Asked): { end: QueryEnd } | undefined {
  const parts = halfSlices(job, query, lastSlice(query), true);
  if (!parts) return undefined;
  noteTooMany(relay, query);
  return { end: endSlice(state, query, parts) };
}

/** The relay told us to slow down: requests without any answer were probably dropped, and are sent again afterwards. */
export function resendUnanswered(state: SyncState, relay: Relay): void {
  for (const { query } of [...relay.bySub.values()]) {
    if (query.answered || query.readsOwn) continue;
    close(state, relay, query, true);
    query.state = "queued";
  }
}

/** What is under way while the relay limits us may be dropped without a word. */
export function excuseSilence(relay: Relay): void {
  for (const { query } of relay.bySub.values()) query.slowedDown = true;
}

/** Nothing was heard for too long. */
export function onQuerySilent(state: SyncState, relay: Relay, query: Query): QueryEnd {
  if (!query.slowedDown) return { failed: "silence" };
  close(state, relay, query, true);
  return "again";
}

export function onReconciled(
  state: SyncState,
  relay: Relay,
  { job, query }: Asked,
  missing: readonly EventId[],
): QueryEnd {
  job.ended.push(query.name);
  close(state, relay, query, false);
  relay.negentropyFailures = 0;
  relay.splitsInVain = 0;
  tally(state, "negentropy", relay, "ok");
  // Remembered ids are subtracted here, after the exchange: they must not show in our side of it.
  query.toFetch = missing.filter((id) => !state.remembered.has(id, state.now));
  return query.toFetch.length === 0 ? endSlice(state, query, []) : "again";
}

/** The session is over without a result. `tell`: the relay does not know yet. */
export function onReconcileFailed(
  state: SyncState,
  relay: Relay,
  asked: Asked,
  kind: ReconcileFailure,
  tell: boolean,
): QueryEnd {
  const { job, query } = asked;
  close(state, relay, query, tell);
  tally(state, "negentropy", relay, kind);
  switch (kind) {
    case "too-many":
      return lessTime(state, relay, query);
    case "too-many-values": {
      const fewer = fewerValues(state, relay, asked);
      if (fewer) return fewer.end;
      break;
    }
    case "auth-required":
      if (relay.authPending) return awaitAuth(state, relay, query);
      break;
    case "rate-limited":
      return "again";
    case "ours":
      return { failed: "own-store" };
    case "failed":
      countFailure(state, relay, job);
      break;
  }
  // What this job has reconciled stays; the rest goes on with REQ.
  job.method = "req";
  return "again";
}

/** Halved, until that has led nowhere for too long: then this stretch of time is asked for by REQ. */
function lessTime(state: SyncState, relay: Relay, query: Query): QueryEnd {
  const { maxSplitsInVain, maxSplitsPerQuery } = state.config;
  const slice = lastSlice(query);
  const isInVain = relay.splitsInVain >= maxSplitsInVain || query.splits >= maxSplitsPerQuery;
  const parts = isInVain ? undefined : splitTime(slice, Math.floor(state.now.wallMs / 1000));
  if (!parts) return endSlice(state, query, [{ ...slice, byRequest: true }]);
  relay.splitsInVain += 1;
  query.splits += 1;
  return endSlice(state, query, parts);
}

/** Three in a row, and the relay is not asked this way for a day. */
function countFailure(state: SyncState, relay: Relay, job: Job): void {
  relay.negentropyFailures += 1;
  if (relay.negentropyFailures >= state.config.syncNegentropyMaxFailures) {
    relay.negentropyFailures = 0;
    relay.noNegentropyUntilMs = state.now.monotonicMs + state.config.syncNegentropyRetryHours * hourMs;
  }
  if (relay.warnedNegentropy) return;
  relay.warnedNegentropy = true;
  log(state, "warn", "negentropy-fallback", relay, { batch: job.id });
}

/** The relay's time begins when it is asked, and stands while we look into our own store. */
export function onReconcileProgress(state: SyncState, query: Query, ours: boolean): void {
  query.heardMs = state.now.monotonicMs;
  if (!query.readsOwn) query.answered = true;
  else if (!ours) query.sentMs = state.now.monotonicMs;
  query.readsOwn = ours;
}

/** Silence, and whose it is. */
export const silenceIn = (query: Query): ReconcileFailure =>
  query.readsOwn ? "ours" : query.slowedDown ? "rate-limited" : "failed";
