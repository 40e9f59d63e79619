// One query of a job against the relay: negentropy and its fetches, or pages. Says what an answer means for the query;
// what that means for the job is decided in job-ends.ts, what a refusal means in query-refused.ts.

import type { NostrEvent } from "../../nostr/event.js";
import type { Filter } from "../../nostr/filter.js";
import type { EventId } from "../../nostr/ids.js";
import { authorKinds, filterOf } from "./filters.js";
import { type Item, indexOf, layerOf, layers } from "./items.js";
import { type Asked, type Job, Page, type Query, type Slice } from "./job.js";
import { onUndelivered } from "./owed.js";
import { noteRequest } from "./pace.js";
import { addToPage, endOfPage, isInSlice, smallestCap } from "./paging.js";
import type { Relay } from "./relay.js";
import { historyRoom } from "./room.js";
import type { Step, SyncState } from "./state.js";
import { log, tally } from "./telling.js";

/** Whether the query has ended; a failed one takes its job with it. Undefined: it goes on. */
export type QueryEnd = "ended" | { readonly failed: string } | undefined;

function filterFor(job: Job, query: Query, slice: Slice, limit: number | undefined): Filter {
  const authors = query.tag === undefined ? job.related?.authors : undefined;
  return filterOf(job.layer, query.tag, slice.values, {
    since: slice.since,
    until: slice.until,
    limit,
    kinds: slice.kinds ?? (authors && (job.related?.kinds ?? authorKinds)),
    authors: slice.authors ?? authors,
  });
}

export const pageLimit = (state: SyncState, relay: Relay): number =>
  Math.min(relay.limits.maxLimit ?? state.config.pageSize, state.config.maxPageSize);

function begin(state: SyncState, relay: Relay, asked: Asked, next: Query["state"], step: Step): string {
  const { query } = asked;
  query.name = `${next === "reconciling" ? "n" : "h"}${state.nextName++}`;
  query.state = next;
  query.sentMs = step.now.monotonicMs;
  query.heardMs = step.now.monotonicMs;
  query.answered = false;
  query.slowedDown = false;
  query.readsOwn = next === "reconciling";
  relay.bySub.set(query.name, asked);
  noteRequest(state, relay, step.now.monotonicMs);
  return query.name;
}

/** Sends the query's next request: a fetch that is due, a session, or a page. */
export function sendQuery(state: SyncState, relay: Relay, asked: Asked, step: Step): void {
  const { job, query } = asked;
  const of = { relay: relay.key, link: relay.link };
  const limit = pageLimit(state, relay);
  if (query.toFetch.length > 0) {
    const most = Math.min(state.config.idsPerFetch, limit, historyRoom(state.config, relay).values);
    const ids = query.toFetch.slice(0, most);
    query.sentIds = ids;
    query.asked = new Set(ids);
    query.delivered = 0;
    const subscription = begin(state, relay, asked, "fetching", step);
    step.out.push({ type: "subscribe", ...of, subscription, filters: [{ ids }] });
    return;
  }
  const slice = query.slices[query.slices.length - 1]!;
  if (job.method === "negentropy" && !slice.byRequest) {
    const session = begin(state, relay, asked, "reconciling", step);
    const filter = filterFor(job, query, slice, undefined);
    step.out.push({ type: "reconcile", ...of, session, filter, maxMissing: state.config.maxMissingIds });
    return;
  }
  const most = Math.min(limit, slice.limit ?? limit);
  query.page = new Page(slice, most, query.boundary);
  const subscription = begin(state, relay, asked, "paging", step);
  step.out.push({ type: "subscribe", ...of, subscription, filters: [filterFor(job, query, slice, most)] });
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
export function endSlice(state: SyncState, query: Query, next: readonly Slice[]): QueryEnd {
  query.slices.pop();
  query.slices.push(...next);
  query.page = undefined;
  if (query.slices.length > state.config.maxSlicesPerQuery) return { failed: "unpageable" };
  if (query.slices.length === 0) return "ended";
  query.state = "queued";
  return undefined;
}

/** Whether the event answers what this query asked. A relay that sends more than asked fails the job. */
export function onQueryEvent(
  state: SyncState,
  query: Query,
  event: NostrEvent,
  matches: boolean,
  step: Step,
): "inside" | "outside" | { readonly failed: string } {
  query.heardMs = step.now.monotonicMs;
  query.answered = true;
  const { page } = query;
  let inside: boolean;
  let tooMany = false;
  if (query.state === "fetching") {
    query.delivered += 1;
    tooMany = query.delivered > state.config.idsPerFetch * 2 + 10;
    inside = query.asked.delete(event.id);
  } else {
    inside = page !== undefined && matches && isInSlice(page.slice, event);
    if (page) tooMany = !addToPage(page, event, inside);
  }
  if (tooMany) return { failed: "more-than-asked" };
  return inside ? "inside" : "outside";
}

export function onQueryEose(state: SyncState, relay: Relay, { job, query }: Asked, step: Step): QueryEnd {
  job.ended.push(query.name);
  close(relay, query, true, step);
  return query.state === "fetching"
    ? endFetch(state, relay, job, query, step)
    : endPage(state, relay, job, query, step);
}

/** Ids the relay did not send although others came are asked once more; without progress they are left for later. */
function endFetch(state: SyncState, relay: Relay, job: Job, query: Query, step: Step): QueryEnd {
  const sent = query.toFetch.splice(0, query.sentIds.length);
  const left = sent.filter((id) => query.asked.has(id));
  if (left.length < sent.length) query.toFetch.unshift(...left);
  else onUndelivered(state, relay, job, left, step);
  if (query.toFetch.length === 0) return endSlice(state, query, []);
  query.state = "queued";
  return undefined;
}

/** Everything it asks for has brought its share of today: the rest is for another day (tidying.ts), however much there is. */
function isForAnotherDay({ budgets, wanted }: SyncState, { items }: Job): boolean {
  if (!budgets.isAnyOver) return false;
  const isOver = (item: Item): boolean => {
    const index = indexOf(item);
    if (layerOf(item) === layers.roots) return wanted.reposOfRoot(index).every((repo) => budgets.isOver(repo));
    const repo = layerOf(item) === layers.repositories ? wanted.repo(index) : undefined;
    return repo !== undefined && budgets.isOver(repo);
  };
  return items.every(isOver);
}

function endPage(state: SyncState, relay: Relay, job: Job, query: Query, step: Step): QueryEnd {
  if (isForAnotherDay(state, job)) return endSlice(state, query, []);
  const page = query.page!;
  const kindIsFixed = job.layer === layers.announcements || job.layer === layers.states;
  const end = endOfPage(page, Math.min(page.limit, relay.learnedCap), kindIsFixed);
  // A page that was followed by older events although it held fewer than asked shows the relay's own cap.
  const wentOn = (query.boundary.size > 0 || page.slice.probe !== undefined) && page.unseen > 0;
  if (wentOn && query.delivered >= smallestCap && query.delivered < pageLimit(state, relay))
    relay.learnedCap = Math.min(relay.learnedCap, query.delivered);
  query.delivered = page.ids.size;
  if ((end.type === "unpageable" || (end.type === "next" && end.doubtful)) && !job.unpageable) {
    job.unpageable = true;
    tally(step, "unpageable", relay);
    log(step, "warn", "unpageable", relay, { batch: job.id, second: page.oldest });
  }
  query.boundary = end.type === "next" && end.keepBoundary ? boundaryOf(page) : new Set();
  if (query.boundary.size > page.limit * 20) return { failed: "endless-second" };
  return endSlice(state, query, end.type === "next" ? end.slices : []);
}

/** What the next page may repeat. A page that got no further back adds to what is known of its second. */
function boundaryOf(page: Page): Set<EventId> {
  if (page.oldest !== page.slice.until) return page.ids;
  return new Set([...page.boundary, ...page.ids]);
}

/** When the relay has been silent for too long; never while we do not listen to it. */
export function queryDeadlineMs({ config }: SyncState, { deafSinceMs }: Relay, query: Query): number {
  if (query.state === "reconciling" && query.readsOwn) return query.heardMs + config.ownStoreTimeoutMs;
  if (deafSinceMs !== undefined) return Number.POSITIVE_INFINITY;
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
