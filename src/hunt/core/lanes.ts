// How many fetches run at once in all, per kind of job. A slow fetch makes room for a fresh one, up to the total:
// a handful of servers that drip bytes must not stop the hunt for everybody else.

import type { HuntConfig } from "./config.js";
import type { JobKind } from "./messages.js";

export class Lanes {
  readonly #limits: HuntConfig["lanes"];
  readonly #running: Record<JobKind, { fresh: number; total: number }> = {
    repository: { fresh: 0, total: 0 },
    "pull-request": { fresh: 0, total: 0 },
  };

  constructor(limits: HuntConfig["lanes"]) {
    this.#limits = limits;
  }

  hasRoom(kind: JobKind): boolean {
    const { fresh, total } = this.#running[kind];
    return fresh < this.#limits[kind].fresh && total < this.#limits[kind].total;
  }

  start(kind: JobKind): void {
    this.#running[kind].fresh++;
    this.#running[kind].total++;
  }

  becameSlow(kind: JobKind): void {
    this.#running[kind].fresh--;
  }

  finish(kind: JobKind, wasSlow: boolean): void {
    if (!wasSlow) this.#running[kind].fresh--;
    this.#running[kind].total--;
  }
}
