// Index terms: every event is listed under some names, each list in NIP-01 order. A term is a string whose first
// character is its type; backends may hash it, because candidates are matched again.

import { isAddressable, type NostrEvent, tagValues } from "../../nostr/event.js";
import type { Pubkey } from "../../nostr/ids.js";
import { searchableWords, searchStem } from "../../nostr/search.js";

export const everything = "*";
/** Events that expire, ordered by that time instead of their creation. */
export const expiring = "x";
/** Addressable events with several `d` tags: the first is their address, but all of them match `#d`. */
export const severalIdentifiers = "!";
export const ofKind = (kind: number): string => `k${kind}`;
export const ofAuthor = (pubkey: Pubkey): string => `p${pubkey}`;
export const ofAuthorAndKind = (pubkey: Pubkey, kind: number): string => `q${pubkey}${kind}`;
export const ofTag = (letter: string, value: string): string => `#${letter}${value}`;
/** How a tag that `ofTag` made a term of begins in an event's JSON text. */
export const tagText = (term: string): string => `["${term[1]}",${JSON.stringify(term.slice(2))}`;
export const ofWord = (word: string): string => `w${searchStem(word)}`;

/** NIP-01: relays index tags of one letter. */
export const isIndexedTag = (name: string): boolean => name.length === 1 && /[A-Za-z]/.test(name);

export function termsOf(event: NostrEvent): string[] {
  const terms = [everything, ofKind(event.kind), ofAuthor(event.pubkey), ofAuthorAndKind(event.pubkey, event.kind)];
  const fixed = terms.length;
  for (const tag of event.tags) {
    const name = tag[0];
    const value = tag[1];
    if (name === undefined || value === undefined || !isIndexedTag(name)) continue;
    terms.push(ofTag(name, value));
  }
  if (isAddressable(event.kind) && tagValues(event, "d").length > 1) terms.push(severalIdentifiers);
  for (const word of searchableWords(event)) terms.push(ofWord(word));
  return terms.length > fixed + 1 ? [...new Set(terms)] : terms;
}
