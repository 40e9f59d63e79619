// One number over all repositories of a server, such as how many are served or how many bytes they use together. Added up
// when first asked for, then kept true by each commit: asking costs the same however many repositories there are.

import type { Commit, Store } from "../store/port.js";
import { type CatalogueRow, everyRow, repositoryKey } from "./repositories.js";

/** Repositories, and not the other rows of the catalogue. */
const isRepository = (key: string): boolean => /^(?:prs:)?[0-9a-f]{64}:/.test(key);

export class RowTally {
  readonly #values = new Map<string, number>();
  readonly #changed = new Set<string>();
  #sum = 0;
  #isAdded = false;
  #isFollowing = false;
  #last: Promise<number> = Promise.resolve(0);

  constructor(
    private readonly store: Store,
    private readonly countOf: (row: CatalogueRow) => number,
  ) {}

  /** One after the other: an older row must not come after a newer one. */
  total(): Promise<number> {
    this.#last = this.#last.catch(() => 0).then(() => this.#count());
    return this.#last;
  }

  async #count(): Promise<number> {
    // Commits cost nothing here as long as nobody asks. Before the first row is read: what changes meanwhile is read again.
    if (!this.#isFollowing) this.store.onCommit((commit) => this.#follow(commit));
    this.#isFollowing = true;
    if (!this.#isAdded) for await (const row of everyRow(this.store)) this.#take(repositoryKey(row), row);
    this.#isAdded = true;
    for (const key of this.#changed) {
      // First: a change that comes while it is read is another one.
      this.#changed.delete(key);
      try {
        this.#take(key, await this.store.row<CatalogueRow>("catalogue", key));
      } catch (error) {
        this.#changed.add(key);
        throw error;
      }
    }
    return this.#sum;
  }

  #follow(commit: Commit): void {
    for (const key of commit.changedKeys("catalogue")) if (isRepository(key)) this.#changed.add(key);
  }

  #take(key: string, row: CatalogueRow | undefined): void {
    const value = row ? this.countOf(row) : 0;
    this.#sum += value - (this.#values.get(key) ?? 0);
    if (value === 0) this.#values.delete(key);
    else this.#values.set(key, value);
  }
}
