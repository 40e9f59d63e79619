// The clocks of states of which a push brought only a part (git-http.md, "Push" 3, partial state): each runs out once,
// its grace after the first such push; later pushes do not renew it. Its rows (catalogue/waiting.ts) are durable, so a
// restart goes on, and so does whoever leads next: only the machine that leads has timers.

import { type Clock, unixSeconds } from "../base/clock.js";
import { type RepositoryName, repositoryKey } from "../catalogue/repositories.js";
import { movePartial, type PartialPush, partialPush, partialPushes, waitingEntry } from "../catalogue/waiting.js";
import type { EventId } from "../nostr/event.js";
import type { LedBy, Store } from "../store/port.js";

interface PartialClockParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly graceSeconds: () => number;
  readonly isOver: (name: RepositoryName, ledBy: LedBy) => Promise<unknown>;
  readonly failed: (error: unknown) => void;
}

export class PartialClock {
  readonly #timers = new Map<string, () => void>();
  #releasing: Promise<unknown> = Promise.resolve();
  /** As whose work its clocks run; undefined: they do not. */
  #ledBy: LedBy | undefined;

  constructor(private readonly parts: PartialClockParts) {}

  async open(ledBy: LedBy = {}): Promise<void> {
    this.#ledBy = ledBy;
    for (const push of await partialPushes(this.parts.store)) {
      this.#start(push, push.state, await this.#notAhead(push));
    }
  }

  /** When the push was; now, where the wall clock was put back since: nobody waits for the time it has lost. */
  async #notAhead(push: PartialPush): Promise<number> {
    const { store, clock } = this.parts;
    const since = Math.min(push.since, unixSeconds(clock));
    if (since < push.since) await store.transact(async (tx) => movePartial(tx, push, since - push.since), this.#ledBy);
    return since;
  }

  /** After a push under a state, here or on another machine: if it still waits, its clock runs. */
  async watch(name: RepositoryName, state: EventId): Promise<void> {
    const { store } = this.parts;
    const push = await partialPush(store, name, state);
    if (push && (await waitingEntry(store, state))) this.#start(name, state, push.since);
  }

  #start(name: RepositoryName, state: EventId, since: number): void {
    const { clock, graceSeconds, isOver, failed } = this.parts;
    const key = `${repositoryKey(name)}:${state}`;
    const ledBy = this.#ledBy;
    if (!ledBy || this.#timers.has(key)) return;
    // The wall clock may be wrong now and right again soon: it is asked anew after one grace at the latest. Seconds are
    // whole: the next one begins after it.
    const graceMs = graceSeconds() * 1000;
    const delayMs = Math.min(graceMs, Math.max(0, since * 1000 + graceMs - clock.nowMs())) + 1_000;
    const cancel = clock.after(delayMs, () => {
      this.#timers.delete(key);
      this.#releasing = this.#releasing
        .then(() => isOver(name, ledBy))
        .then(() => this.#goOn(name, state))
        .catch(failed);
    });
    this.#timers.set(key, cancel);
  }

  /** By a wall clock that went back meanwhile the grace is not over yet. */
  async #goOn(name: RepositoryName, state: EventId): Promise<void> {
    const { store, clock, graceSeconds } = this.parts;
    const push = await partialPush(store, name, state);
    if (!push || push.since + graceSeconds() <= unixSeconds(clock)) return;
    await this.#notAhead(push);
    await this.watch(name, state);
  }

  async close(): Promise<void> {
    this.#ledBy = undefined;
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
    await this.#releasing;
  }
}
