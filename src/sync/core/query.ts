// One query of a job against the relay: negentropy and its fetches, or pages. What an answer means for the query; the
// job's fate is history.ts's, reached through the callbacks in `Ends`, because the two would import each other.

import type { NostrEvent } from "../../nostr/event.js";
import type { EventId } from "../../nostr/ids.js";
import { kinds } from "../../nostr/kinds.js";
import type { ClosedMeaning } from "./answers.js";
import { filterOf, textOf } from "./filters.js";
import { type Item, layers } from "./items.js";
import type { Job, Page, Query, Slice } from "./job.js";
import { addToPage, endOfPage, isInSlice, newPage } from "./paging.js";
import type { Relay } from "./relay.js";
import type { Step, SyncState } from "./state.js";

/** How a query leaves the relay's hands. */
export interface Ends {
  ended(state: SyncState, relay: Relay, job: Job, query: Query, step: Step): void;
  failed(state: SyncState, relay: Relay, job: Job, reason: string, step: Step): void;
}

/** Smaller answers say nothing about how many a relay is willing to send. */
const smallestCap = 10;
const authorKinds: readonly number[] = [kinds.deletion, kinds.vanish, kinds.graspList];

function filterFor(job: Job, query: Query, slice: Slice, limit: number | undefined): ReturnType<typeof filterOf> {
  const { since, until } = slice;
  if (job.related && query.tag === undefined) {
    return {
      kinds: slice.kinds ?? authorKinds,
      authors: slice.authors ?? job.related.authors,
      ...(since !== undefined && { since }),
      ...(until !== undefined && { until }),
      ...(limit !== undefined && { limit }),
    };
  }
  return filterOf(job.layer, query.tag, slice.values, {
    since,
    until,
    limit,
    kinds: slice.kinds,
    authors: slice.authors,
  });
}

const pageLimit = (state: SyncState, relay: Relay): number =>
  Math.max(1, Math.min(state.config.pageSize, relay.limits.maxLimit ?? state.config.pageSize));

function begin(
  state: SyncState,
  relay: Relay,
  job: Job,
  query: Query,
  next: Query["state"],
  prefix: string,
  step: Step,
): string {
  query.name = `${prefix}${state.nextName++}`;
  query.state = next;
  query.sentMs = step.now.monotonicMs;
  query.heardMs = step.now.monotonicMs;
  relay.bySub.set(query.name, { job, query });
  return query.name;
}

/** Sends the query's next request: a fetch that is due, a session, or a page. */
export function sendQuery(state: SyncState, relay: Relay, job: Job, query: Query, step: Step): void {
  const of = { relay: relay.key, link: relay.link };
  if (query.toFetch.length > 0) {
    const perFetch = Math.min(state.config.idsPerFetch, pageLimit(state, relay));
    const ids = query.toFetch.slice(0, perFetch);
    query.asked = new Set(ids);
    query.delivered = 0;
    step.out.push({
      type: "fetchIds",
      ...of,
      subscription: begin(state, relay, job, query, "fetching", "h", step),
      ids,
    });
    return;
  }
  const slice = query.slices[query.slices.length - 1]!;
  if (job.method === "negentropy" && !slice.byRequest) {
    const session = begin(state, relay, job, query, "reconciling", "n", step);
    const { maxMissingIds } = state.config;
    step.out.push({
      type: "reconcile",
      ...of,
      session,
      filter: filterFor(job, query, slice, undefined),
      maxMissing: maxMissingIds,
    });
    return;
  }
  const limit = pageLimit(state, relay);
  query.page = newPage(slice, limit, query.boundary);
  const subscription = begin(state, relay, job, query, "paging", "h", step);
  step.out.push({ type: "subscribe", ...of, subscription, filters: [filterFor(job, query, slice, limit)] });
}

/** The request is over on our side; the relay is told unless it ended it itself. */
export function close(relay: Relay, query: Query, tell: boolean, step: Step): void {
  if (!relay.bySub.delete(query.name) || !tell) return;
  const of = { relay: relay.key, link: relay.link };
  if (query.state === "reconciling") step.out.push({ type: "stopReconcile", ...of, session: query.name });
  else step.out.push({ type: "unsubscribe", ...of, subscription: query.name });
}

export function cancelQuery(relay: Relay, query: Query, step: Step): void {
  close(relay, query, true, step);
  query.state = "done";
}

/** The slice is done: the next one, or the query has ended. */
export function endSlice(
  state: SyncState,
  relay: Relay,
  job: Job,
  query: Query,
  next: readonly Slice[],
  ends: Ends,
  step: Step,
): void {
  query.slices.pop();
  query.slices.push(...next);
  query.page = undefined;
  if (query.slices.length > state.config.maxSlicesPerQuery) ends.failed(state, relay, job, "unpageable", step);
  else if (query.slices.length > 0) query.state = "queued";
  else ends.ended(state, relay, job, query, step);
}

/** Whether the event answers what this query asked. A relay that sends more than asked fails the job. */
export function onQueryEvent(
  state: SyncState,
  relay: Relay,
  job: Job,
  query: Query,
  event: NostrEvent,
  matches: boolean,
  ends: Ends,
  step: Step,
): boolean {
  query.heardMs = step.now.monotonicMs;
  if (query.state === "fetching") {
    query.delivered += 1;
    if (query.delivered > state.config.idsPerFetch * 2 + 10) ends.failed(state, relay, job, "more-than-asked", step);
    return query.asked.delete(event.id);
  }
  const { page } = query;
  if (!page) return false;
  const inside = matches && isInSlice(page.slice, event);
  if (!addToPage(page, event, inside)) {
    ends.failed(state, relay, job, "more-than-asked", step);
    return false;
  }
  return inside;
}

export function onQueryEose(state: SyncState, relay: Relay, job: Job, query: Query, ends: Ends, step: Step): void {
  job.ended.push(query.name);
  close(relay, query, true, step);
  if (query.state === "fetching") endFetch(state, relay, job, query, ends, step);
  else endPage(state, relay, job, query, ends, step);
}

/** Ids the relay did not send although others came are asked once more; without progress they are given up. */
function endFetch(state: SyncState, relay: Relay, job: Job, query: Query, ends: Ends, step: Step): void {
  const perFetch = Math.min(state.config.idsPerFetch, pageLimit(state, relay));
  const sent = query.toFetch.splice(0, perFetch);
  const left = sent.filter((id) => query.asked.has(id));
  if (left.length < sent.length && left.length > 0) query.toFetch.unshift(...left);
  if (query.toFetch.length > 0) query.state = "queued";
  else if (job.kind === "direct") ends.ended(state, relay, job, query, step);
  else endSlice(state, relay, job, query, [], ends, step);
}

function endPage(state: SyncState, relay: Relay, job: Job, query: Query, ends: Ends, step: Step): void {
  const page = query.page!;
  const kindIsFixed = job.layer === layers.announcements || job.layer === layers.states;
  const end = endOfPage(page, Math.min(page.limit, relay.learnedCap), kindIsFixed);
  // A page that was followed by older events although it held fewer than asked shows the relay's own cap.
  const before = query.boundary.size > 0 || page.slice.probe ? page.unseen > 0 : false;
  if (before && query.delivered >= smallestCap && query.delivered < page.limit)
    relay.learnedCap = Math.min(relay.learnedCap, query.delivered);
  query.delivered = page.ids.size;
  if ((end.type === "unpageable" || (end.type === "next" && end.doubtful)) && !job.unpageable) {
    job.unpageable = true;
    step.out.push({ type: "count", counter: "unpageable", relay: relay.key, by: 1 });
    step.out.push({
      type: "log",
      level: "warn",
      code: "unpageable",
      relay: relay.key,
      fields: { batch: job.id, second: page.oldest },
    });
  }
  const next = end.type === "next" ? end.slices : [];
  query.boundary = end.type === "next" && end.keepBoundary ? boundaryOf(page) : new Set();
  if (query.boundary.size > page.limit * 20) {
    ends.failed(state, relay, job, "endless-second", step);
    return;
  }
  endSlice(state, relay, job, query, next, ends, step);
}

/** What the next page may repeat. A page that got no further back adds to what is known of its second. */
function boundaryOf(page: Page): Set<EventId> {
  if (page.oldest !== page.slice.until) return page.ids;
  return new Set([...page.boundary, ...page.ids]);
}

export function onQueryClosed(
  state: SyncState,
  relay: Relay,
  job: Job,
  query: Query,
  meaning: ClosedMeaning,
  ends: Ends,
  step: Step,
): void {
  close(relay, query, false, step);
  if (meaning === "rate-limited") {
    query.state = "queued";
  } else if (meaning === "auth-required" && relay.authPending) {
    query.state = "auth";
    query.heardMs = step.now.monotonicMs;
  } else if (meaning === "invalid" && query.state === "paging") halve(state, relay, job, query, ends, step);
  else ends.failed(state, relay, job, "closed", step);
}

/** A refused value is found by halves; the others must not suffer. */
function halve(state: SyncState, relay: Relay, job: Job, query: Query, ends: Ends, step: Step): void {
  const slice = query.slices[query.slices.length - 1]!;
  if (query.tag === undefined || job.kind === "direct") {
    ends.failed(state, relay, job, "invalid", step);
    return;
  }
  if (slice.values.length > 1) {
    const middle = slice.values.length >> 1;
    const parts = [slice.values.slice(0, middle), slice.values.slice(middle)];
    endSlice(
      state,
      relay,
      job,
      query,
      parts.map((values) => ({ ...slice, values })),
      ends,
      step,
    );
    return;
  }
  for (const item of itemsOf(state, query, slice.values[0])) job.barred.add(item);
  step.out.push({ type: "log", level: "warn", code: "value-refused", relay: relay.key, fields: { batch: job.id } });
  endSlice(state, relay, job, query, [], ends, step);
}

const itemsOf = (state: SyncState, query: Query, value: string | undefined): Item[] =>
  query.items.filter((item) => textOf(state.wanted, item) === value);

/** A NOTICE said to slow down: requests without any answer were probably dropped, and are sent again afterwards. */
export function resendUnanswered(relay: Relay, step: Step): void {
  for (const { query } of [...relay.bySub.values()]) {
    if (query.heardMs > query.sentMs || (query.page?.count ?? 0) > 0) continue;
    close(relay, query, true, step);
    query.state = "queued";
  }
}

export function queryDeadlineMs(state: SyncState, query: Query): number {
  const { config } = state;
  switch (query.state) {
    case "reconciling":
      return Math.min(query.heardMs + config.negentropySilenceMs, query.sentMs + config.negentropyTimeoutMs);
    case "fetching":
    case "paging":
      return Math.min(query.heardMs + config.silenceMs, query.sentMs + config.pageTimeoutMs);
    case "auth":
      return query.heardMs + config.silenceMs;
    default:
      return Number.POSITIVE_INFINITY;
  }
}
