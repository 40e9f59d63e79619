// Looks at the newest change, for answers that must not be old. A request joins the next look and never one that is under
// way: that one may have read before the change the request must see. When looks fail or take too long the machine answers
// from its view, counts that, and after a while reports that it is not ready. Polls end that: a load balancer sends no
// request to a machine that is not ready, so requests alone would never show that the database is back.

import type { Clock } from "../base/clock.js";

const lookMs = 250;
const staleForMs = 60_000;

export class Looks {
  #running: Promise<boolean> = Promise.resolve(true);
  #next: Promise<boolean> | undefined;
  #staleSinceMs: number | undefined;
  /** Answers that may have been old. */
  staleAnswers = 0;

  constructor(
    private readonly clock: Clock,
    /** Resolves when the view has what was newest after the call. */
    private readonly look: () => Promise<void>,
  ) {}

  /** False after a minute in which no look was in time. */
  get isReady(): boolean {
    return this.#staleSinceMs === undefined || this.clock.monotonicMs() - this.#staleSinceMs < staleForMs;
  }

  async upToDate(): Promise<void> {
    let cancel: () => void = () => undefined;
    const tooLate = new Promise<boolean>((resolve) => {
      cancel = this.clock.after(lookMs, () => resolve(false));
    });
    const isFresh = await Promise.race([this.#join(), tooLate]);
    cancel();
    if (!isFresh) this.staleAnswers += 1;
    this.#note(isFresh);
  }

  /** A look that no request waits for, beside theirs. One that is slow but works says nothing about answers. */
  async poll(): Promise<void> {
    const fromMs = this.clock.monotonicMs();
    try {
      await this.look();
    } catch {
      this.#note(false);
      return;
    }
    if (this.clock.monotonicMs() - fromMs < lookMs) this.#note(true);
  }

  #note(isFresh: boolean): void {
    if (isFresh) this.#staleSinceMs = undefined;
    else this.#staleSinceMs ??= this.clock.monotonicMs();
  }

  #join(): Promise<boolean> {
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      this.#running = this.look().then(
        () => true,
        () => false,
      );
      return this.#running;
    });
    return this.#next;
  }
}
