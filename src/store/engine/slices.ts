// Long answers work in short slices and take turns: however many run, each turn of the event loop resumes one of them,
// so that a small question waits for one slice and not for all of them (performance.md, P2).

import type { Clock } from "../../base/clock.js";

const sliceMs = 3;
const lookBetween = 16;

/** Who rests, in the order they came. One a store. */
export class Turns {
  readonly #resting: (() => void)[] = [];

  rest(): Promise<void> {
    return new Promise((resolve) => {
      this.#resting.push(resolve);
      if (this.#resting.length === 1) setImmediate(() => this.#resumeOne());
    });
  }

  #resumeOne(): void {
    this.#resting.shift()?.();
    // An immediate made by an immediate runs in the next turn, after what has arrived meanwhile.
    if (this.#resting.length > 0) setImmediate(() => this.#resumeOne());
  }
}

/** Says when a long computation should let others run. */
export class Slice {
  #startedMs: number;
  #steps = 0;

  constructor(
    readonly clock: Clock,
    readonly turns: Turns,
  ) {
    this.#startedMs = clock.monotonicMs();
  }

  isOver(): boolean {
    if (++this.#steps % lookBetween !== 0) return false;
    return this.clock.monotonicMs() - this.#startedMs > sliceMs;
  }

  async rest(signal?: AbortSignal): Promise<void> {
    await this.turns.rest();
    signal?.throwIfAborted();
    this.#startedMs = this.clock.monotonicMs();
  }
}
