// How much one repository may bring in a day (spec "What happens to an event that arrives"): an attacker's relay with
// ten million events about his own repository must not fill our disk. Counts new events only, and never one too many:
// what finds the rest of the budget taken by events on their way waits for their verdicts.

import type { SyncConfig } from "./config.js";
import type { Command } from "./messages.js";

export type Offer = Extract<Command, { type: "offerToIntake" }>;

interface Share {
  newToday: number;
  onTheWay: number;
  /** Bounded like everything on its way: reading pauses. */
  held: Offer[];
}

export class Budgets {
  readonly #shares = new Map<string, Share>();
  #over = new Set<string>();
  #dayStartMs = 0;

  constructor(readonly config: SyncConfig) {}

  get isAnyOver(): boolean {
    return this.#over.size > 0;
  }

  /** Repositories that have used up their day. */
  get over(): ReadonlySet<string> {
    return this.#over;
  }

  isOver(coordinate: string): boolean {
    return this.#over.has(coordinate);
  }

  /** True: it may go to intake now. False: it is kept until settle() gives it back. */
  take(coordinate: string, offer: Offer): boolean {
    const share = this.#shares.get(coordinate) ?? { newToday: 0, onTheWay: 0, held: [] };
    this.#shares.set(coordinate, share);
    const hasRoom = share.onTheWay === 0 || this.#roomIn(share) > 0;
    if (hasRoom) share.onTheWay += 1;
    else share.held.push(offer);
    return hasRoom;
  }

  /** A verdict is here. What was held and may go now; all of it when the repository is over its budget. */
  settle(coordinate: string, isNew: boolean): readonly Offer[] {
    const share = this.#shares.get(coordinate);
    if (!share) return [];
    share.onTheWay -= 1;
    if (isNew) share.newToday += 1;
    if (share.newToday >= this.config.maxNewPerCoordinatePerDay) {
      this.#over.add(coordinate);
      return share.held.splice(0);
    }
    const going = share.held.splice(0, this.#roomIn(share));
    share.onTheWay += going.length;
    if (share.newToday + share.onTheWay === 0) this.#shares.delete(coordinate);
    return going;
  }

  #roomIn({ newToday, onTheWay }: Share): number {
    return Math.max(0, this.config.maxNewPerCoordinatePerDay - newToday - onTheWay);
  }

  /** On a new day: the coordinates that were over and now need their history again. */
  turnDay(nowMs: number): readonly string[] {
    if (nowMs - this.#dayStartMs < this.config.dayMs) return [];
    const over = [...this.#over];
    for (const [coordinate, share] of this.#shares) {
      share.newToday = 0;
      if (share.onTheWay === 0) this.#shares.delete(coordinate);
    }
    this.#over = new Set();
    this.#dayStartMs = nowMs;
    return over;
  }
}
