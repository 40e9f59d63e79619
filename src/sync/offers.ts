// Events on their way into intake: a bounded number at once, the rest in a queue whose length stops the reading of
// sockets. Our own trouble (busy, disk full) is tried again a few times before the core hears of it.

import type { Clock } from "../base/clock.js";
import { sharedAbort } from "../base/shared-abort.js";
import { type WaitingEntry, waitingKeys } from "../catalogue/waiting.js";
import type { Intake, IntakeAnswer } from "../intake/intake.js";
import type { Store } from "../store/port.js";
import type { Offer } from "./core/budgets.js";
import type { Outcome } from "./core/messages.js";

interface OffersParts {
  readonly store: Store;
  readonly intake: Intake;
  readonly clock: Clock;
  readonly verdict: (offer: Offer, outcome: Outcome) => void;
  /** True: stop reading; false: go on. */
  readonly full: (isFull: boolean) => void;
  readonly fault: (error: unknown) => void;
}

const maxAtOnce = 256;
const fullAt = 5_000;
const roomAgainAt = 1_000;
const busyRetriesMs = [50, 200, 500, 1_000, 2_000] as const;

export class Offers {
  readonly #parts: OffersParts;
  #queue: Offer[] = [];
  #taken = 0;
  readonly #running = new Set<Promise<void>>();
  #full = false;
  readonly #closing = sharedAbort();

  constructor(parts: OffersParts) {
    this.#parts = parts;
  }

  get waiting(): number {
    return this.#queue.length - this.#taken + this.#running.size;
  }

  add(offer: Offer): void {
    this.#queue.push(offer);
    this.#start();
    if (!this.#full && this.waiting >= fullAt) {
      this.#full = true;
      this.#parts.full(true);
    }
  }

  /** Resolves when what intake was given is done with: what follows from it writes to the store and to git. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#queue = [];
    this.#taken = 0;
    await Promise.all(this.#running);
  }

  #start(): void {
    while (this.#running.size < maxAtOnce && this.#taken < this.#queue.length) {
      const judging = this.#judge(this.#queue[this.#taken++] as Offer)
        .catch(this.#parts.fault)
        .finally(() => {
          this.#running.delete(judging);
          if (!this.#isClosed) this.#start();
        });
      this.#running.add(judging);
    }
    if (this.#taken > 1_000 && this.#taken * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#taken);
      this.#taken = 0;
    }
    if (this.#full && this.waiting <= roomAgainAt) {
      this.#full = false;
      this.#parts.full(false);
    }
  }

  async #judge(offer: Offer): Promise<void> {
    // Every offer has its verdict: the core counts those on their way, and stops reading when they are many.
    const failed = (error: unknown): Outcome => {
      if (!this.#isClosed) this.#parts.fault(error);
      return { type: "refused", code: "store-failed" };
    };
    const outcome = await this.#outcome(offer).catch(failed);
    if (!this.#isClosed) this.#parts.verdict(offer, outcome);
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #outcome({ event, relay, source }: Offer): Promise<Outcome> {
    const { store, intake } = this.#parts;
    // What waits already costs a look-up here; intake would verify its signature first.
    if (await store.row<WaitingEntry>("purgatory", waitingKeys.entry(event.id))) return { type: "waiting" };
    for (let attempt = 0; ; attempt++) {
      const answer = await intake.submit(event, { type: "sync", relay, phase: source });
      const delayMs = !answer.ok && answer.code === "busy" ? busyRetriesMs[attempt] : undefined;
      if (delayMs !== undefined && !this.#isClosed) await pause(this.#parts.clock, delayMs, this.#closing.signal);
      if (delayMs === undefined || this.#isClosed) return outcomeOf(answer);
    }
  }
}

/** Intake's answer in the core's words. */
export function outcomeOf(answer: IntakeAnswer): Outcome {
  if (!answer.ok) return { type: "refused", code: answer.code };
  return { type: answer.outcome };
}

/** Resolves after the time, or at once when the signal aborts. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((go) => {
    const end = (): void => {
      signal.removeEventListener("abort", end);
      cancel();
      go();
    };
    const cancel = clock.after(delayMs, end);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}
