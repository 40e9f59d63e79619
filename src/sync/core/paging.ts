// REQ history, page by page (spec "History" 4), as decisions about one page: go on before its oldest second, split a
// second that fills a page, end, or admit defeat. Never a loop, never a silent skip.

import type { NostrEvent, Pubkey } from "../../nostr/event.js";
import type { Page, Slice } from "./job.js";

/** Kinds met around repositories (grasp.md): a second that is too full is asked for kind by kind. */
export const knownKinds: readonly number[] = [
  0, 1, 3, 5, 7, 62, 1111, 1617, 1618, 1619, 1621, 1622, 1624, 1630, 1631, 1632, 1633, 1985, 9735, 9840, 9841, 9842,
  9843, 9844, 10_002, 10_317, 19_843, 19_844, 30_617, 30_618, 30_624, 39_842, 39_844,
];

/** Smaller answers say nothing about how many a relay is willing to send. */
export const smallestCap = 10;

export function isInSlice(slice: Slice, event: NostrEvent): boolean {
  if (slice.since !== undefined && event.created_at < slice.since) return false;
  if (slice.until !== undefined && event.created_at > slice.until) return false;
  if (slice.kinds && !slice.kinds.includes(event.kind)) return false;
  return !slice.authors || slice.authors.includes(event.pubkey);
}

/** Counts an event of the page. False when the relay sent more than was asked. */
export function addToPage(page: Page, event: NostrEvent, matches: boolean): boolean {
  page.count += 1;
  if (page.count > page.limit) return false;
  if (!matches || page.ids.has(event.id)) return true;
  page.ids.add(event.id);
  page.oldest = Math.min(page.oldest, event.created_at);
  page.newest = Math.max(page.newest, event.created_at);
  page.kinds.add(event.kind);
  page.authors.add(event.pubkey);
  if (!page.boundary.has(event.id)) page.unseen += 1;
  return true;
}

type PageEnd =
  /** `doubtful`: authors nobody has seen may have written in that second too; what can be had is still fetched. */
  | {
      readonly type: "next";
      readonly slices: readonly Slice[];
      readonly keepBoundary: boolean;
      readonly doubtful?: boolean;
    }
  | { readonly type: "done" }
  | { readonly type: "unpageable" };

export const halves = <T>(list: readonly T[]): readonly T[][] => [
  list.slice(0, list.length >> 1),
  list.slice(list.length >> 1),
];

/** One second filled a page: the same second in parts. Undefined when nothing is left to divide by. */
function partsOf(slice: Slice, page: Page, kindIsFixed: boolean): Slice[] | undefined {
  const second = { ...slice, since: page.oldest, until: page.oldest };
  if (slice.values.length > 1) return halves(slice.values).map((values) => ({ ...second, values }));
  const kinds = slice.kinds ?? (kindIsFixed ? [] : [...new Set([...knownKinds, ...page.kinds])]);
  if (kinds.length > 1) {
    // Those that filled the page each alone, all others together: a few questions instead of one for each kind.
    const others = kinds.filter((kind) => !page.kinds.has(kind));
    const groups = [...[...page.kinds].map((kind) => [kind]), ...(others.length > 0 ? [others] : [])];
    return groups.map((group) => ({ ...second, kinds: group }));
  }
  if (!slice.authors) return [...page.authors].map((author: Pubkey) => ({ ...second, authors: [author] }));
  return slice.authors.length > 1 ? halves(slice.authors).map((authors) => ({ ...second, authors })) : undefined;
}

/** A second that may be cut off although nothing is older: the same in two parts, which show more if there is more. */
function halvesOf(slice: Slice, second: number, kindIsFixed: boolean): Slice[] | undefined {
  const { probe: _probe, limit: _limit, ...rest } = slice;
  const part = { ...rest, since: second, until: second };
  if (slice.values.length > 1) return halves(slice.values).map((values) => ({ ...part, values }));
  const kinds = slice.kinds ?? (kindIsFixed ? [] : knownKinds);
  return kinds.length > 1 ? halves(kinds).map((half) => ({ ...part, kinds: half })) : undefined;
}

/** `fullAt`: a page of so many events may have been cut off. */
export function endOfPage(page: Page, fullAt: number, kindIsFixed: boolean): PageEnd {
  const { oldest, slice } = page;
  if (page.ids.size === 0) {
    // Nothing is older than the second before, which a cap we do not know may have cut all the same.
    const parts = slice.probe === undefined ? undefined : halvesOf(slice, slice.probe, kindIsFixed);
    return parts ? { type: "next", slices: parts, keepBoundary: false } : { type: "done" };
  }
  const { since, until, limit, probe, ...rest } = slice;
  const asked: Slice = { ...rest, ...(since !== undefined && { since }) };
  const end = since ?? slice.downTo ?? Number.NEGATIVE_INFINITY;
  const next = (...slices: Slice[]) => ({ type: "next", slices, keepBoundary: false }) as const;
  if (probe !== undefined) {
    // There are older events, so the second before them was cut off: it is asked again, in parts if need be.
    const cut: Slice = { ...rest, since: probe, until: probe };
    return probe > end ? next({ ...asked, until: probe - 1 }, cut) : next(cut);
  }
  if (oldest === page.newest && page.ids.size >= fullAt) {
    const parts = partsOf(slice, page, kindIsFixed);
    if (!parts) return { type: "unpageable" };
    const slices = oldest > end ? [{ ...asked, until: oldest - 1 }, ...parts] : parts;
    return { ...next(...slices), doubtful: slice.authors === undefined && parts[0]?.authors !== undefined };
  }
  if (page.unseen === 0) {
    // The page holds events of one second, and none is new. A relay with a cap we do not know may have cut off more events
    // of that second. It did, if it has older events: without a cap the page would have held those too. `since` keeps older
    // events out of a page, so a page that was asked for with `since` is asked for again without it.
    if (oldest !== page.newest || page.ids.size < smallestCap) return { type: "done" };
    if (since === undefined) return next({ ...asked, until: oldest - 1, limit: 1, probe: oldest });
    return next({ ...rest, until: oldest, limit: page.ids.size + 1, downTo: since });
  }
  if (oldest < end) return { type: "done" };
  return { type: "next", slices: [{ ...asked, until: oldest }], keepBoundary: true };
}

/** Hardly any event is older, so that halving begins here: November 2020, when Nostr began. */
const firstSeconds = 1_604_188_800;

/** Two halves; undefined when it is one second. */
export function splitTime<Range extends { readonly since?: number; readonly until?: number }>(
  slice: Range,
  nowSeconds: number,
): Range[] | undefined {
  const since = slice.since ?? 0;
  const until = slice.until ?? nowSeconds + 24 * 60 * 60;
  if (until <= since) return undefined;
  const from = until > firstSeconds ? Math.max(since, firstSeconds) : since;
  const middle = Math.floor((from + until) / 2);
  return [
    { ...slice, since, until: middle },
    { ...slice, since: middle + 1, until },
  ];
}
