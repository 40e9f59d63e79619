// What a refusal means for a query: wait, authenticate, or ask for less. What is too large is asked for in smaller parts,
// and the size that was too large is kept as a limit of this link; one bad value is found by halves, so that the others
// do not suffer.

import type { Meaning } from "./answers.js";
import { textOf } from "./filters.js";
import type { Asked, Job, Query, Slice } from "./job.js";
import type { RelayLimits } from "./messages.js";
import { halves, smallestCap } from "./paging.js";
import { close, endSlice, pageLimit, type QueryEnd } from "./query.js";
import type { Relay } from "./relay.js";
import type { Step, SyncState } from "./state.js";
import { log } from "./telling.js";

/** Learned the hard way, kept like what NIP-11 states. */
export function learnLimit(relay: Relay, limits: RelayLimits): void {
  relay.limits = { ...relay.limits, ...limits };
}

/** So many values were too many. The kind beside them counts as one (room.ts). */
export const learnValues = (relay: Relay, values: number): void =>
  learnLimit(relay, { maxFilterValues: Math.max(1, values >> 1) + 1 });

export function onQueryClosed(
  state: SyncState,
  relay: Relay,
  { job, query }: Asked,
  meaning: Meaning,
  step: Step,
): QueryEnd {
  close(relay, query, false, step);
  switch (meaning) {
    case "rate-limited":
      query.state = "queued";
      return undefined;
    case "auth-required":
      return awaitAuth(relay, query, step);
    case "too-many-results":
      return smallerPages(state, relay, query);
    case "invalid":
    case "too-many-values":
      if (query.state === "fetching") return fewerIds(relay, query);
      if (meaning === "too-many-values") noteTooMany(relay, query);
      return halve(state, relay, job, query, step);
    default:
      return { failed: "closed" };
  }
}

export function awaitAuth(relay: Relay, query: Query, step: Step): QueryEnd {
  if (!relay.authPending) return { failed: "closed" };
  query.state = "auth";
  query.heardMs = step.now.monotonicMs;
  return undefined;
}

const lastSlice = (query: Query): Slice => query.slices[query.slices.length - 1]!;

/** The slice's filter names more values than the relay takes. */
function noteTooMany(relay: Relay, query: Query): void {
  if (lastSlice(query).values.length > 1) learnValues(relay, lastSlice(query).values.length);
}

function smallerPages(state: SyncState, relay: Relay, query: Query): QueryEnd {
  const limit = pageLimit(state, relay);
  if (query.state !== "paging" || limit <= smallestCap) return { failed: "closed" };
  learnLimit(relay, { maxLimit: limit >> 1 });
  query.state = "queued";
  return undefined;
}

function fewerIds(relay: Relay, query: Query): QueryEnd {
  if (query.sentIds.length <= 1) return { failed: "invalid" };
  learnValues(relay, query.sentIds.length);
  query.state = "queued";
  return undefined;
}

/** Two slices of half the values, or of half the authors; undefined when there is only one. */
function halfSlices({ related }: Job, { tag }: Query, slice: Slice): Slice[] | undefined {
  if (tag !== undefined) {
    return slice.values.length > 1 ? halves(slice.values).map((values) => ({ ...slice, values })) : undefined;
  }
  const authors = slice.authors ?? related?.authors ?? [];
  return authors.length > 1 ? halves(authors).map((half) => ({ ...slice, authors: half })) : undefined;
}

function halve(state: SyncState, relay: Relay, job: Job, query: Query, step: Step): QueryEnd {
  const slice = lastSlice(query);
  const parts = halfSlices(job, query, slice);
  if (parts) return endSlice(state, query, parts);
  if (query.tag === undefined) return { failed: "invalid" };
  for (const item of query.items) if (textOf(state.wanted, item) === slice.values[0]) job.barred.add(item);
  log(step, "warn", "value-refused", relay, { batch: job.id });
  return endSlice(state, query, []);
}

/** A session's filter names too much. Undefined when it cannot be made smaller. */
export function fewerValues(state: SyncState, relay: Relay, { job, query }: Asked): { end: QueryEnd } | undefined {
  const parts = halfSlices(job, query, lastSlice(query));
  if (!parts) return undefined;
  noteTooMany(relay, query);
  return { end: endSlice(state, query, parts) };
}

/** The relay told us to slow down: requests without any answer were probably dropped, and are sent again afterwards. */
export function resendUnanswered(relay: Relay, step: Step): void {
  for (const { query } of [...relay.bySub.values()]) {
    if (query.answered || query.readsOwn) continue;
    close(relay, query, true, step);
    query.state = "queued";
  }
}

/** What is under way while the relay limits us may be dropped without a word. */
export function excuseSilence(relay: Relay): void {
  for (const { query } of relay.bySub.values()) query.slowedDown = true;
}

/** Nothing was heard for too long. */
export function onQuerySilent(relay: Relay, query: Query, step: Step): QueryEnd {
  if (!query.slowedDown) return { failed: "silence" };
  close(relay, query, true, step);
  query.state = "queued";
  return undefined;
}
