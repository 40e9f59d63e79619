// The ref tables of all repositories that were looked at lately, bounded by the number of refs in them. A table never
// changes in place: a change is a new table with a higher generation, so that whoever holds one sees one moment.
//
// What is written and what is shown may differ for a moment: refs are on disk before the event that speaks of them is
// stored, and clients must see both at once (architecture.md, invariant 3). While a repository's change is withheld,
// `shown` answers the table from before it.

import type { RefName } from "../nostr/ref-name.js";
import { unbornBranch } from "./repository-files.js";
import type { RefTable } from "./types.js";

/** Of a repository that is not on disk yet but answers as an empty one (`/prs/`). */
export const emptyTable: RefTable = { refs: new Map(), head: unbornBranch as RefName, generation: 0 };

/** What an empty table costs, in refs. */
const tableWeight = 8;

export class RefTables {
  readonly #tables = new Map<string, RefTable>();
  readonly #pins = new Map<string, number>();
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
    this.#pins.set(key, (this.#pins.get(key) ?? 0) + 1);
    return () => {
      const left = (this.#pins.get(key) ?? 1) - 1;
      if (left > 0) this.#pins.set(key, left);
      else this.#pins.delete(key);
    };
  }
}
