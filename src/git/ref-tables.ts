// The ref tables of all repositories that were looked at lately, bounded by the number of refs in them. A table never
// changes in place: a change is a new table with a higher generation, so that whoever holds one sees one moment.
//
// What is written and what is shown may differ for a moment: refs are on disk before the event that speaks of them is
// stored, and clients must see both at once (architecture.md, invariant 3). While a repository's change is withheld,
// `shown` answers the table from before it. SnapshotRefs keeps the tables of the moment a backup's snapshot began.

import { UseCounts } from "../base/keyed-lock.js";
import type { Oid, RefName } from "../nostr/ids.js";

export const unbornBranch = "refs/heads/master";

export interface RefValue {
  readonly oid: Oid;
  /** For an annotated tag: the object it finally points at. */
  readonly peeled: Oid | undefined;
}

/** A repository's refs at one moment, sorted by name (by bytes, as git sorts). Never changed in place. */
export interface RefTable {
  readonly refs: ReadonlyMap<RefName, RefValue>;
  /** The branch HEAD names, whether or not it exists. */
  readonly head: RefName;
  /** Grows with each change; part of the key of shared fetch answers. */
  readonly generation: number;
}

/** Of a repository that is not on disk yet but answers as an empty one (`/prs/`). */
export const emptyTable: RefTable = { refs: new Map(), head: unbornBranch as RefName, generation: 0 };

/** What an empty table costs, in refs. */
const tableWeight = 8;

export class RefTables {
  readonly #tables = new Map<string, RefTable>();
  readonly #pins = new UseCounts();
  /** What clients are shown of repositories whose newest change is withheld; as many as there are pushes at work. */
  readonly #shown = new Map<string, RefTable>();
  #weight = 0;
  #generation = 0;

  constructor(readonly maxRefs: number) {}

  get(key: string): RefTable | undefined {
    const table = this.#tables.get(key);
    if (!table) return undefined;
    // Re-inserted: the map's order is the order of use.
    this.#tables.delete(key);
    this.#tables.set(key, table);
    return table;
  }

  set(key: string, { head, refs }: Omit<RefTable, "generation">): RefTable {
    this.delete(key);
    const table: RefTable = { head, refs, generation: ++this.#generation };
    this.#tables.set(key, table);
    this.#weight += refs.size + tableWeight;
    for (const [oldKey] of this.#tables) {
      if (this.#weight <= this.maxRefs) break;
      if (oldKey !== key && !this.#pins.has(oldKey)) this.delete(oldKey);
    }
    return table;
  }

  /** Like `set`, but clients go on seeing `before` until `publish`. */
  withhold(key: string, before: RefTable, changed: Omit<RefTable, "generation">): RefTable {
    if (!this.#shown.has(key)) this.#shown.set(key, before);
    return this.set(key, changed);
  }

  /** From now on clients see the newest table. */
  publish(key: string): void {
    this.#shown.delete(key);
  }

  /** Set only while a change is withheld. */
  shown(key: string): RefTable | undefined {
    return this.#shown.get(key);
  }

  delete(key: string): void {
    const table = this.#tables.get(key);
    if (!table) return;
    this.#tables.delete(key);
    this.#weight -= table.refs.size + tableWeight;
  }

  /** While pinned a table stays: whoever asks for refs during an update must not need the update's lock. */
  pin(key: string): () => void {
    return this.#pins.begin(key);
  }
}

/**
 * A snapshot of all repositories is taken one after the other, and each must show the refs of the moment the snapshot
 * began. Before a repository's first change after that moment its table is put aside here.
 */
export class SnapshotRefs {
  #tables: Map<string, RefTable | "not there"> | undefined;

  /** False: another snapshot is being taken. */
  begin(): boolean {
    if (this.#tables) return false;
    this.#tables = new Map();
    return true;
  }

  end(): void {
    this.#tables = undefined;
  }

  /**
   * Called when nothing can stop the change any more and nothing of it is written: whatever the store promised
   * before a snapshot's moment is then in the snapshot's journal.
   */
  changes(key: string, before: RefTable): void {
    if (this.#tables && !this.#tables.has(key)) this.#tables.set(key, before);
  }

  created(key: string): void {
    if (this.#tables && !this.#tables.has(key)) this.#tables.set(key, "not there");
  }

  /** Undefined: nothing has changed since. */
  of(key: string): RefTable | "not there" | undefined {
    return this.#tables?.get(key);
  }
}
