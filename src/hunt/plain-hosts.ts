// Hosts that were found to speak http only, remembered for an hour: each look at https would cost one of the thirty
// connections a minute. What is fetched is named by its hash, so nothing rests on the scheme.

import type { Clock } from "../base/clock.js";

const rememberMs = 3_600_000;
const maxHosts = 1_000;

export class PlainHosts {
  readonly #until = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  has(host: string): boolean {
    return (this.#until.get(host) ?? 0) > this.clock.monotonicMs();
  }

  add(host: string): void {
    this.#until.delete(host);
    this.#until.set(host, this.clock.monotonicMs() + rememberMs);
    const [oldest] = this.#until.keys();
    if (this.#until.size > maxHosts && oldest !== undefined) this.#until.delete(oldest);
  }
}
