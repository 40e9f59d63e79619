// Which index lists answer a filter. The choice is by kind of index, not by statistics: ids, addresses, words, the
// tag that usually names fewest events (with the kind, where such lists are kept), author with kind, author, kind,
// everything.

import { addressText, isAddressable } from "../../nostr/event.js";
import type { Filter } from "../../nostr/filter.js";
import { searchWords } from "../../nostr/filter.js";
import type { EventId } from "../../nostr/ids.js";
import {
  everything,
  isIndexedTag,
  isListedByTagAndKind,
  ofAuthor,
  ofAuthorAndKind,
  ofKind,
  ofTag,
  ofTagAndKind,
  ofWord,
} from "./terms.js";

/** What the terms do not say about a candidate: nothing more to check, its header fields, or its whole content. */
export type Residual = "none" | "header" | "content";

export type Plan =
  | { readonly type: "ids"; readonly ids: readonly EventId[] }
  | { readonly type: "addresses"; readonly addresses: readonly string[] }
  | { readonly type: "terms"; readonly terms: readonly string[]; readonly residual: Residual };

/** More terms than this cost more to open than a wider list costs to walk. */
const maxProductTerms = 5_000;

// Lower is more selective. Letters that are not named here stand between author with kind and author alone.
const rankOfLetter = new Map(
  Object.entries({ e: 1, E: 1, q: 1, i: 2, c: 2, r: 3, a: 3, A: 3, d: 4, p: 6, P: 6, t: 8, k: 9, K: 9 }),
);
const rankOfAuthorAndKind = 5;
const rankOfOtherLetter = 6;
const rankOfAuthor = 7;

export function planOf(filter: Filter): Plan {
  const { ids, authors, kinds, tags, search } = filter;
  if (ids) return { type: "ids", ids };
  const addresses = addressesOf(filter);
  if (addresses) return { type: "addresses", addresses };
  if (search !== undefined) {
    // The longest word is usually the rarest.
    const word = searchWords(search).sort((a, b) => b.length - a.length)[0];
    return { type: "terms", terms: word === undefined ? [] : [ofWord(word)], residual: "content" };
  }
  const names = [...(tags?.keys() ?? [])];
  const best = names
    .filter(isIndexedTag)
    .map((name) => ({ name, rank: rankOfLetter.get(name) ?? rankOfOtherLetter }))
    .sort((a, b) => a.rank - b.rank || (tags?.get(a.name)?.length ?? 0) - (tags?.get(b.name)?.length ?? 0))[0];
  const product = authors && kinds && authors.length * kinds.length <= maxProductTerms;
  const rankOfRest = product ? rankOfAuthorAndKind : authors ? rankOfAuthor : Number.POSITIVE_INFINITY;
  if (best && best.rank < rankOfRest) {
    const values = tags?.get(best.name) ?? [];
    if (
      kinds?.every((kind) => isListedByTagAndKind(best.name, kind)) &&
      kinds.length * values.length <= maxProductTerms
    ) {
      const terms = values.flatMap((value) => kinds.map((kind) => ofTagAndKind(best.name, value, kind)));
      return { type: "terms", terms, residual: names.length > 1 ? "content" : authors ? "header" : "none" };
    }
    const terms = values.map((value) => ofTag(best.name, value));
    return { type: "terms", terms, residual: names.length > 1 ? "content" : authors || kinds ? "header" : "none" };
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
