// How much one repository may bring in a day (spec "What happens to an event that arrives"): an attacker's relay with
// ten million events about his own repository must not fill our disk. Counts new events only, and never one too many:
// what finds the rest of the budget taken by events on their way waits for their verdicts. Announcements and states
// count for their author and identifier: a flood of comments must not freeze what a repository's owner decides.

import type { SyncConfig } from "./config.js";
import type { Account, Command } from "./messages.js";

export type Offer = Extract<Command, { type: "offerToIntake" }>;

interface Share {
  newToday: number;
  onTheWay: number;
  /** Bounded like everything on its way: reading pauses. */
  held: Offer[];
}

const keyOf = (account: Account): string =>
  "coordinate" in account ? account.coordinate : `${account.author}:${account.identifier}`;

export class Budgets {
  readonly #shares = new Map<string, Share>();
  #over = new Map<string, Account>();
  #dayStartMs = 0;

  constructor(readonly config: SyncConfig) {}

  get isAnyOver(): boolean {
    return this.#over.size > 0;
  }

  /** Who has used up the day. */
  get over(): Iterable<Account> {
    return this.#over.values();
  }

  isOver(account: Account): boolean {
    return this.#over.has(keyOf(account));
  }

  /** Something of this repository is for another day: its own events, or an author's under its name. */
  cutsShort({ coordinate, identifier }: { readonly coordinate: string; readonly identifier: string }): boolean {
    if (this.#over.size === 0) return false;
    const isOfIt = (account: Account): boolean => "identifier" in account && account.identifier === identifier;
    return this.#over.has(coordinate) || [...this.#over.values()].some(isOfIt);
  }

  /** True: it may go to intake now. False: it is kept until settle() gives it back. */
  take(account: Account, offer: Offer): boolean {
    const key = keyOf(account);
    const share = this.#shares.get(key) ?? { newToday: 0, onTheWay: 0, held: [] };
    this.#shares.set(key, share);
    const hasRoom = share.onTheWay === 0 || this.#roomIn(account, share) > 0;
    if (hasRoom) share.onTheWay += 1;
    else share.held.push(offer);
    return hasRoom;
  }

  /** A verdict is here. What was held and may go now; all of it when the day is over. */
  settle(account: Account, isNew: boolean): readonly Offer[] {
    const key = keyOf(account);
    const share = this.#shares.get(key);
    if (!share) return [];
    share.onTheWay -= 1;
    if (isNew) share.newToday += 1;
    if (share.newToday >= this.#perDay(account)) {
      this.#over.set(key, account);
      return share.held.splice(0);
    }
    const going = share.held.splice(0, this.#roomIn(account, share));
    share.onTheWay += going.length;
    if (share.newToday + share.onTheWay === 0) this.#shares.delete(key);
    return going;
  }

  #perDay(account: Account): number {
    const { syncMaxEventsPerRepositoryPerDay, maxOwnPerAuthorPerDay } = this.config;
    return "coordinate" in account ? syncMaxEventsPerRepositoryPerDay : maxOwnPerAuthorPerDay;
  }

  #roomIn(account: Account, { newToday, onTheWay }: Share): number {
    return Math.max(0, this.#perDay(account) - newToday - onTheWay);
  }

  /** On a new day: those who were over and now need their history again. */
  turnDay(nowMs: number): readonly Account[] {
    if (nowMs - this.#dayStartMs < this.config.dayMs) return [];
    const over = [...this.#over.values()];
    for (const [key, share] of this.#shares) {
      share.newToday = 0;
      if (share.onTheWay === 0) this.#shares.delete(key);
    }
    this.#over = new Map();
    this.#dayStartMs = nowMs;
    return over;
  }
}
