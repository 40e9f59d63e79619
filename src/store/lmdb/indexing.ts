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

export class Indexing {
  readonly #terms: SortedTerm[];
  readonly #byId: Row[];
  readonly #byAddress: { readonly key: Buffer; readonly row: Row }[];
  readonly upTo: Sequence;
  #term = 0;
  #entry = 0;
  #id = 0;
  #address = 0;

  constructor(
    readonly layer: MemoryLayer,
    seed: number,
  ) {
    this.#terms = layer
      .terms()
      .map((term) => ({ ...termKeyOf(term, seed), entries: layer.list(term) }))
      .sort(compareTermKeys);
    const rows = [...layer.rows()];
    this.#byId = rows.toSorted((a, b) => a.idHigh - b.idHigh || a.idLow - b.idLow);
    this.#byAddress = rows
      .flatMap((row) => (row.address === undefined ? [] : [{ key: addressKey(row.address), row }]))
      .sort((a, b) => Buffer.compare(a.key, b.key));
    this.upTo = rows.reduce((most, { seq }) => Math.max(most, seq), 0);
  }

  get isDone(): boolean {
    return this.#term >= this.#terms.length && this.#id >= this.#byId.length && this.#address >= this.#byAddress.length;
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
      const term = this.#terms[this.#term] as SortedTerm;
      writeTerm(scratch, term);
      for (; left > 0 && this.#entry < term.entries.length; this.#entry++, left--) {
        const entry = term.entries[term.entries.length - 1 - this.#entry] as Entry;
        const row = entry instanceof Row ? entry : this.layer.row(entry.seq);
        if (!row || row.isRemoved) continue;
        writeEntry(scratch, entry);
        database.entries.put(scratch, nothing);
      }
      if (this.#entry < term.entries.length) return;
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
