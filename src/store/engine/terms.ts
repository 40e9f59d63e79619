// Index terms: every event is listed under some names, each list in NIP-01 order. A term is a string whose first
// character is its type; backends may hash it, because candidates are matched again.

import { isAddressable, type NostrEvent, tagValues } from "../../nostr/event.js";
import { searchableWords, searchStem } from "../../nostr/filter.js";
import type { Pubkey } from "../../nostr/ids.js";

export const everything = "*";
/** Events that expire, ordered by that time instead of their creation. */
export const expiring = "x";
/** Addressable events with several `d` tags: the first is their address, but all of them match `#d`. */
export const severalIdentifiers = "!";
export const ofKind = (kind: number): string => `k${kind}`;
export const ofAuthor = (pubkey: Pubkey): string => `p${pubkey}`;
export const ofAuthorAndKind = (pubkey: Pubkey, kind: number): string => `q${pubkey}${kind}`;
export const ofTag = (letter: string, value: string): string => `#${letter}${value}`;
/** Those of one kind under a tag: a pull request among a hundred thousand comments costs what is found. */
export const ofTagAndKind = (letter: string, value: string, kind: number): string => `&${letter}${kind}:${value}`;
/** How a tag that `ofTag` or `ofTagAndKind` made a term of begins in an event's JSON text. */
export const tagText = (term: string): string =>
  `["${term[1]}",${JSON.stringify(term.slice(term[0] === "&" ? term.indexOf(":") + 1 : 2))}`;

/**
 * What clients ask for by kind under a repository's address: patches, pull requests, issues and their status. Listed by
 * tag and kind too. Each kind or letter more costs every such event an entry.
 */
export const kindsUnderAddress: ReadonlySet<number> = new Set([1617, 1618, 1619, 1621, 1630, 1631, 1632, 1633]);
export const isListedByTagAndKind = (letter: string, kind: number): boolean =>
  letter === "a" && kindsUnderAddress.has(kind);
export const ofWord = (word: string): string => `w${searchStem(word)}`;

/** NIP-01: relays index tags of one letter. */
export const isIndexedTag = (name: string): boolean => name.length === 1 && /[A-Za-z]/.test(name);

/** A term may come twice (a tag that is repeated, words that begin alike): listing an event again changes nothing. */
export function termsOf(event: NostrEvent): string[] {
  const terms = [everything, ofKind(event.kind), ofAuthor(event.pubkey), ofAuthorAndKind(event.pubkey, event.kind)];
  for (const tag of event.tags) {
    const name = tag[0];
    const value = tag[1];
    if (name === undefined || value === undefined || !isIndexedTag(name)) continue;
    terms.push(ofTag(name, value));
    if (isListedByTagAndKind(name, event.kind)) terms.push(ofTagAndKind(name, value, event.kind));
  }
  if (isAddressable(event.kind) && tagValues(event, "d").length > 1) terms.push(severalIdentifiers);
  for (const word of searchableWords(event)) terms.push(ofWord(word));
  return terms;
}
