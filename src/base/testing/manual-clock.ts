// A clock that stands still until a test moves it.

import type { Clock } from "../clock.js";

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

export class ManualClock implements Clock {
  #wallMs: number;
  #monotonicMs = 0;
  #timers: Timer[] = [];
  #order = 0;

  constructor(wallMs = 1_700_000_000_000) {
    this.#wallMs = wallMs;
  }

  nowMs(): number {
    return this.#wallMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { at: this.#monotonicMs + Math.max(0, delayMs), order: this.#order++, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Moves both clocks, firing due timers in order, each at its own time. */
  advance(ms: number): void {
    const end = this.#monotonicMs + ms;
    for (;;) {
      // Not sorted: a day has 86,400 firings of a timer of one second.
      let due: Timer | undefined;
      for (const timer of this.#timers) {
        if (timer.at > end) continue;
        if (!due || timer.at < due.at || (timer.at === due.at && timer.order < due.order)) due = timer;
      }
      if (!due) break;
      this.#timers = this.#timers.filter((timer) => timer !== due);
      this.#wallMs += due.at - this.#monotonicMs;
      this.#monotonicMs = due.at;
      due.callback();
    }
    this.#wallMs += end - this.#monotonicMs;
    this.#monotonicMs = end;
  }

  /** The process was stopped: time passed, and the timers that were due meanwhile fire late. */
  standStill(ms: number): void {
    this.#wallMs += ms;
    this.#monotonicMs += ms;
    const late = this.#timers.filter((timer) => timer.at <= this.#monotonicMs).sort((a, b) => a.at - b.at);
    this.#timers = this.#timers.filter((timer) => !late.includes(timer));
    for (const { callback } of late) callback();
  }

  /** What an operator or NTP does: the wall clock jumps, durations do not. */
  jumpWall(ms: number): void {
    this.#wallMs += ms;
  }
}
