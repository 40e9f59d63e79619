// Rows in memory under all their terms. The whole index of the memory store; for LMDB the rows that are durable in
// the log but not yet indexed on disk. Rows of a running transaction are here too: `view` decides who sees what.

import type { EventId } from "../../nostr/ids.js";
import type { Sequence } from "../port.js";
import { compareEntries, type Entry, expirationEntry, expiring, type Row } from "./row.js";

/** First index whose entry is answered before `entry` or is it: lists run from the oldest to the newest. */
function lowerBound(list: readonly Entry[], entry: Entry): number {
  const last = list[list.length - 1];
  if (last === undefined || compareEntries(last, entry) > 0) return list.length;
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareEntries(list[middle] as Entry, entry) > 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How many entries are not newer than `time`. */
function countUpTo(list: readonly Entry[], time: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((list[middle] as Entry).time <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class MemoryLayer {
  /** Most terms have one entry (words, ids): a list is made only for the second. */
  readonly #lists = new Map<string, Entry | Entry[]>();
  readonly #bySeq = new Map<Sequence, Row>();
  readonly #byId = new Map<EventId, Row>();
  readonly #byAddress = new Map<string, Row>();
  #textBytes = 0;

  get size(): number {
    return this.#bySeq.size;
  }

  /** About how much text the rows hold. */
  get textBytes(): number {
    return this.#textBytes;
  }

  add(row: Row): void {
    this.#bySeq.set(row.seq, row);
    row.olderWithId = this.#byId.get(row.id);
    this.#byId.set(row.id, row);
    if (row.address !== undefined) {
      row.olderAtAddress = this.#byAddress.get(row.address);
      this.#byAddress.set(row.address, row);
    }
    for (const term of row.terms()) this.#insert(term, row);
    const expiration = expirationEntry(row);
    if (expiration) this.#insert(expiring, expiration);
    this.#textBytes += row.event.raw.length;
  }

  drop(row: Row): void {
    if (!this.#bySeq.delete(row.seq)) return;
    this.#byIdWithout(row);
    this.#byAddressWithout(row);
    for (const term of row.terms()) this.#delete(term, row);
    const expiration = expirationEntry(row);
    if (expiration) this.#delete(expiring, expiration);
    this.#textBytes -= row.event.raw.length;
  }

  row(seq: Sequence): Row | undefined {
    return this.#bySeq.get(seq);
  }

  rows(): IterableIterator<Row> {
    return this.#bySeq.values();
  }

  withId(id: EventId, view: Sequence): Row | undefined {
    let row = this.#byId.get(id);
    while (row && !row.isSeenAt(view)) row = row.olderWithId;
    return row;
  }

  atAddress(address: string, view: Sequence): Row | undefined {
    let row = this.#byAddress.get(address);
    while (row && !row.isSeenAt(view)) row = row.olderAtAddress;
    return row;
  }

  /** Whether anything is listed under a term. */
  has(term: string): boolean {
    return this.#lists.has(term);
  }

  /** The list of a term, oldest first; not to be changed. */
  list(term: string): readonly Entry[] {
    const there = this.#lists.get(term);
    return there === undefined ? [] : Array.isArray(there) ? there : [there];
  }

  terms(): string[] {
    return [...this.#lists.keys()];
  }

  /** Up to `max` entries after a place in the order, whoever may see them. */
  scan(term: string, after: Entry | undefined, since: number, until: number, max: number): Entry[] {
    const list = this.list(term);
    let index = countUpTo(list, until);
    if (after) index = Math.min(index, lowerBound(list, after));
    const found: Entry[] = [];
    while (index > 0 && found.length < max) {
      const entry = list[--index] as Entry;
      if (entry.time < since) break;
      found.push(entry);
    }
    return found;
  }

  #insert(term: string, entry: Entry): void {
    const there = this.#lists.get(term);
    if (there === undefined) {
      this.#lists.set(term, entry);
      return;
    }
    if (there === entry) return;
    const list = Array.isArray(there) ? there : [there];
    if (list !== there) this.#lists.set(term, list);
    const index = lowerBound(list, entry);
    if (index === list.length) list.push(entry);
    else if (list[index] !== entry) list.splice(index, 0, entry);
  }

  #delete(term: string, entry: Entry): void {
    const there = this.#lists.get(term);
    const list = Array.isArray(there) ? there : there === undefined ? [] : [there];
    const index = lowerBound(list, entry);
    const found = list[index];
    if (!found || compareEntries(found, entry) !== 0) return;
    if (list.length === 1) this.#lists.delete(term);
    else list.splice(index, 1);
  }

  #byIdWithout(row: Row): void {
    const newest = this.#byId.get(row.id);
    if (newest === row) {
      if (row.olderWithId) this.#byId.set(row.id, row.olderWithId);
      else this.#byId.delete(row.id);
      return;
    }
    for (let other = newest; other; other = other.olderWithId) {
      if (other.olderWithId === row) other.olderWithId = row.olderWithId;
    }
  }

  #byAddressWithout(row: Row): void {
    if (row.address === undefined) return;
    const newest = this.#byAddress.get(row.address);
    if (newest === row) {
      if (row.olderAtAddress) this.#byAddress.set(row.address, row.olderAtAddress);
      else this.#byAddress.delete(row.address);
      return;
    }
    for (let other = newest; other; other = other.olderAtAddress) {
      if (other.olderAtAddress === row) other.olderAtAddress = row.olderAtAddress;
    }
  }
}
