// Keeps the index and the log on disk in shape, in small transactions beside everything else: moves a frozen layer into
// the index, and forgets records of removals. An index run goes in key order, so that commits never wait long and
// neighbouring entries share pages. Until the last transaction sets the mark "indexed up to", a restart reads the same rows
// from the log again: entries written twice are the same entries.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { MemoryLayer } from "../engine/content.js";
import { type Entry, expirationEntry, expiring, Row } from "../engine/row.js";
import type { Sequence } from "../port.js";
import type { Database } from "./database.js";
import {
  addressKey,
  entryBytes,
  isRemoval,
  metaNumber,
  readSeq,
  seqKey,
  setMeta,
  termKeyOf,
  writeEntry,
  writeTerm,
} from "./rows.js";

const nothing = Buffer.alloc(0);
const scratch = Buffer.alloc(entryBytes);

const termsAStep = 2_000;

export class Indexing {
  readonly #terms: TermOrder;
  readonly #byId: Row[];
  readonly #byAddress: { readonly key: Buffer; readonly row: Row }[];
  readonly upTo: Sequence;
  #term = 0;
  #entry = 0;
  #id = 0;
  #address = 0;

  constructor(
    readonly layer: MemoryLayer,
    readonly seed: number,
  ) {
    this.#terms = new TermOrder(layer.terms(), seed);
    const rows = [...layer.rows()];
    this.#byId = rows.toSorted((a, b) => a.idHigh - b.idHigh || a.idLow - b.idLow);
    this.#byAddress = rows
      .flatMap((row) => (row.address === undefined ? [] : [{ key: addressKey(row.address), row }]))
      .sort((a, b) => Buffer.compare(a.key, b.key));
    this.upTo = rows.reduce((most, { seq }) => Math.max(most, seq), 0);
  }

  /** Hashes some more terms, so that the main thread never stands still for all of them; true when all are done. */
  prepare(): boolean {
    return this.#terms.prepare(termsAStep);
  }

  get isDone(): boolean {
    const { length } = this.#terms;
    return this.#term >= length && this.#id >= this.#byId.length && this.#address >= this.#byAddress.length;
  }

  /** Everything again: a commit failed, and what was left out because of it may be needed after all. */
  restart(): void {
    this.#term = 0;
    this.#entry = 0;
    this.#id = 0;
    this.#address = 0;
  }

  /** Writes about `max` more entries into the running transaction. */
  writeSome(database: Database, max: number): void {
    let left = max;
    for (; left > 0 && this.#term < this.#terms.length; this.#entry = 0, this.#term++) {
      left = this.#writeTerm(database, this.#terms.at(this.#term), left);
      if (left === 0) return;
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
  #writeTerm(database: Database, term: string, max: number): number {
    let left = max;
    const entries = this.layer.list(term);
    writeTerm(scratch, termKeyOf(term, this.seed));
    for (; left > 0 && this.#entry < entries.length; this.#entry++, left--) {
      const entry = entries[entries.length - 1 - this.#entry] as Entry;
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
  for (const term of row.terms()) {
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

const hashBits = 25;

/**
 * Terms in about the order of their keys, for an index run: neighbours share pages. The order only saves work, so a
 * part of the hash is enough. Numbers, not objects: a run has tens of thousands of terms, and all of them would outlive
 * several collections of garbage.
 */
export class TermOrder {
  readonly #terms: readonly string[];
  readonly #seed: number;
  /** Type and beginning of the hash in the upper half, place in `#terms` in the lower one. */
  readonly #order: BigUint64Array;
  readonly #halves: Uint32Array;
  #prepared = 0;

  constructor(terms: readonly string[], seed: number) {
    this.#terms = terms;
    this.#seed = seed;
    this.#order = new BigUint64Array(terms.length);
    this.#halves = new Uint32Array(this.#order.buffer);
  }

  get length(): number {
    return this.#terms.length;
  }

  /** Hashes up to `max` more terms; true when all are done and in order. */
  prepare(max: number): boolean {
    if (this.#prepared === this.length) return true;
    const end = Math.min(this.#prepared + max, this.length);
    for (; this.#prepared < end; this.#prepared++) {
      const { type, high } = termKeyOf(this.#terms[this.#prepared] as string, this.#seed);
      this.#halves[2 * this.#prepared + lower] = this.#prepared;
      this.#halves[2 * this.#prepared + upper] = ((type << hashBits) | (high >>> (32 - hashBits))) >>> 0;
    }
    if (this.#prepared < this.length) return false;
    this.#order.sort();
    return true;
  }

  at(index: number): string {
    return this.#terms[this.#halves[2 * index + lower] as number] as string;
  }
}

/** Which half of a 64-bit number comes first in this machine's memory. */
const lower = new Uint32Array(BigUint64Array.of(1n).buffer)[0] === 1 ? 0 : 1;
const upper = 1 - lower;

const recordsAStep = 500;

/**
 * Records of removals tell those who follow the feed that something went. When all of them have passed a record, it is
 * forgotten, so that the file follows what is held and not what ever was (threats row 54). A mark says how far
 * forgetting has come. The newest record of the log stays: its number is the store's position.
 */
export async function forgetRemovals(database: Database, before: Sequence, isStopped: () => boolean): Promise<void> {
  let reached = metaNumber(database, "forgottenUpTo") ?? 0;
  while (!isStopped() && reached < before - 1) {
    const range = { start: seqKey(reached + 1), end: seqKey(before), limit: recordsAStep };
    const seqs = [...database.log.getKeys(range)].map((key) => readSeq(key, 0));
    const going = seqs.filter((seq) => {
      const record = database.log.getBinaryFast(seqKey(seq));
      return record !== undefined && isRemoval(record);
    });
    reached = seqs.length < recordsAStep ? before - 1 : (seqs.at(-1) as Sequence);
    const upTo = reached;
    await database.write(() => {
      for (const seq of going) database.log.remove(seqKey(seq));
      setMeta(database, "forgottenUpTo", upTo);
    });
    await nextTurn();
  }
}
