// Who works on a thing now, by the thing's key: one at a time (KeyedLock), how many (UseCounts), or whoever comes before
// the housekeeping that gives way (InUse). Nothing is kept for keys that nobody holds.

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

interface Tidying {
  readonly stop: AbortController;
  readonly ended: Promise<void>;
  readonly insists: boolean;
}

/**
 * Counts who is at work in a repository, and makes housekeeping give way to them. A push, a fetch from another server, a
 * release or a removal never waits until a repack ends by itself: it stops the repack and goes on when the repack is gone,
 * after milliseconds (3 s at most). The repack is tried again when the repository is quiet. A repack that was stopped too
 * often insists: pushes do not stop it any more and run beside it, which git allows (threats.md row 47). Only a removal and
 * a check of every pack still stop it: a check would take a pack that the repack has just replaced for a damaged one.
 */
export class InUse {
  readonly #working = new UseCounts();
  /** Of these, those beside whom not even housekeeping that insists may run. */
  readonly #alone = new UseCounts();
  readonly #tidying = new Map<string, Tidying>();

  /** How many are at work there. */
  workersIn(key: string): number {
    return this.#working.of(key);
  }

  /** No housekeeping of these begins before the work has ended; what runs is stopped first. `always`: nor what insists. */
  async during<T>(keys: readonly string[], work: () => Promise<T>, { always = false } = {}): Promise<T> {
    const counters = always ? [this.#working, this.#alone] : [this.#working];
    const ends = counters.flatMap((counter) => keys.map((key) => counter.begin(key)));
    try {
      const tidying = keys.flatMap((key) => this.#tidying.get(key) ?? []);
      const running = tidying.filter(({ insists }) => always || !insists);
      for (const { stop } of running) stop.abort();
      await Promise.all(running.map(({ ended }) => ended));
      return await work();
    } finally {
      for (const end of ends) end();
    }
  }

  /** Undefined when somebody is at work there (who wants to be alone, if it insists), or another tidies. */
  async tidy<T>(
    key: string,
    signal: AbortSignal | undefined,
    work: (signal: AbortSignal) => Promise<T>,
    insists = false,
  ): Promise<T | undefined> {
    if ((insists ? this.#alone : this.#working).has(key) || this.#tidying.has(key)) return undefined;
    const stop = new AbortController();
    const stopToo = (): void => stop.abort();
    if (signal?.aborted) stopToo();
    signal?.addEventListener("abort", stopToo, { once: true });
    let end!: () => void;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#tidying.set(key, { stop, ended, insists });
    try {
      return await work(stop.signal);
    } finally {
      this.#tidying.delete(key);
      signal?.removeEventListener("abort", stopToo);
      end();
    }
  }
}
