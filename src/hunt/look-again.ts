// Repositories to look at again: each at most once in the line, a few at a time, never the same one twice at once.

import type { Clock } from "../base/clock.js";
import { type PlacedName, placeKey } from "../git/address.js";

const sideBySide = 4;
const firstRetryMs = 1_000;
const maxRetryMs = 3_600_000;

export class LookAgain {
  readonly #line = new Map<string, PlacedName>();
  readonly #looking = new Set<string>();
  /** How often each one's look failed in a row: no more than there are repositories. */
  readonly #failures = new Map<string, number>();
  #closed = false;
  #whenIdle: (() => void)[] = [];

  constructor(
    private readonly look: (name: PlacedName) => Promise<void>,
    private readonly onFault: (error: unknown) => void,
    private readonly clock: Clock,
  ) {}

  add(name: PlacedName): void {
    if (this.#closed) return;
    this.#line.set(placeKey(name), name);
    this.#next();
  }

  /** Resolves when nothing is in the line and nothing is being looked at. */
  idle(): Promise<void> {
    if (this.#isIdle) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#line.clear();
    await this.idle();
  }

  get #isIdle(): boolean {
    return this.#line.size === 0 && this.#looking.size === 0;
  }

  /** A killed git or a lack of descriptors passes; nobody else would look for an hour. */
  #retry(key: string, name: PlacedName): void {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    this.clock.after(Math.min(maxRetryMs, firstRetryMs * 2 ** failures), () => this.add(name));
  }

  #next(): void {
    for (const [key, name] of this.#line) {
      if (this.#looking.size >= sideBySide) return;
      if (this.#looking.has(key)) continue;
      this.#line.delete(key);
      this.#looking.add(key);
      void this.look(name)
        .then(
          () => void this.#failures.delete(key),
          (error: unknown) => {
            this.onFault(error);
            this.#retry(key, name);
          },
        )
        .then(() => {
          this.#looking.delete(key);
          this.#next();
          if (!this.#isIdle) return;
          const waiting = this.#whenIdle;
          this.#whenIdle = [];
          for (const resolve of waiting) resolve();
        });
    }
  }
}
