// Moves a frozen layer into the index on disk, in key order and in small transactions, so that commits never wait
// long and neighbouring entries share pages. Until the last transaction sets the mark "indexed up to", a restart
// reads the same rows from the log again: entries written twice are the same entries.

import type { MemoryLayer } from "../engine/memory-layer.js";
import type { Entry } from "../engine/order.js";
import { expirationEntry, Row } from "../engine/row.js";
import { expiring } from "../engine/terms.js";
import type { Sequence } from "../port.js";
import type { Database } from "./database.js";
import { addressKey, entryBytes, seqKey, termKeyOf, writeEntry, writeTerm } from "./keys.js";
import { TermOrder } from "./term-order.js";

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
