// The candidates of a filter: which index lists answer it, and those lists merged in NIP-01 order. The choice of lists is
// by kind of index, not by statistics: ids, addresses, words, the tag that usually names fewest events (with the kind,
// where such lists are kept), author with kind, author, kind, everything. Where that choice leads to much that is not
// wanted, the lists of the other fields are walked beside it, and only what is in all of them is looked at.

import { Heap } from "../../base/collections.js";
import { addressText, type EventId, isAddressable } from "../../nostr/event.js";
import { type Filter, searchWords } from "../../nostr/filter.js";
import {
  compareEntries,
  type Entry,
  everything,
  isIndexedTag,
  isListedByTagAndKind,
  isOfTag,
  isOfTagAndKind,
  ofAuthor,
  ofAuthorAndKind,
  ofKind,
  ofTag,
  ofTagAndKind,
  ofWord,
  tagText,
} from "./row.js";

/** What the terms do not say about a candidate: nothing more to check, its header fields, or its whole content. */
export type Residual = "none" | "header" | "content";

export type Plan =
  | { readonly type: "ids"; readonly ids: readonly EventId[] }
  | { readonly type: "addresses"; readonly addresses: readonly string[] }
  | {
      readonly type: "terms";
      readonly terms: readonly string[];
      readonly residual: Residual;
      /** The tag whose lists these are, if they are a tag's. */
      readonly tag?: string;
      /** Lists that each lead to everything that is asked for, as the one in `terms` does. */
      readonly instead?: readonly string[];
      /** Everything that is asked for is also in one list of each of these. */
      readonly also?: readonly (readonly string[])[];
    };

/** More terms than this cost more to open than a wider list costs to walk. */
const maxProductTerms = 5_000;
/** Of a field whose lists are walked beside others: all of them are moved at each step. */
const maxTermsBeside = 16;

// Lower is more selective. Letters that are not named here stand between author with kind and author alone.
const rankOfLetter = new Map(
  Object.entries({ e: 1, E: 1, q: 1, i: 2, c: 2, r: 3, a: 3, A: 3, d: 4, p: 6, P: 6, t: 8, k: 9, K: 9 }),
);
const rankOfAuthorAndKind = 5;
const rankOfOtherLetter = 6;
const rankOfAuthor = 7;

/** Says of a tag that nothing is listed under it. */
type LacksTag = (letter: string, value: string) => boolean;

export function planOf(filter: Filter, lacksTag: LacksTag): Plan {
  const plan = withOtherFields(planByFields(filter, lacksTag), filter, lacksTag);
  // Whose private events they are says the header.
  return filter.readers && plan.type === "terms" && plan.residual === "none" ? { ...plan, residual: "header" } : plan;
}

function planByFields(filter: Filter, lacksTag: LacksTag): Plan {
  const { ids, authors, kinds, tags, search } = filter;
  if (ids) return { type: "ids", ids };
  const addresses = addressesOf(filter);
  if (addresses) return { type: "addresses", addresses };
  if (search !== undefined) {
    // The longest word is usually the rarest.
    const words = searchWords(search).sort((a, b) => b.length - a.length);
    const lists = words.slice(0, maxWordsCompared).map(ofWord);
    return { type: "terms", terms: lists.slice(0, 1), residual: "content", instead: lists };
  }
  const names = [...(tags?.keys() ?? [])];
  const best = names
    .filter(isIndexedTag)
    .map((name) => ({ name, rank: rankOfLetter.get(name) ?? rankOfOtherLetter }))
    .sort((a, b) => a.rank - b.rank || (tags?.get(a.name)?.length ?? 0) - (tags?.get(b.name)?.length ?? 0))[0];
  const product = authors && kinds && authors.length * kinds.length <= maxProductTerms;
  const rankOfRest = product ? rankOfAuthorAndKind : authors ? rankOfAuthor : Number.POSITIVE_INFINITY;
  if (best && best.rank < rankOfRest) {
    const values = (tags?.get(best.name) ?? []).filter((value) => !lacksTag(best.name, value));
    if (
      kinds?.every((kind) => isListedByTagAndKind(best.name, kind)) &&
      kinds.length * values.length <= maxProductTerms
    ) {
      const terms = values.flatMap((value) => kinds.map((kind) => ofTagAndKind(best.name, value, kind)));
      const residual = names.length > 1 ? "content" : authors ? "header" : "none";
      return { type: "terms", terms, residual, tag: best.name };
    }
    const terms = values.map((value) => ofTag(best.name, value));
    const residual = names.length > 1 ? "content" : authors || kinds ? "header" : "none";
    return { type: "terms", terms, residual, tag: best.name };
  }
  const covered: Residual = names.length > 0 ? "content" : "none";
  if (product) {
    const terms = authors.flatMap((pubkey) => kinds.map((kind) => ofAuthorAndKind(pubkey, kind)));
    return { type: "terms", terms, residual: covered };
  }
  if (authors) {
    return { type: "terms", terms: authors.map(ofAuthor), residual: kinds && covered === "none" ? "header" : covered };
  }
  if (kinds) return { type: "terms", terms: kinds.map(ofKind), residual: covered };
  return { type: "terms", terms: [everything], residual: covered };
}

/** Names the lists of the fields that the plan has not used, where they are few. */
function withOtherFields(plan: Plan, { authors, kinds, tags, search }: Filter, lacksTag: LacksTag): Plan {
  if (plan.type !== "terms" || plan.residual === "none" || search !== undefined) return plan;
  if (plan.terms.length > maxTermsBeside) return plan;
  const also: string[][] = [];
  for (const [name, values] of tags ?? []) {
    if (name === plan.tag || !isIndexedTag(name) || values.length > maxTermsBeside) continue;
    also.push(values.filter((value) => !lacksTag(name, value)).map((value) => ofTag(name, value)));
  }
  if (plan.tag !== undefined) {
    const kindsLeft = plan.terms.some(isOfTagAndKind) ? undefined : kinds;
    const isProduct = authors && kinds && authors.length * kinds.length <= maxTermsBeside;
    const rest = isProduct
      ? authors.flatMap((pubkey) => kinds.map((kind) => ofAuthorAndKind(pubkey, kind)))
      : (authors?.map(ofAuthor) ?? kindsLeft?.map(ofKind));
    if (rest && rest.length <= maxTermsBeside) also.push(rest);
  }
  return also.length > 0 ? { ...plan, also } : plan;
}

/** Author, addressable kind and `d` together name at most one event each. */
function addressesOf(filter: Filter): string[] | undefined {
  const { authors, kinds, tags } = filter;
  const identifiers = tags?.get("d");
  if (!authors || !kinds || !identifiers || !kinds.every(isAddressable)) return undefined;
  if (authors.length * kinds.length * identifiers.length > maxProductTerms) return undefined;
  return authors.flatMap((pubkey) =>
    kinds.flatMap((kind) => identifiers.map((identifier) => addressText({ kind, pubkey, identifier }))),
  );
}

const maxWordsCompared = 8;
const lookedAt = 256;

/** Of lists that each lead to everything, the one that ends first; none is read further than is worth it. */
export function shortestOf(terms: readonly string[], open: (term: string, streams: MergedStreams) => void): string[] {
  let [best] = terms;
  let fewest = lookedAt;
  if (terms.length > 1) {
    for (const term of terms) {
      const streams = new MergedStreams(0, Number.MAX_SAFE_INTEGER);
      open(term, streams);
      let count = 0;
      while (count < fewest && streams.next()) count++;
      if (count < fewest) [best, fewest] = [term, count];
    }
  }
  return best === undefined ? [] : [best];
}

/** Where lists are: the backend, a layer, or what a plan found by itself. */
export interface Lists {
  scan(term: string, after: Entry | undefined, since: number, until: number, max: number): Entry[];
}

const smallestChunk = 4;
const usualChunk = 16;
const largestChunk = 512;

/** How much of each list to read first, when `limit` entries of `lists` lists are wanted. */
export const firstChunkOf = (limit: number, lists: number): number =>
  Math.min(usualChunk, Math.max(smallestChunk, Math.ceil((2 * limit) / lists)));

/**
 * One term list of a layer or of the disk. A stream keeps a small buffer and the place it has reached, never an open
 * cursor: it can rest for as long as it likes.
 */
export class Stream {
  #buffer: Entry[];
  #tagTexts: readonly Buffer[] | undefined;
  #index = 0;
  #chunk: number;
  #isLast: boolean;
  head: Entry | undefined;

  constructor(
    readonly lists: Lists,
    readonly term: string,
    readonly merged: MergedStreams,
    first: Entry[],
  ) {
    this.#chunk = merged.firstChunk;
    this.#buffer = first;
    this.#isLast = first.length < merged.firstChunk;
    this.head = first[0];
  }

  /** How the tag is written in an event that the term was made of, if it was made of one; kept, because every row asks. */
  get tagTexts(): readonly Buffer[] {
    const { term } = this;
    this.#tagTexts ??= isOfTag(term) || isOfTagAndKind(term) ? [Buffer.from(tagText(term))] : [];
    return this.#tagTexts;
  }

  advance(): void {
    this.#index++;
    if (this.#index === this.#buffer.length && !this.#isLast) {
      this.#chunk = Math.min(this.#chunk * 4, largestChunk);
      const { since, until } = this.merged;
      this.#buffer = this.lists.scan(this.term, this.head, since, until, this.#chunk);
      this.#isLast = this.#buffer.length < this.#chunk;
      this.#index = 0;
    }
    this.head = this.#buffer[this.#index];
  }

  /** Goes to the first entry that is this one or comes after it. What lies between is not read, unless it was already. */
  seek(entry: Entry): void {
    const isBefore = (at: number): boolean => compareEntries(this.#buffer[at] as Entry, entry) < 0;
    const { length } = this.#buffer;
    if (this.#isLast || (length > 0 && !isBefore(length - 1))) {
      while (this.#index < length && isBefore(this.#index)) this.#index++;
    } else {
      this.#chunk = usualChunk;
      const { since, until } = this.merged;
      this.#buffer = this.lists.scan(this.term, rightBefore(entry), since, until, this.#chunk);
      this.#isLast = this.#buffer.length < this.#chunk;
      this.#index = 0;
    }
    this.head = this.#buffer[this.#index];
  }
}

/** The last place in the order before an entry. */
const rightBefore = (entry: Entry): Entry => ({
  time: entry.time,
  idHigh: entry.idHigh,
  idLow: entry.idLow,
  seq: entry.seq - 1,
});

/** Merges streams; an entry that is in several comes once. */
export class MergedStreams {
  /** By time, the newest first. */
  readonly #streams = new Heap<Stream>((a, b) => compareEntries(a.head as Entry, b.head as Entry) < 0);
  #last: Entry | undefined;
  /** The list in which the last entry was found (one of them, when there are several). */
  found: Stream | undefined;

  constructor(
    readonly since: number,
    readonly until: number,
    readonly firstChunk: number = usualChunk,
  ) {}

  /** Opens one more list. */
  add(lists: Lists, term: string): void {
    const entries = lists.scan(term, undefined, this.since, this.until, this.firstChunk);
    const [first] = entries;
    // Most lists of a wide question are empty.
    if (first) this.#streams.add(-first.time, new Stream(lists, term, this, entries));
  }

  next(): Entry | undefined {
    for (;;) {
      const top = this.#streams.first;
      const entry = top?.head;
      if (!top || !entry) return undefined;
      top.advance();
      this.#moved(top);
      if (this.#last && compareEntries(this.#last, entry) === 0) continue;
      this.#last = entry;
      this.found = top;
      return entry;
    }
  }
  /** The first entry that is this one or comes after it; `next` goes on behind it. */
  seek(entry: Entry): Entry | undefined {
    for (let top = this.#streams.first; top?.head; top = this.#streams.first) {
      if (compareEntries(top.head, entry) >= 0) break;
      top.seek(entry);
      this.#moved(top);
    }
    return this.next();
  }

  #moved(top: Stream): void {
    if (top.head === undefined) this.#streams.removeFirst();
    else this.#streams.replaceFirst(-top.head.time, top);
  }
}

/**
 * What is in all of several merged lists. Each leads the others on to where it stands: of none more is read than the
 * shortest has entries, and what lies between is passed over.
 */
export class CommonEntries {
  #at = 0;
  #wanted: Entry | undefined;
  /** How many of the lists, one after the other, have the wanted entry. */
  #agree = 0;

  constructor(readonly lists: readonly MergedStreams[]) {}

  /** One step. "none yet": the lists do not agree yet. */
  next(): Entry | "none yet" | undefined {
    const list = this.lists[this.#at] as MergedStreams;
    const found = this.#wanted ? list.seek(this.#wanted) : list.next();
    if (!found) return undefined;
    this.#agree = this.#wanted && compareEntries(found, this.#wanted) === 0 ? this.#agree + 1 : 1;
    this.#wanted = found;
    this.#at = (this.#at + 1) % this.lists.length;
    if (this.#agree < this.lists.length) return "none yet";
    this.#wanted = undefined;
    return found;
  }
}
