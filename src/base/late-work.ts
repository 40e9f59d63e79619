// Work that is gathered for a moment and then done together, such as rows that nobody waits for: many in one
// transaction, runs one after the other. A crash loses what was gathered.

import type { Clock } from "./clock.js";

export class LateWork {
  #cancel: (() => void) | undefined;
  #running: Promise<void> = Promise.resolve();

  /** `work` does all that is gathered by then, and deals with its own failures. */
  constructor(
    private readonly clock: Clock,
    private readonly delayMs: number,
    private readonly work: () => Promise<void>,
  ) {}

  /** There is something to do: it is begun no later than `delayMs` from now. */
  later(): void {
    this.#cancel ??= this.clock.after(this.delayMs, () => void this.now());
  }

  /** Resolves when what is gathered so far was done. */
  now(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#running = this.#running.then(this.work);
    return this.#running;
  }
}
