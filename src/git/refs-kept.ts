// What refs were at one moment, while they go on changing: a snapshot of all repositories is taken one after the other,
// and each must show the refs of the moment the snapshot began. Before a repository's first change after that moment its
// table is put aside here. Costs nothing while no snapshot is being taken.

import type { RefTable } from "./types.js";

export class RefsKept {
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
