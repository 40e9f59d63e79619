// Answers built from a ref table, kept with it: they go when the table goes, so they can never be stale.

import type { RefTable } from "./types.js";

export class TableAnswers {
  readonly #byTable = new WeakMap<RefTable, Map<string, Buffer>>();

  constructor(readonly maxPerTable: number) {}

  get<Built extends Buffer | undefined>(table: RefTable, key: string, build: () => Built): Buffer | Built {
    const answers = this.#byTable.get(table) ?? new Map<string, Buffer>();
    this.#byTable.set(table, answers);
    const kept = answers.get(key);
    if (kept) return kept;
    const built = build();
    if (!built) return built;
    if (answers.size >= this.maxPerTable) answers.clear();
    answers.set(key, built);
    return built;
  }
}
