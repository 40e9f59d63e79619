// Answers that need no texts: how many events match, and their times and ids (what negentropy compares). When a
// filter is covered by index terms, only entries are walked; expired events are few and are known from their own list.

import type { NostrEvent } from "../../nostr/event.js";
import { type Filter, type Matcher, matcherOf, matchesNothing } from "../../nostr/filter.js";
import type { TimedIds } from "../../nostr/negentropy/records.js";
import type { Sequence, StopSign } from "../port.js";
import { MergedStreams, type Plan, planOf, type Residual } from "./candidates.js";
import { Candidates, fullMatcher, PagedQuery, type Sight, type Slice } from "./query.js";
import { type Entry, expiring, matchable, Row } from "./row.js";

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
  plan: Plan & { readonly type: "terms" },
  visit: (entry: Entry) => boolean,
  slice: Slice,
  signal: StopSign | undefined,
): Promise<boolean> {
  const { content, view, upTo } = sight;
  const expired = expiredNow(sight);
  const { residual } = plan;
  const { tags: _covered, ...header } = filter;
  const matches = residual === "none" ? undefined : residual === "header" ? matcherOf(header) : fullMatcher(filter);
  const candidates = new Candidates(sight, filter, plan);
  for (;;) {
    if (slice.isOver()) await slice.rest(signal);
    if (!candidates.open()) continue;
    const entry = candidates.next();
    if (!entry) return true;
    if (entry === "none yet") continue;
    if (entry.seq > upTo || expired.has(entry.seq)) continue;
    const own = entry instanceof Row ? entry : content.inMemory(entry.seq);
    if (own && !own.isSeenAt(view)) continue;
    if (content.vanishing.authors.size > 0 && !content.row(entry.seq, view)) continue;
    if (matches && !(own ? matches(matchable(own)) : matchesOnDisk(sight, entry, residual, matches))) {
      candidates.passedOver();
      continue;
    }
    if (!visit(entry)) return false;
  }
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
  signal: StopSign | undefined,
): Promise<number> {
  let count = 0;
  const [filter] = filters;
  const plan =
    filter && filters.length === 1 && !matchesNothing(filter) ? planOf(filter, sight.content.lacksTag) : undefined;
  if (filter && plan?.type === "terms" && filter.limit === undefined) {
    const visit = (): boolean => {
      count++;
      return true;
    };
    await walk(sight, filter, plan, visit, slice, signal);
    return count;
  }
  const bounds = { limit: Number.POSITIVE_INFINITY, pageRows: 1_000, passingRows: true, signal };
  for await (const page of new PagedQuery(sight, filters, bounds, slice).pages()) count += page.length;
  return count;
}

export async function collectTimedIds(
  sight: Sight,
  wanted: Filter,
  cap: number,
  slice: Slice,
  signal: StopSign | undefined,
): Promise<TimedIds | undefined> {
  const { limit: _ignored, ...filter } = wanted;
  const builder = new TimedIdsBuilder();
  if (matchesNothing(filter)) return builder.finish(sight, slice, signal);
  const plan = planOf(filter, sight.content.lacksTag);
  if (plan.type === "terms") {
    const visit = (entry: Entry): boolean => {
      builder.add(entry);
      return builder.length <= cap;
    };
    if (!(await walk(sight, filter, plan, visit, slice, signal))) return undefined;
    return builder.finish(sight, slice, signal);
  }
  const bounds = { limit: cap + 1, pageRows: 1_000, passingRows: true, signal };
  for await (const page of new PagedQuery(sight, [filter], bounds, slice).pages()) {
    for (const { seq, created_at } of page) builder.add({ seq, time: created_at });
  }
  if (builder.length > cap) return undefined;
  return builder.finish(sight, slice, signal);
}

const idBytes = 32;
const idsAtATime = 2_000;

/**
 * Builds the flat arrays of times and ids. Index entries have times and half an id; the whole ids are read in the order
 * of sequence numbers, which is the order they lie in on disk.
 */
class TimedIdsBuilder {
  #times = new Float64Array(1_024);
  #seqs = new Float64Array(1_024);
  length = 0;

  /** Entries come in NIP-01 order. */
  add(entry: Pick<Entry, "time" | "seq">): void {
    if (this.length === this.#times.length) {
      this.#times = grown(this.#times);
      this.#seqs = grown(this.#seqs);
    }
    this.#times[this.length] = entry.time;
    this.#seqs[this.length] = entry.seq;
    this.length++;
  }

  async finish({ content }: Sight, slice: Slice, signal: StopSign | undefined): Promise<TimedIds> {
    const { length } = this;
    const times = this.#times.subarray(0, length);
    const order = ascending(this.#seqs.subarray(0, length));
    const seqs = Float64Array.from(order, (index) => this.#seqs[index] as number);
    const bySeq = new Uint8Array(length * idBytes);
    for (let from = 0; from < length; from += idsAtATime) {
      const to = Math.min(from + idsAtATime, length);
      content.backend.copyIds(seqs, bySeq, from, to);
      for (let index = from; index < to; index++) {
        const row = content.inMemory(seqs[index] as number);
        if (row) bySeq.set(Buffer.from(row.id, "hex"), index * idBytes);
      }
      if (to < length) await slice.rest(signal);
    }
    return inAscendingTime(times, order, bySeq);
  }
}

function grown(list: Float64Array): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(list.length * 2);
  larger.set(list);
  return larger;
}

/** Indices of a list in the order of its values. Sorting numbers that carry their index needs no callback. */
function ascending(values: Float64Array): Uint32Array {
  const shift = 2 ** Math.ceil(Math.log2(Math.max(2, values.length)));
  const largest = values.reduce((most, value) => Math.max(most, value), 0);
  if (largest * shift > Number.MAX_SAFE_INTEGER) {
    return Uint32Array.from(values.keys()).sort((a, b) => (values[a] as number) - (values[b] as number));
  }
  const packed = Float64Array.from(values, (value, index) => value * shift + index).sort();
  return Uint32Array.from(packed, (value) => value % shift);
}

/**
 * Entries came newest first and ids ascending within a second: seconds are taken from the end, ids of one second
 * in their order. An id that is gone meanwhile is zeros and is left out.
 */
function inAscendingTime(times: Float64Array, order: Uint32Array, bySeq: Uint8Array): TimedIds {
  const { length } = times;
  const placeOf = new Uint32Array(length);
  for (let place = 0; place < length; place++) placeOf[order[place] as number] = place;
  const sortedTimes = new Float64Array(length);
  const ids = new Uint8Array(length * idBytes);
  let out = 0;
  for (let end = length; end > 0; ) {
    let start = end - 1;
    while (start > 0 && times[start - 1] === times[end - 1]) start--;
    for (let index = start; index < end; index++) {
      const from = (placeOf[index] as number) * idBytes;
      if (isZero(bySeq, from)) continue;
      sortedTimes[out] = times[index] as number;
      ids.set(bySeq.subarray(from, from + idBytes), out * idBytes);
      out++;
    }
    end = start;
  }
  return { length: out, times: sortedTimes.subarray(0, out), ids: ids.subarray(0, out * idBytes) };
}

function isZero(bytes: Uint8Array, from: number): boolean {
  for (let index = from; index < from + idBytes; index++) if (bytes[index] !== 0) return false;
  return true;
}
