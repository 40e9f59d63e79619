// Long answers work in short slices and take turns: however many run, each turn of the event loop resumes one of them,
// so that a small question waits for one slice and not for all of them (performance.md, P2).

import type { Clock } from "../../base/clock.js";
import type { LoopTurns } from "../../base/loop-turns.js";

const sliceMs = 3;
const lookBetween = 16;

/** Says when a long computation should let others run. */
export class Slice {
  #startedMs: number;
  #steps = 0;

  constructor(
    readonly clock: Clock,
    readonly turns: LoopTurns,
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
