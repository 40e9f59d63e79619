// The clocks of states of which a push brought only a part (git-http.md, "Push" 3, partial state): each runs out once,
// its grace after the first such push; later pushes do not renew it. Durable in the journal, so a restart goes on.

import { type RepositoryName, repositoryKey } from "../admission/names.js";
import { waitingEntry } from "../admission/waiting.js";
import type { Clock } from "../base/clock.js";
import type { EventId } from "../nostr/ids.js";
import type { Store } from "../store/port.js";
import { partialPush, partialPushes } from "./journal.js";

export interface PartialClockParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly graceSeconds: () => number;
  readonly isOver: (name: RepositoryName) => Promise<unknown>;
  readonly failed: (error: unknown) => void;
}

export class PartialClock {
  readonly #timers = new Map<string, () => void>();
  #settling: Promise<unknown> = Promise.resolve();

  constructor(private readonly parts: PartialClockParts) {}

  async open(): Promise<void> {
    for (const { owner, identifier, state, since } of await partialPushes(this.parts.store)) {
      this.#start({ owner, identifier }, state, since);
    }
  }

  /** After a push under a state: if it still waits, its clock runs. */
  async watch(name: RepositoryName, state: EventId): Promise<void> {
    const { store } = this.parts;
    const push = await partialPush(store, name, state);
    if (push && (await waitingEntry(store, state))) this.#start(name, state, push.since);
  }

  #start(name: RepositoryName, state: EventId, since: number): void {
    const { clock, graceSeconds, isOver, failed } = this.parts;
    const key = `${repositoryKey(name)}:${state}`;
    if (this.#timers.has(key)) return;
    // Seconds are whole: the next one begins after it.
    const delayMs = Math.max(0, (since + graceSeconds()) * 1000 - clock.nowMs()) + 1_000;
    const cancel = clock.after(delayMs, () => {
      this.#timers.delete(key);
      this.#settling = this.#settling.then(() => isOver(name)).catch(failed);
    });
    this.#timers.set(key, cancel);
  }

  async close(): Promise<void> {
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
    await this.#settling;
  }
}
