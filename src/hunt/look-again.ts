// Repositories to look at again: each at most once in the line, a few at a time, never the same one twice at once.

import { type PlacedName, placeKey } from "../purgatory/repository-address.js";

const sideBySide = 4;

export class LookAgain {
  readonly #line = new Map<string, PlacedName>();
  readonly #looking = new Set<string>();
  #closed = false;
  #whenIdle: (() => void)[] = [];

  constructor(
    private readonly look: (name: PlacedName) => Promise<void>,
    private readonly onFault: (error: unknown) => void,
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

  #next(): void {
    for (const [key, name] of this.#line) {
      if (this.#looking.size >= sideBySide) return;
      if (this.#looking.has(key)) continue;
      this.#line.delete(key);
      this.#looking.add(key);
      void this.look(name)
        .catch(this.onFault)
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
