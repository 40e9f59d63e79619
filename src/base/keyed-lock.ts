// Locks by name: work under one key runs one after the other, work under different keys side by side. Several keys are
// taken in one fixed order, so that two callers who want the same ones cannot wait for each other. Keeps nothing for
// keys that nobody holds.

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
