// The bytes that all repositories of a server use together, for the limit an operator may set on them. Added up when first
// asked for, then kept true by each commit: a push costs the same however many repositories there are.

import { type CatalogueRow, everyRow, repositoryKey } from "../catalogue/repositories.js";
import type { Store } from "../store/port.js";

/** Repositories, and not the other rows of the catalogue. */
const isRepository = (key: string): boolean => /^(?:prs:)?[0-9a-f]{64}:/.test(key);

class InstanceUse {
  readonly #bytes = new Map<string, number>();
  readonly #changed = new Set<string>();
  #sum = 0;
  #isAdded = false;
  #last: Promise<number> = Promise.resolve(0);

  constructor(private readonly store: Store) {
    // Before the first row is read: what changes meanwhile is read again.
    store.onCommit((commit) => {
      for (const key of commit.changedKeys("catalogue")) if (isRepository(key)) this.#changed.add(key);
    });
  }

  /** One after the other: an older row must not come after a newer one. */
  used(): Promise<number> {
    this.#last = this.#last.catch(() => 0).then(() => this.#count());
    return this.#last;
  }

  async #count(): Promise<number> {
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

  #take(key: string, row: CatalogueRow | undefined): void {
    const bytes = row ? row.counters.bytes + row.counters.pullRequestBytes : 0;
    this.#sum += bytes - (this.#bytes.get(key) ?? 0);
    if (row) this.#bytes.set(key, bytes);
    else this.#bytes.delete(key);
  }
}

const ofStores = new WeakMap<Store, InstanceUse>();

/** Kept with the store, as long as it is there. */
export function instanceUse(store: Store): Promise<number> {
  const use = ofStores.get(store) ?? new InstanceUse(store);
  ofStores.set(store, use);
  return use.used();
}
