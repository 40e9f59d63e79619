// Two lists of ids of the same range: who lacks what.

import type { EventId } from "../ids.js";
import type { NegentropyRecords } from "./records.js";
import { idBytes } from "./wire.js";

export interface Difference {
  readonly have: readonly EventId[];
  readonly need: readonly EventId[];
}

// Honest peers list at most 31 ids a range: comparing each with each is quicker than hashing them. A stranger may
// list thousands that begin alike, so anything larger goes through a set.
const maxComparisons = 1024;

export function differenceOf(records: NegentropyRecords, lower: number, upper: number, theirs: Uint8Array): Difference {
  const comparisons = (upper - lower) * (theirs.length / idBytes);
  return comparisons <= maxComparisons
    ? compareEach(records, lower, upper, theirs)
    : compareBySet(records, lower, upper, theirs);
}

function compareEach(records: NegentropyRecords, lower: number, upper: number, theirs: Uint8Array): Difference {
  const bytes = Buffer.from(theirs.buffer, theirs.byteOffset, theirs.length);
  const need: EventId[] = [];
  const shared = new Uint8Array(upper - lower);
  for (let at = 0; at < bytes.length; at += idBytes) {
    const index = records.indexOf(bytes, at, lower, upper);
    if (index >= 0) shared[index - lower] = 1;
    else need.push(bytes.toString("hex", at, at + idBytes) as EventId);
  }
  const have: EventId[] = [];
  for (let index = lower; index < upper; index++) if (shared[index - lower] === 0) have.push(records.id(index));
  return { have, need };
}

function compareBySet(records: NegentropyRecords, lower: number, upper: number, theirs: Uint8Array): Difference {
  const bytes = Buffer.from(theirs.buffer, theirs.byteOffset, theirs.length);
  const rest = new Set<EventId>();
  for (let at = 0; at < bytes.length; at += idBytes) rest.add(bytes.toString("hex", at, at + idBytes) as EventId);
  const have: EventId[] = [];
  for (let index = lower; index < upper; index++) {
    const id = records.id(index);
    if (!rest.delete(id)) have.push(id);
  }
  return { have, need: [...rest] };
}
