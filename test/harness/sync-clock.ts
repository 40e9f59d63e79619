// The system's time, which a test may push forward: what waits for minutes comes at once, in small steps, so that
// pings are answered between them.

import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../../src/base/clock.js";

interface Timer {
  readonly dueMs: number;
  readonly callback: () => void;
  real: NodeJS.Timeout;
}

export class PushedClock implements Clock {
  #pushedMs = 0;
  readonly #timers = new Set<Timer>();

  nowMs(): number {
    return Date.now() + this.#pushedMs;
  }

  monotonicMs(): number {
    return performance.now() + this.#pushedMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer: Timer = {
      dueMs: this.monotonicMs() + Math.max(0, delayMs),
      callback,
      real: setTimeout(() => this.#fire(timer), Math.min(delayMs, 2 ** 31 - 1)).unref(),
    };
    this.#timers.add(timer);
    return () => this.#forget(timer);
  }

  /** Steps of 20 s: a ping every 30 s must find its answer before a minute is over. */
  async push(ms: number, stepMs = 20_000): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      this.#pushedMs += Math.min(left, stepMs);
      for (;;) {
        const due = [...this.#timers].filter((timer) => timer.dueMs <= this.monotonicMs());
        if (due.length === 0) break;
        for (const timer of due.sort((a, b) => a.dueMs - b.dueMs)) this.#fire(timer);
      }
      await sleep(4);
    }
  }

  #forget(timer: Timer): void {
    clearTimeout(timer.real);
    this.#timers.delete(timer);
  }

  #fire(timer: Timer): void {
    if (!this.#timers.has(timer)) return;
    this.#forget(timer);
    timer.callback();
  }
}
