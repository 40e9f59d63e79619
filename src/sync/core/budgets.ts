// How much one repository may bring in a day (spec "What happens to an event that arrives"): an attacker's relay with
// ten million events about his own repository must not fill our disk. Counts new events only.

import type { SyncConfig } from "./config.js";

export class Budgets {
  #newToday = new Map<string, number>();
  #over = new Set<string>();
  #dayStartMs = 0;

  constructor(readonly config: SyncConfig) {}

  get isAnyOver(): boolean {
    return this.#over.size > 0;
  }

  isOver(coordinate: string): boolean {
    return this.#over.has(coordinate);
  }

  /** One more new event. True when this one filled the budget. */
  add(coordinate: string): boolean {
    const count = (this.#newToday.get(coordinate) ?? 0) + 1;
    this.#newToday.set(coordinate, count);
    if (count < this.config.maxNewPerCoordinatePerDay || this.#over.has(coordinate)) return false;
    this.#over.add(coordinate);
    return true;
  }

  /** On a new day: the coordinates that were over and now need their history again. */
  turnDay(nowMs: number): readonly string[] {
    if (nowMs - this.#dayStartMs < this.config.dayMs) return [];
    const over = [...this.#over];
    this.#newToday = new Map();
    this.#over = new Set();
    this.#dayStartMs = nowMs;
    return over;
  }
}
