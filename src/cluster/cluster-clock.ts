// The cluster's wall time on this machine: PostgreSQL's clock, followed by the machine's own steady one between
// measurements. It never jumps: a difference is worn off slowly, so that a change of leader is no step in time.

import type { Clock } from "../base/clock.js";

/** A second of difference is worn off within twenty. */
const slewRate = 0.05;
/** Machines whose own clock is this far off are told of. */
const wrongByMs = 60_000;

export class ClusterClock implements Clock {
  /** Cluster time minus steady time. */
  #offsetMs: number;
  #targetMs: number;
  #slewedAtMs: number;
  #isMeasured = false;

  constructor(
    private readonly own: Clock,
    /** Told once when this machine's own clock is wrong. */
    private readonly warn: (byMs: number) => void = () => undefined,
  ) {
    this.#slewedAtMs = own.monotonicMs();
    this.#offsetMs = own.nowMs() - this.#slewedAtMs;
    this.#targetMs = this.#offsetMs;
  }

  nowMs(): number {
    this.#slew();
    return this.own.monotonicMs() + this.#offsetMs;
  }

  monotonicMs(): number {
    return this.own.monotonicMs();
  }

  after(delayMs: number, callback: () => void): () => void {
    return this.own.after(delayMs, callback);
  }

  /** The database's clock showed `databaseMs` at some moment between `askedMs` and now, both steady. */
  measured(databaseMs: number, askedMs: number): void {
    const answeredMs = this.own.monotonicMs();
    const uncertainMs = (answeredMs - askedMs) / 2;
    this.#slew();
    const targetMs = databaseMs - (askedMs + uncertainMs);
    if (!this.#isMeasured) {
      this.#isMeasured = true;
      this.#offsetMs = targetMs;
      this.#targetMs = targetMs;
      const wrongMs = this.own.nowMs() - answeredMs - targetMs;
      if (Math.abs(wrongMs) > wrongByMs) this.warn(wrongMs);
      return;
    }
    // A slow answer says little: only what it cannot explain counts.
    const differenceMs = targetMs - this.#targetMs;
    if (Math.abs(differenceMs) > uncertainMs) {
      this.#targetMs += differenceMs - Math.sign(differenceMs) * uncertainMs;
    }
  }

  #slew(): void {
    const nowMs = this.own.monotonicMs();
    const mostMs = (nowMs - this.#slewedAtMs) * slewRate;
    this.#slewedAtMs = nowMs;
    const differenceMs = this.#targetMs - this.#offsetMs;
    this.#offsetMs += Math.sign(differenceMs) * Math.min(Math.abs(differenceMs), mostMs);
  }
}
