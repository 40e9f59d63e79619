// One query of a job against the relay: negentropy and its fetches, or pages; and single ids that are owed. Says what
// an answer means for the query; what that means for the job is decided in history.ts, what a refusal or a session's
// result means in query-answers.ts.

import type { EventId, NostrEvent } from "../../nostr/event.js";
import type { Filter } from "../../nostr/filter.js";
import { type SyncConfig, secondMs } from "./config.js";
import { log, type Relay, type SyncState, tally } from "./core-state.js";
import { authorKinds, filterOf, historyCapacity } from "./items.js";
import {
  type Asked,
  type Item,
  indexOf,
  type Job,
  layerOf,
  layers,
  type Owed,
  Page,
  type Query,
  type Slice,
} from "./job.js";
import { addToPage, endOfPage, isInSlice, smallestCap } from "./paging.js";
import { noteRequest } from "./rounds.js";

/** Whether the query has ended, or sends another request; a failed one takes its job with it. Undefined: it goes on. */
export type QueryEnd = "ended" | "again" | { readonly failed: string } | undefined;

export const lastSlice = (query: Query): Slice => query.slices[query.slices.length - 1]!;

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
  Math.min(relay.limits.maxLimit ?? state.config.syncPageEvents, state.config.maxPageSize);

function begin(state: SyncState, relay: Relay, asked: Asked, next: Query["state"]): string {
  const { query } = asked;
  query.name = `${next === "reconciling" ? "n" : "h"}${state.nextName++}`;
  query.state = next;
  query.sentMs = state.now.monotonicMs;
  query.heardMs = state.now.monotonicMs;
  query.answered = false;
  query.slowedDown = false;
  query.readsOwn = next === "reconciling";
  relay.bySub.set(query.name, asked);
  noteRequest(state, relay, state.now.monotonicMs);
  return query.name;
}

/** Sends the query's next request: a fetch that is due, a session, or a page. */
export function sendQuery(state: SyncState, relay: Relay, asked: Asked): void {
  const { job, query } = asked;
  const of = { relay: relay.key, link: relay.link };
  const limit = pageLimit(state, relay);
  if (query.toFetch.length > 0) {
    const most = Math.min(state.config.syncFetchIds, limit, historyCapacity(state.config, relay).values);
    const ids = query.toFetch.slice(0, most);
    query.sentIds = ids;
    query.asked = new Set(ids);
    query.delivered = 0;
    const subscription = begin(state, relay, asked, "fetching");
    state.out.push({ type: "subscribe", ...of, subscription, filters: [{ ids }] });
    return;
  }
  const slice = lastSlice(query);
  if (job.method === "negentropy" && !slice.byRequest) {
    const session = begin(state, relay, asked, "reconciling");
    const filter = filterFor(job, query, slice, undefined);
    state.out.push({ type: "reconcile", ...of, session, filter, maxMissing: state.config.maxMissingIds });
    return;
  }
  const most = Math.min(limit, slice.limit ?? limit);
  query.page = new Page(slice, most, query.boundary);
  const subscription = begin(state, relay, asked, "paging");
  state.out.push({ type: "subscribe", ...of, subscription, filters: [filterFor(job, query, slice, most)] });
}

/** The request is over on our side; the relay is told unless it ended it itself. */
export function close(state: SyncState, relay: Relay, query: Query, tell: boolean): void {
  if (!relay.bySub.delete(query.name) || !tell) return;
  const of = { relay: relay.key, link: relay.link };
  if (query.state === "reconciling") state.out.push({ type: "stopReconcile", ...of, session: query.name });
  else state.out.push({ type: "unsubscribe", ...of, subscription: query.name });
}

export function cancelQuery(state: SyncState, relay: Relay, query: Query): void {
  close(state, relay, query, true);
  query.state = "done";
}

/** The slice is done: the next one, or the query has ended. */
export function endSlice(state: SyncState, query: Query, next: readonly Slice[]): QueryEnd {
  query.slices.pop();
  query.slices.push(...next);
  query.page = undefined;
  if (query.slices.length > state.config.maxSlicesPerQuery) return { failed: "unpageable" };
  return query.slices.length === 0 ? "ended" : "again";
}

/** Whether the event answers what this query asked. A relay that sends more than asked fails the job. */
export function onQueryEvent(
  state: SyncState,
  query: Query,
  event: NostrEvent,
  matches: boolean,
): "inside" | "outside" | { readonly failed: string } {
  query.heardMs = state.now.monotonicMs;
  query.answered = true;
  const { page } = query;
  let inside: boolean;
  let tooMany = false;
  if (query.state === "fetching") {
    query.delivered += 1;
    tooMany = query.delivered > state.config.syncFetchIds * 2 + 10;
    inside = query.asked.delete(event.id);
  } else {
    inside = page !== undefined && matches && isInSlice(page.slice, event);
    if (page) tooMany = !addToPage(page, event, inside);
  }
  if (tooMany) return { failed: "more-than-asked" };
  return inside ? "inside" : "outside";
}

export function onQueryEose(state: SyncState, relay: Relay, { job, query }: Asked): QueryEnd {
  job.ended.push(query.name);
  close(state, relay, query, true);
  return query.state === "fetching" ? endFetch(state, relay, job, query) : endPage(state, relay, job, query);
}

/** Ids the relay did not send although others came are asked once more; without progress they are left for later. */
function endFetch(state: SyncState, relay: Relay, job: Job, query: Query): QueryEnd {
  const sent = query.toFetch.splice(0, query.sentIds.length);
  const left = sent.filter((id) => query.asked.has(id));
  if (left.length < sent.length) query.toFetch.unshift(...left);
  else onUndelivered(state, relay, job, left);
  return query.toFetch.length === 0 ? endSlice(state, query, []) : "again";
}

/** Everything it asks for has brought its share of today: the rest is for another day (core.ts), however much there is. */
function isForAnotherDay({ budgets, wanted }: SyncState, { items }: Job): boolean {
  if (!budgets.isAnyOver) return false;
  const isOver = (item: Item): boolean => {
    const index = indexOf(item);
    if (layerOf(item) === layers.roots) return wanted.reposOfRoot(index).every((repo) => budgets.isOver(repo));
    const isOfRepo = layerOf(item) === layers.repositories || layerOf(item) === layers.outbox;
    const repo = isOfRepo ? wanted.repo(index) : undefined;
    return repo !== undefined && budgets.isOver(repo);
  };
  return items.every(isOver);
}

function endPage(state: SyncState, relay: Relay, job: Job, query: Query): QueryEnd {
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
    tally(state, "unpageable", relay);
    log(state, "warn", "unpageable", relay, { batch: job.id, second: page.oldest });
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
      return Math.min(
        query.heardMs + config.syncNegentropySilenceSecs * secondMs,
        query.sentMs + config.negentropyTimeoutMs,
      );
    case "fetching":
    case "paging":
      return Math.min(
        query.heardMs + config.syncHistorySilenceSecs * secondMs,
        query.sentMs + config.syncPageTotalSecs * secondMs,
      );
    case "auth":
      return query.heardMs + config.syncHistorySilenceSecs * secondMs;
    default:
      return Number.POSITIVE_INFINITY;
  }
}

/** The relay is asked for these ids next, as far as there is room. That it has sent one before is not forgotten for a guess. */
export function askDirectly(
  { config }: { readonly config: Pick<SyncConfig, "maxDirectIds"> },
  { direct }: Pick<Relay, "direct">,
  ids: readonly EventId[],
  claim: Owed["claim"] = "unknown",
): void {
  for (const id of ids) {
    const known = direct.get(id);
    if (known === undefined ? direct.size < config.maxDirectIds : known === "unknown") direct.set(id, claim);
  }
}

/**
 * Single ids to fetch: those somebody here needs now, and those a relay claimed to have (negentropy) and did not
 * deliver. Kept over failed requests and lost links, asked for again a few times, then given up. These are to be asked
 * for now.
 */
export function takeOwed(relay: Relay, nowMs: number): Owed | undefined {
  const [claim] = relay.direct.values();
  if (claim !== undefined) {
    const ids = [...relay.direct.keys()].filter((id) => relay.direct.get(id) === claim);
    for (const id of ids) relay.direct.delete(id);
    return { ids, tries: 0, claim, dueMs: 0 };
  }
  const due = relay.owed.find(({ dueMs }) => dueMs <= nowMs);
  if (due) relay.owed = relay.owed.filter((other) => other !== due);
  return due;
}

/** When the next are due; those that are due already wait for room, not for time. */
export const owedDueMs = (relay: Relay, nowMs: number): number =>
  relay.owed.reduce((due, { dueMs }) => (dueMs > nowMs ? Math.min(due, dueMs) : due), Number.POSITIVE_INFINITY);

/** The relay said that it has something which did not come. */
export const lacksPromised = ({ gaveUpIds, owed, jobs }: Relay): boolean =>
  gaveUpIds || owed.some(({ claim }) => claim === "promised") || jobs.some((job) => job.owed?.claim === "promised");

function keep(state: SyncState, relay: Relay, owed: Owed): void {
  const kept = relay.owed.reduce((sum, { ids }) => sum + ids.length, 0);
  const ids = owed.ids.slice(0, Math.max(0, state.config.maxDirectIds - kept));
  if (ids.length > 0) relay.owed.push({ ...owed, ids });
  if (ids.length < owed.ids.length) relay.gaveUpIds = true;
}

/** Asked for in vain: again after a while that grows. */
function askAgainLater(state: SyncState, relay: Relay, { ids, tries, claim }: Owed): void {
  const waitMs = state.config.owedDelaysMs[tries];
  if (waitMs !== undefined) {
    keep(state, relay, { ids, tries: tries + 1, claim, dueMs: state.now.monotonicMs + waitMs });
    return;
  }
  relay.gaveUpIds = true;
  log(state, "warn", "ids-given-up", relay, { ids: ids.length });
}

/** Within a minute or so. A relay that really removed them is not in step until then. */
const mostTriesOfSentOnce = 2;

/** The relay answered without these. */
function onUndelivered(state: SyncState, relay: Relay, job: Job, ids: readonly EventId[]): void {
  const { claim = "promised", tries = 0 } = job.owed ?? {};
  const isOver = claim === "unknown" || (claim === "sent-once" && tries >= mostTriesOfSentOnce);
  if (ids.length === 0 || isOver) return;
  if (!job.owed) {
    tally(state, "undelivered_ids", relay, undefined, ids.length);
    job.undelivered += ids.length;
  }
  askAgainLater(state, relay, { ids, tries, claim, dueMs: 0 });
}

const idsLeft = (job: Job): EventId[] => job.queries.flatMap((query) => query.toFetch);

/** Their request failed. */
export function onOwedFailed(state: SyncState, relay: Relay, job: Job): void {
  if (job.owed) askAgainLater(state, relay, { ...job.owed, ids: idsLeft(job) });
}

/** The link is gone: nobody was asked in vain. */
export function putBackOwed(state: SyncState, relay: Relay, job: Job): void {
  if (job.owed) keep(state, relay, { ...job.owed, ids: idsLeft(job), dueMs: 0 });
}
