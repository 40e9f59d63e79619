// What goes over a wire, in bytes, without building the messages: the network model sends hundreds of millions of them.

import type { Filter } from "../../src/nostr/filter.js";

/** `["EVENT","<subscription>",…]`, `["EOSE","<subscription>"]` and the frame around them. */
export const eventFrameBytes = 20;
export const eoseFrameBytes = 16;
/** TCP, TLS and the upgrade, both ways. */
export const connectBytes = 6_000;

export function filterBytes({ ids, authors, kinds, tags, since, until, limit }: Filter): number {
  let bytes = 10;
  if (ids) bytes += 8 + ids.length * 67;
  if (authors) bytes += 12 + authors.length * 67;
  if (kinds) bytes += 10 + kinds.length * 6;
  for (const values of tags?.values() ?? []) {
    bytes += 7;
    for (const value of values) bytes += value.length + 3;
  }
  for (const bound of [since, until]) if (bound !== undefined) bytes += 19;
  return limit === undefined ? bytes : bytes + 13;
}

export interface Reconciled {
  readonly bytes: number;
  /** Messages there and back. */
  readonly rounds: number;
}

const hexOfId = 64;
/** One level of sixteen fingerprints, in hex. */
const openingBytes = 680;
/** What one range with a difference in it costs beside the ids that are told: fingerprints of the next level, its equal ids. */
const smallRangeBytes = 450;
const rangeBytes = 800;
const idsInRange = 12;

/** NIP-77 between two sides that have `equal` events in common and `different` that only one of them has. */
export function reconciliation(equal: number, different: number): Reconciled {
  const ranges = (equal + different) / idsInRange;
  if (equal < 32) return { bytes: (2 * equal + different) * hexOfId + 20, rounds: 1 };
  const touched = ranges * (1 - Math.exp(-different / ranges));
  const bytes = openingBytes + different * hexOfId + touched * (equal < 500 ? smallRangeBytes : rangeBytes);
  return { bytes: Math.round(bytes), rounds: different === 0 ? 1 : equal < 200 ? 1 : 2 };
}
