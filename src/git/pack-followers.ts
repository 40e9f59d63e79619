// Work on repositories that nobody waits for: what another machine did to one is done here too, a few at a time. What waits is
// one entry a repository.

const atOnce = 2;

export class PackFollowers {
  readonly #waiting = new Map<string, () => Promise<void>>();
  readonly #running = new Set<Promise<void>>();
  #isClosed = false;

  /** Work that fails is made up for when somebody asks for the repository. */
  add(key: string, work: () => Promise<void>): void {
    if (this.#isClosed) return;
    this.#waiting.set(key, work);
    if (this.#running.size < atOnce) this.#begin();
  }

  #begin(): void {
    const running = this.#run().finally(() => {
      this.#running.delete(running);
      // What came after the last look and before this turn found everybody at work.
      if (this.#waiting.size > 0) this.#begin();
    });
    this.#running.add(running);
  }

  async #run(): Promise<void> {
    for (const [key, work] of this.#waiting) {
      if (this.#isClosed) return;
      this.#waiting.delete(key);
      await work().catch(() => undefined);
    }
  }

  /** Resolves when nothing is under way or waits. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#waiting.clear();
    await this.idle();
  }
}
