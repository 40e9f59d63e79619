// NIP-01 filters: strict parsing, and the one definition of what matches. And NIP-50: which words an event can be found
// by, and what a search string asks for. Repositories are found by name, description and identifier; patches, pull
// requests and issues by their subject or first line. Nothing else is searchable: a relay that indexed all content would
// pay for it with every event.

import {
  type EventId,
  isEventId,
  isPrivateKind,
  isPubkey,
  isWhole,
  kinds,
  maxKind,
  type NostrEvent,
  type Pubkey,
  tagValue,
} from "./event.js";
import { type Refusal, refuse } from "./refusals.js";

export interface Filter {
  readonly ids?: readonly EventId[];
  readonly authors?: readonly Pubkey[];
  readonly kinds?: readonly number[];
  /** Tag name (without `#`) → values. Single letters are indexed; other names are matched by looking. */
  readonly tags?: ReadonlyMap<string, readonly string[]>;
  readonly since?: number;
  readonly until?: number;
  readonly limit?: number;
  /** NIP-50. */
  readonly search?: string;
  /** Who asks; never in what a client sends. Events of private kinds match only for their own authors. */
  readonly readers?: Pick<ReadonlySet<Pubkey>, "has">;
}

type ParsedFilter = { readonly ok: true; readonly filter: Filter } | Refusal;

function listOf<T>(value: unknown, check: (item: unknown) => item is T): T[] | undefined {
  if (!Array.isArray(value) || !value.every(check)) return undefined;
  return value.length < 2 || areApart(value) ? value : [...new Set(value)];
}

const placesOfValues = new Uint16Array(2 ** 14);

/**
 * True: no two values are the same. A set of a thousand strings has to look at every character; this looks at a few, and at
 * the rest only of values that have these in common. False where that would be much: then nothing is said.
 */
function areApart(values: readonly unknown[]): boolean {
  let size = 16;
  while (size < values.length * 3) size *= 2;
  if (size > placesOfValues.length) return false;
  placesOfValues.fill(0, 0, size);
  let looks = values.length * 2;
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    let place = (typeof value === "string" ? mixOfSome(value) : Number(value)) & (size - 1);
    for (;;) {
      if (--looks < 0) return false;
      const there = placesOfValues[place] as number;
      if (there === 0) break;
      if (values[there - 1] === value) return false;
      place = (place + 1) & (size - 1);
    }
    placesOfValues[place] = index + 1;
  }
  return true;
}

function mixOfSome(text: string): number {
  let mixed = text.length;
  for (let index = Math.max(0, text.length - 8); index < text.length; index++) {
    mixed = Math.imul(mixed ^ text.charCodeAt(index), 0x9e3779b1);
  }
  return mixed ^ (mixed >>> 15);
}

const isKind = (value: unknown): value is number => isWhole(value) && value <= maxKind;
// No event carries a lone surrogate; an index that looks one up as UTF-8 would find U+FFFD instead.
const isText = (value: unknown): value is string => typeof value === "string" && value.isWellFormed();

/** Unknown keys other than `#…` are ignored, as newer NIPs add keys that only narrow. */
export function parseFilter(value: unknown): ParsedFilter {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return refuse("bad-filter", "a filter is a JSON object");
  }
  const filter: { -readonly [Key in keyof Filter]: Filter[Key] } = {};
  const tags = new Map<string, readonly string[]>();
  for (const [key, item] of Object.entries(value)) {
    if (key === "ids") {
      const list = listOf(item, isEventId);
      if (!list) return refuse("bad-filter", "ids must be an array of 64 lower-case hex digits each");
      filter.ids = list;
    } else if (key === "authors") {
      const list = listOf(item, isPubkey);
      if (!list) return refuse("bad-filter", "authors must be an array of 64 lower-case hex digits each");
      filter.authors = list;
    } else if (key === "kinds") {
      const list = listOf(item, isKind);
      if (!list) return refuse("bad-filter", `kinds must be an array of whole numbers from 0 to ${maxKind}`);
      filter.kinds = list;
    } else if (key === "since" || key === "until" || key === "limit") {
      if (!isWhole(item)) return refuse("bad-filter", `${key} must be a whole number`);
      filter[key] = item;
    } else if (key === "search") {
      if (!isText(item)) return refuse("bad-filter", "search must be a string of valid Unicode");
      filter.search = item;
    } else if (key.startsWith("#") && key.length > 1) {
      const list = listOf(item, isText);
      if (!list) return refuse("bad-filter", "a tag filter must be an array of strings of valid Unicode");
      tags.set(key.slice(1), list);
    }
  }
  if (tags.size > 0) filter.tags = tags;
  return { ok: true, filter };
}

/** The filter as clients write it. */
export function filterJson(filter: Filter): Record<string, unknown> {
  const { tags, readers: _asking, ...rest } = filter;
  return { ...rest, ...Object.fromEntries([...(tags ?? [])].map(([name, values]) => [`#${name}`, values])) };
}

/** The filter with who asks, where it can match private events: also ones that come later. */
export const readBy = (filter: Filter, readers: NonNullable<Filter["readers"]>): Filter =>
  filter.kinds && !filter.kinds.some(isPrivateKind) ? filter : { ...filter, readers };

/** No event can match: an empty list, or a time that ends before it begins. */
export function matchesNothing(filter: Filter): boolean {
  if (filter.since !== undefined && filter.until !== undefined && filter.since > filter.until) return true;
  if (filter.ids?.length === 0 || filter.authors?.length === 0 || filter.kinds?.length === 0) return true;
  for (const values of filter.tags?.values() ?? []) if (values.length === 0) return true;
  return false;
}

export type Matcher = (event: NostrEvent) => boolean;

/** Lists of more than a few values are looked up, not walked. */
function inList<T>(list: readonly T[]): (item: T) => boolean {
  if (list.length === 1) return (item) => item === list[0];
  if (list.length <= 8) return (item) => list.includes(item);
  const set = new Set(list);
  return (item) => set.has(item);
}

/**
 * Compiles a filter into a function. `limit` and `search` are not matching and are not looked at here.
 * `often`: many filters look at one event, so that its tags are worth sorting (threats.md row 35).
 */
export function matcherOf(filter: Filter, looks: "once" | "often" = "once"): Matcher {
  if (matchesNothing(filter)) return () => false;
  const checks: Matcher[] = [];
  const { ids, authors, kinds, tags, since, until, readers } = filter;
  if (readers) checks.push((event) => !isPrivateKind(event.kind) || readers.has(event.pubkey));
  if (since !== undefined) checks.push((event) => event.created_at >= since);
  if (until !== undefined) checks.push((event) => event.created_at <= until);
  if (kinds) {
    const has = inList(kinds);
    checks.push((event) => has(event.kind));
  }
  if (authors) {
    const has = inList(authors);
    checks.push((event) => has(event.pubkey));
  }
  if (ids) {
    const has = inList(ids);
    checks.push((event) => has(event.id));
  }
  if (tags && tags.size > 0) {
    const walk = tags.size === 1 ? oneTagMatcher(tags) : tagsMatcher(tags);
    if (looks === "once") checks.push(walk);
    else checks.push((event) => (event.tags.length <= fewTags ? walk(event) : matchesSorted(event, tags)));
  }
  return (event) => checks.every((check) => check(event));
}

type Tags = ReadonlyMap<string, readonly string[]>;

function oneTagMatcher(tags: Tags): Matcher {
  const [[name, values]] = [...tags] as [[string, readonly string[]]];
  const has = inList(values);
  return (event) => event.tags.some((tag) => tag[0] === name && tag[1] !== undefined && has(tag[1]));
}

/** Several names: one walk over the tags, however many names there are. */
function tagsMatcher(tags: Tags): Matcher {
  const wanted = new Map([...tags].map(([name, values]) => [name, { has: inList(values), foundIn: 0 }]));
  let looks = 0;
  return (event) => {
    looks++;
    let missing = wanted.size;
    for (const [name, value] of event.tags) {
      const one = name === undefined || value === undefined ? undefined : wanted.get(name);
      if (one === undefined || one.foundIn === looks || !one.has(value as string)) continue;
      one.foundIn = looks;
      if (--missing === 0) return true;
    }
    return false;
  };
}

const fewTags = 16;
const sortedTags = new WeakMap<NostrEvent, ReadonlyMap<string, ReadonlySet<string>>>();

/** Made once for an event, for all filters that look at it. */
function sortedTagsOf(event: NostrEvent): ReadonlyMap<string, ReadonlySet<string>> {
  const known = sortedTags.get(event);
  if (known) return known;
  const sorted = new Map<string, Set<string>>();
  for (const [name, value] of event.tags) {
    if (name === undefined || value === undefined) continue;
    const values = sorted.get(name);
    if (values) values.add(value);
    else sorted.set(name, new Set([value]));
  }
  sortedTags.set(event, sorted);
  return sorted;
}

/** Walks the filter's values, never the event's tags: what all filters together hold is bounded. */
function matchesSorted(event: NostrEvent, tags: Tags): boolean {
  const sorted = sortedTagsOf(event);
  for (const [name, values] of tags) {
    const found = sorted.get(name);
    if (!found || !values.some((value) => found.has(value))) return false;
  }
  return true;
}

/** Words after this many are not searchable: one event must not fill the index. */
export const maxSearchWords = 64;
const maxWordCharacters = 64;
const maxTextCharacters = 4_000;

/** Words of this many characters or more also match as the beginning of a longer word when they end the search. */
const searchStemCharacters = 4;

type Searchable = Pick<NostrEvent, "kind" | "tags" | "content">;

/** Words of a text: compatibility forms unified, case folded, punctuation gone. Each once, in order. */
function wordsOf(text: string): string[] {
  const start = text.slice(0, maxTextCharacters);
  // Most texts are ASCII, which needs none of Unicode's tables.
  const found = isAscii(start)
    ? start.toLowerCase().match(/[a-z0-9]+/g)
    : start
        .normalize("NFKC")
        .toLowerCase()
        .match(/[\p{L}\p{N}\p{M}]+/gu);
  const words = new Set<string>();
  for (const word of found ?? []) {
    words.add(beginning(word, maxWordCharacters));
    if (words.size === maxSearchWords) break;
  }
  return [...words];
}

const isAscii = (text: string): boolean => !/[^\p{ASCII}]/u.test(text);

/** The first characters of a text, none cut in half. */
const beginning = (text: string, characters: number): string =>
  text.length <= characters || isAscii(text) ? text.slice(0, characters) : [...text].slice(0, characters).join("");

/** The first that is not blank. */
const firstLine = (text: string): string =>
  text
    .slice(0, maxTextCharacters)
    .trimStart()
    .split(/[\r\n]/, 1)[0] ?? "";

/** A patch is a mail: what it is about stands in its Subject line. */
const titleOf = (event: Searchable): string =>
  (event.kind === kinds.patch ? /^Subject:(.*)$/m.exec(event.content.slice(0, maxTextCharacters))?.[1] : undefined) ??
  firstLine(event.content);

export function searchableWords(event: Searchable): string[] {
  switch (event.kind) {
    case kinds.announcement:
      return wordsOf(
        [tagValue(event, "name"), tagValue(event, "d"), tagValue(event, "description")]
          .map((text) => text ?? "")
          .join(" "),
      );
    case kinds.patch:
    case kinds.pullRequest:
    case kinds.issue:
      return wordsOf(tagValue(event, "subject") ?? titleOf(event));
    default:
      return [];
  }
}

/** The words a search asks for, in order; `key:value` extensions are not words (NIP-50) and are left out. */
export const searchWords = (search: string): string[] =>
  wordsOf(
    search
      .slice(0, maxTextCharacters)
      .split(/\s+/)
      .filter((part) => !/^[a-z]+:\S/i.test(part))
      .join(" "),
  );

/** The beginning of a word: what the store indexes, so that the end of a word may still be missing in a search. */
export const searchStem = (word: string): string => beginning(word, searchStemCharacters);

/** All words must be there; the last one may be the beginning of a longer word. Without any word nothing is found. */
export function searchMatcher(search: string): (event: Searchable) => boolean {
  const wanted = searchWords(search);
  const last = wanted.at(-1);
  if (last === undefined) return () => false;
  const mayContinue = [...last].length >= searchStemCharacters;
  return (event) => {
    const words = searchableWords(event);
    return wanted.every(
      (word) => words.includes(word) || (mayContinue && word === last && words.some((other) => other.startsWith(last))),
    );
  };
}
