// Who works on a thing now, by the thing's key: one at a time (KeyedLock), or how many (UseCounts). Nothing is kept for
// keys that nobody holds.

/**
 * Work under one key runs one after the other, work under different keys side by side. Several keys are taken in one fixed
 * order, so that two callers who want the same ones cannot wait for each other.
 */
export class KeyedLock {
  readonly #tails = new Map<string, Promise<void>>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    let release!: () => void;
    const mine = new Promise<void>((resolve) => {
      release = resolve;
    });
    const tail = before.then(() => mine);
    this.#tails.set(key, tail);
    await before;
    try {
      return await work();
    } finally {
      release();
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    }
  }

  async runAll<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
    const ordered = [...new Set(keys)].sort();
    const take = (index: number): Promise<T> => {
      const key = ordered[index];
      return key === undefined ? work() : this.run(key, () => take(index + 1));
    };
    return take(0);
  }
}

export class UseCounts {
  readonly #counts = new Map<string, number>();

  has(key: string): boolean {
    return this.#counts.has(key);
  }

  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  /** One more uses it, until the returned function is called (once). */
  begin(key: string): () => void {
    this.#counts.set(key, this.of(key) + 1);
    return () => {
      const left = this.of(key) - 1;
      if (left > 0) this.#counts.set(key, left);
      else this.#counts.delete(key);
    };
  }
}
