// Whether a peer keeps a minimum rate (threats.md rows 41 to 43). Judged over the time it let us wait, so that our own
// slowness is never its fault. Pure: times are arguments.

/** A modem of 1990 does more. */
export const minBytesPerSecond = 1_000;

export class Pace {
  #waitedMs = 0;
  #bytes = 0;

  constructor(
    readonly windowMs: number,
    readonly bytesPerSecond = minBytesPerSecond,
  ) {}

  /** Until it is judged again, if nothing comes. */
  get leftMs(): number {
    return this.windowMs - this.#waitedMs;
  }

  /** We waited so long and got so much. False: over the last window it was too slow. */
  took(waitedMs: number, bytes: number): boolean {
    this.#waitedMs += waitedMs;
    this.#bytes += bytes;
    if (this.#waitedMs < this.windowMs) return true;
    const isQuick = this.#bytes * 1_000 >= this.bytesPerSecond * this.#waitedMs;
    this.#waitedMs = 0;
    this.#bytes = 0;
    return isQuick;
  }
}
