// A large text that several clients wait for: one copy, however many (threats.md row 38). It counts in the budget of all
// that is on its way out from the first that waits for it until the last has taken it.

import type { ByteBudget, HeldBytes } from "../base/budget/bytes.js";

export class SharedText {
  readonly #budget: ByteBudget;
  #waiting = 0;
  #held: HeldBytes | undefined;

  constructor(
    readonly bytes: Buffer,
    budget: ByteBudget,
  ) {
    this.#budget = budget;
  }

  get length(): number {
    return this.bytes.length;
  }

  /** One more waits for it. False: there is no room for the text, and nobody waits. */
  hold(): boolean {
    if (this.#waiting === 0) {
      this.#held = this.#budget.openForAll();
      if (!this.#held.hold(this.bytes.length)) {
        this.#held.close();
        return false;
      }
    }
    this.#waiting++;
    return true;
  }

  letGo(): void {
    this.#waiting--;
    if (this.#waiting === 0) this.#held?.close();
  }
}
