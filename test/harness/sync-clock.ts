// A time that goes on by itself, the system's unless said otherwise, and that a test may push forward: what waits for minutes
// comes at once, or in small steps, so that pings are answered between them.

import { setTimeout as sleep } from "node:timers/promises";
import { type Clock, systemClock } from "../../src/base/clock.js";

interface Timer {
  readonly dueMs: number;
  readonly callback: () => void;
  readonly cancel: () => void;
}

export class PushedClock implements Clock {
  readonly #timers = new Set<Timer>();
  #pushedMs: number;

  constructor(
    private readonly base: Clock = systemClock,
    pushedMs = 0,
  ) {
    this.#pushedMs = pushedMs;
  }

  nowMs(): number {
    return this.base.nowMs() + this.#pushedMs;
  }

  monotonicMs(): number {
    return this.base.monotonicMs() + this.#pushedMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer: Timer = {
      dueMs: this.monotonicMs() + Math.max(0, delayMs),
      callback,
      cancel: this.base.after(delayMs, () => this.#fire(timer)),
    };
    this.#timers.add(timer);
    return () => this.#forget(timer);
  }

  /** Steps of 20 s: a ping every 30 s must find its answer before a minute is over. */
  async push(ms: number, stepMs = 20_000): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      this.advance(Math.min(left, stepMs));
      await sleep(4);
    }
  }

  /** At once: what is due meanwhile comes late. */
  advance(ms: number): void {
    this.#pushedMs += ms;
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.dueMs <= this.monotonicMs());
      if (due.length === 0) break;
      for (const timer of due.sort((a, b) => a.dueMs - b.dueMs)) this.#fire(timer);
    }
  }

  #forget(timer: Timer): void {
    timer.cancel();
    this.#timers.delete(timer);
  }

  #fire(timer: Timer): void {
    if (!this.#timers.has(timer)) return;
    this.#forget(timer);
    timer.callback();
  }
}
