// Who is at work in a repository, and the housekeeping that gives way to them. Pushes, fetches from other servers,
// releases and removals never wait for a repack to end by itself: they stop it and go on as soon as it is gone, which
// takes milliseconds (5 s at the very most). It is done again when the repository is quiet. One that was stopped too often
// insists: then pushes go on beside it, which git allows (threats.md row 47). Only a removal and a look at every pack stop
// it: to those a pack that a repack has replaced looks like one that is damaged.

import { UseCounts } from "../base/keyed-lock.js";

interface Tidying {
  readonly stop: AbortController;
  readonly ended: Promise<void>;
  readonly insists: boolean;
}

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
