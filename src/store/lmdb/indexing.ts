// Moves a frozen layer into the index on disk, in key order and in small transactions, so that commits never wait
// long and neighbouring entries share pages. Until the last transaction sets the mark "indexed up to", a restart
// reads the same rows from the log again: entries written twice are the same entries.

import type { MemoryLayer } from "../engine/memory-layer.js";
import type { Entry } from "../engine/order.js";
import { expirationEntry, Row } from "../engine/row.js";
import { expiring } from "../engine/terms.js";
import type { Sequence } from "../port.js";
import type { Database } from "./database.js";
import {
  addressKey,
  compareTermKeys,
  entryBytes,
  seqKey,
  type TermKey,
  termKeyOf,
  writeEntry,
  writeTerm,
} from "./keys.js";

const nothing = Buffer.alloc(0);
const scratch = Buffer.alloc(entryBytes);

interface SortedTerm extends TermKey {
  readonly entries: readonly Entry[];
}

/** Terms whose keys begin alike; sorted when their turn comes. */
interface Bucket {
  readonly order: number;
  readonly terms: SortedTerm[];
  isSorted: boolean;
}

const termsAStep = 2_000;

export class Indexing {
  readonly #unprepared: string[];
  readonly #buckets = new Map<number, Bucket>();
  readonly #byId: Row[];
  readonly #byAddress: { readonly key: Buffer; readonly row: Row }[];
  readonly upTo: Sequence;
  #terms: Bucket[] = [];
  #bucket = 0;
  #term = 0;
  #entry = 0;
  #id = 0;
  #address = 0;

  constructor(
    readonly layer: MemoryLayer,
    readonly seed: number,
  ) {
    this.#unprepared = layer.terms();
    const rows = [...layer.rows()];
    this.#byId = rows.toSorted((a, b) => a.idHigh - b.idHigh || a.idLow - b.idLow);
    this.#byAddress = rows
      .flatMap((row) => (row.address === undefined ? [] : [{ key: addressKey(row.address), row }]))
      .sort((a, b) => Buffer.compare(a.key, b.key));
    this.upTo = rows.reduce((most, { seq }) => Math.max(most, seq), 0);
  }

  /** Hashes some more terms, so that the main thread never stands still for all of them; true when all are done. */
  prepare(): boolean {
    if (this.#terms.length > 0 || this.layer.size === 0) return true;
    for (const term of this.#unprepared.splice(-termsAStep)) {
      const key = termKeyOf(term, this.seed);
      const order = key.type * 256 + (key.high >>> 24);
      const bucket = this.#buckets.get(order) ?? { order, terms: [], isSorted: false };
      this.#buckets.set(order, bucket);
      bucket.terms.push({ ...key, entries: this.layer.list(term) });
    }
    if (this.#unprepared.length > 0) return false;
    this.#terms = [...this.#buckets.values()].sort((x, y) => x.order - y.order);
    return true;
  }

  get isDone(): boolean {
    const { length } = this.#terms;
    return this.#bucket >= length && this.#id >= this.#byId.length && this.#address >= this.#byAddress.length;
  }

  /** Everything again: a commit failed, and what was left out because of it may be needed after all. */
  restart(): void {
    this.#bucket = 0;
    this.#term = 0;
    this.#entry = 0;
    this.#id = 0;
    this.#address = 0;
  }

  /** Writes about `max` more entries into the running transaction. */
  writeSome(database: Database, max: number): void {
    let left = max;
    for (; left > 0 && this.#bucket < this.#terms.length; this.#term = 0, this.#bucket++) {
      const bucket = this.#terms[this.#bucket] as Bucket;
      if (!bucket.isSorted) bucket.terms.sort(compareTermKeys);
      bucket.isSorted = true;
      for (; left > 0 && this.#term < bucket.terms.length; this.#entry = 0, this.#term++) {
        left = this.#writeTerm(database, bucket.terms[this.#term] as SortedTerm, left);
        if (left === 0) return;
      }
      if (this.#term < bucket.terms.length) return;
    }
    for (; left > 0 && this.#id < this.#byId.length; this.#id++, left--) {
      const row = this.#byId[this.#id] as Row;
      if (!row.isRemoved) database.ids.put(Buffer.from(row.id, "hex"), seqKey(row.seq));
    }
    for (; left > 0 && this.#address < this.#byAddress.length; this.#address++, left--) {
      const { key, row } = this.#byAddress[this.#address] as { key: Buffer; row: Row };
      if (!row.isRemoved) database.addresses.put(key, seqKey(row.seq));
    }
  }

  /** Returns how many entries may still be written; 0 when the term may not be finished. */
  #writeTerm(database: Database, term: SortedTerm, max: number): number {
    let left = max;
    writeTerm(scratch, term);
    for (; left > 0 && this.#entry < term.entries.length; this.#entry++, left--) {
      const entry = term.entries[term.entries.length - 1 - this.#entry] as Entry;
      const row = entry instanceof Row ? entry : this.layer.row(entry.seq);
      if (!row || row.isRemoved) continue;
      writeEntry(scratch, entry);
      database.entries.put(scratch, nothing);
    }
    return left;
  }
}

/** Takes everything about a row out of the index, in the transaction that removes it. */
export function unindex(database: Database, row: Row, seed: number): void {
  for (const term of row.terms) {
    writeTerm(scratch, termKeyOf(term, seed));
    writeEntry(scratch, row);
    database.entries.remove(scratch);
  }
  const expiration = expirationEntry(row);
  if (expiration) {
    writeTerm(scratch, termKeyOf(expiring, seed));
    writeEntry(scratch, expiration);
    database.entries.remove(scratch);
  }
  database.ids.remove(Buffer.from(row.id, "hex"));
  if (row.address !== undefined) database.addresses.remove(addressKey(row.address));
}
