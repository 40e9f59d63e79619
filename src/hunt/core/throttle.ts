// One domain's limits: fetches in flight, and connections started in any window of a minute. Counts; decides nothing else.

import type { DomainLimits } from "./config.js";

export class DomainThrottle {
  /** Ascending; at most the highest `rate` long, because nothing starts beyond it. */
  #startsMs: number[] = [];
  #inFlight = 0;

  constructor(
    public limits: DomainLimits,
    private readonly windowMs: number,
  ) {}

  get inFlight(): number {
    return this.#inFlight;
  }

  hasSlot(): boolean {
    return this.#inFlight < this.limits.concurrent;
  }

  hasRate(nowMs: number): boolean {
    this.#forgetOld(nowMs);
    return this.#startsMs.length < this.limits.rate;
  }

  hasCapacity(nowMs: number): boolean {
    return this.hasSlot() && this.hasRate(nowMs);
  }

  /** When the rate window lets the next connection in; undefined when it does now. */
  rateFreesAtMs(nowMs: number): number | undefined {
    if (this.hasRate(nowMs)) return undefined;
    const oldest = this.#startsMs[this.#startsMs.length - this.limits.rate];
    return oldest === undefined ? undefined : oldest + this.windowMs;
  }

  /** A fetch begins: it holds a place until `finish`, and its first connection counts. */
  start(nowMs: number): void {
    this.#inFlight++;
    this.connect(nowMs);
  }

  /** A further connection of a fetch that holds a place. */
  connect(nowMs: number): void {
    this.#startsMs.push(nowMs);
  }

  finish(): void {
    if (this.#inFlight === 0) throw new Error("a fetch finished that never started");
    this.#inFlight--;
  }

  isIdle(nowMs: number): boolean {
    this.#forgetOld(nowMs);
    return this.#inFlight === 0 && this.#startsMs.length === 0;
  }

  #forgetOld(nowMs: number): void {
    const firstInside = this.#startsMs.findIndex((startMs) => startMs > nowMs - this.windowMs);
    this.#startsMs = firstInside < 0 ? [] : this.#startsMs.slice(firstInside);
  }
}
