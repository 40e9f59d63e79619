// Who is at work in a repository, and the housekeeping that gives way to them. Pushes, fetches from other servers,
// releases and removals never wait for a repack to end by itself: they stop it and go on as soon as it is gone, which
// takes milliseconds (5 s at the very most). It is done again when the repository is quiet. One that was stopped too often
// insists: then pushes go on beside it, which git allows, and only a removal stops it (threats.md row 47).

interface Tidying {
  readonly stop: AbortController;
  readonly ended: Promise<void>;
  readonly insists: boolean;
}

export class GivingWay {
  readonly #working = new Map<string, number>();
  readonly #tidying = new Map<string, Tidying>();

  /** How many are at work there. */
  workersIn(key: string): number {
    return this.#working.get(key) ?? 0;
  }

  /** No housekeeping of these begins before the work has ended; what runs is stopped first. `always`: also what insists. */
  async during<T>(keys: readonly string[], work: () => Promise<T>, { always = false } = {}): Promise<T> {
    for (const key of keys) this.#working.set(key, (this.#working.get(key) ?? 0) + 1);
    try {
      const tidying = keys.flatMap((key) => this.#tidying.get(key) ?? []);
      const running = tidying.filter(({ insists }) => always || !insists);
      for (const { stop } of running) stop.abort();
      await Promise.all(running.map(({ ended }) => ended));
      return await work();
    } finally {
      for (const key of keys) {
        const left = (this.#working.get(key) ?? 1) - 1;
        if (left > 0) this.#working.set(key, left);
        else this.#working.delete(key);
      }
    }
  }

  /** Undefined when somebody is at work there and it does not insist, or another tidies. */
  async tidy<T>(
    key: string,
    signal: AbortSignal | undefined,
    work: (signal: AbortSignal) => Promise<T>,
    insists = false,
  ): Promise<T | undefined> {
    if ((this.#working.has(key) && !insists) || this.#tidying.has(key)) return undefined;
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
