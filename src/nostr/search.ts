// NIP-50: which words an event can be found by, and what a search string asks for. Repositories are found by name,
// description and identifier; patches, pull requests and issues by their subject or first line. Nothing else is
// searchable: a relay that indexed all content would pay for it with every event.

import { type NostrEvent, tagValue } from "./event.js";
import { kinds } from "./kinds.js";

/** Words after this many are not searchable: one event must not fill the index. */
export const maxSearchWords = 64;
const maxWordCharacters = 64;
const maxTextCharacters = 4_000;

/** Words of this many characters or more also match as the beginning of a longer word when they end the search. */
export const searchStemCharacters = 4;

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
