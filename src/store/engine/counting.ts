// Answers that need no texts: how many events match, and their times and ids (what negentropy compares). When a
// filter is covered by index terms, only entries are walked; expired events are few and are known from their own list.

import type { NostrEvent } from "../../nostr/event.js";
import { type Filter, type Matcher, matcherOf, matchesNothing } from "../../nostr/filter.js";
import type { Sequence, TimedIds } from "../port.js";
import type { Entry } from "./order.js";
import { planOf, type Residual } from "./plan.js";
import { fullMatcher, matchable, queryPages, type Sight } from "./query.js";
import { Row } from "./row.js";
import type { Slice } from "./slices.js";
import { MergedStreams } from "./streams.js";
import { expiring } from "./terms.js";
import { TimedIdsBuilder } from "./timed-ids.js";

/** Sequence numbers of events that have expired and are not swept yet. */
function expiredNow({ content, nowSeconds }: Sight): ReadonlySet<Sequence> {
  const streams = new MergedStreams(0, nowSeconds);
  content.open(expiring, streams);
  const expired = new Set<Sequence>();
  for (let entry = streams.next(); entry; entry = streams.next()) expired.add(entry.seq);
  return expired;
}

/** Walks the entries of a filter that its terms decide (with the header's help); false when `visit` says stop. */
async function walk(
  sight: Sight,
  filter: Filter,
  terms: readonly string[],
  residual: Residual,
  visit: (entry: Entry) => boolean,
  slice: Slice,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const { content, view, upTo } = sight;
  const expired = expiredNow(sight);
  const { tags: _covered, ...header } = filter;
  const matches = residual === "none" ? undefined : residual === "header" ? matcherOf(header) : fullMatcher(filter);
  const streams = new MergedStreams(filter.since ?? 0, filter.until ?? Number.MAX_SAFE_INTEGER);
  for (const term of terms) {
    content.open(term, streams);
    if (slice.isOver()) await slice.rest(signal);
  }
  for (let entry = streams.next(); entry; entry = streams.next()) {
    if (slice.isOver()) await slice.rest(signal);
    if (entry.seq > upTo || expired.has(entry.seq)) continue;
    const own = entry instanceof Row ? entry : content.inMemory(entry.seq);
    if (own && !own.isSeenAt(view)) continue;
    if (content.vanishing.authors.size > 0 && !content.row(entry.seq, view)) continue;
    if (matches && !(own ? matches(matchable(own)) : matchesOnDisk(sight, entry, residual, matches))) continue;
    if (!visit(entry)) return false;
  }
  return true;
}

/** A header is judged where it lies: nothing is copied. */
function matchesOnDisk({ content, view }: Sight, { seq }: Entry, residual: Residual, matches: Matcher): boolean {
  let isMatch = false;
  const look = (header: NostrEvent): boolean => {
    isMatch = matches(header);
    return false;
  };
  if (residual === "header") content.row(seq, view, undefined, look);
  else {
    const row = content.row(seq, view);
    isMatch = row !== undefined && matches(matchable(row));
  }
  return isMatch;
}

export async function countMatches(
  sight: Sight,
  filters: readonly Filter[],
  slice: Slice,
  signal: AbortSignal | undefined,
): Promise<number> {
  let count = 0;
  const [filter] = filters;
  const plan = filter && filters.length === 1 && !matchesNothing(filter) ? planOf(filter) : undefined;
  if (filter && plan?.type === "terms" && filter.limit === undefined) {
    const visit = (): boolean => {
      count++;
      return true;
    };
    await walk(sight, filter, plan.terms, plan.residual, visit, slice, signal);
    return count;
  }
  const bounds = { limit: Number.POSITIVE_INFINITY, pageRows: 1_000, passingRows: true, signal };
  for await (const page of queryPages(sight, filters, bounds, slice)) count += page.length;
  return count;
}

export async function collectTimedIds(
  sight: Sight,
  wanted: Filter,
  cap: number,
  slice: Slice,
  signal: AbortSignal | undefined,
): Promise<TimedIds | undefined> {
  const { limit: _ignored, ...filter } = wanted;
  const builder = new TimedIdsBuilder();
  if (matchesNothing(filter)) return builder.finish(sight, slice, signal);
  const plan = planOf(filter);
  if (plan.type === "terms") {
    const visit = (entry: Entry): boolean => {
      builder.add(entry);
      return builder.length <= cap;
    };
    if (!(await walk(sight, filter, plan.terms, plan.residual, visit, slice, signal))) return undefined;
    return builder.finish(sight, slice, signal);
  }
  const bounds = { limit: cap + 1, pageRows: 1_000, passingRows: true, signal };
  for await (const page of queryPages(sight, [filter], bounds, slice)) {
    for (const { seq, created_at } of page) builder.add({ seq, time: created_at });
  }
  if (builder.length > cap) return undefined;
  return builder.finish(sight, slice, signal);
}
