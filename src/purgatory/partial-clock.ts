// The clocks of states of which a push brought only a part (git-http.md, "Push" 3, partial state): each runs out once,
// its grace after the first such push; later pushes do not renew it. Durable in table "journal", so a restart goes on:
//   partial:<owner>:<identifier>:<state> → PartialPush: when the first push under a state that still waits came

import { type Clock, unixSeconds } from "../base/clock.js";
import { type RepositoryName, repositoryKey } from "../catalogue/repositories.js";
import { waitingEntry } from "../catalogue/waiting.js";
import type { EventId } from "../nostr/event.js";
import type { Store, TableReader, Transaction } from "../store/port.js";

interface PartialClockParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly graceSeconds: () => number;
  readonly isOver: (name: RepositoryName) => Promise<unknown>;
  readonly failed: (error: unknown) => void;
}

export class PartialClock {
  readonly #timers = new Map<string, () => void>();
  #releasing: Promise<unknown> = Promise.resolve();

  constructor(private readonly parts: PartialClockParts) {}

  async open(): Promise<void> {
    const { store, clock } = this.parts;
    for (const push of await partialPushes(store)) {
      // The wall clock was put back while nobody looked.
      const since = Math.min(push.since, unixSeconds(clock));
      if (since < push.since) await store.transact(async (tx) => movePartial(tx, push, since - push.since));
      this.#start(push, push.state, since);
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
      this.#releasing = this.#releasing
        .then(() => isOver(name))
        .then(() => this.#goOn(name, state))
        .catch(failed);
    });
    this.#timers.set(key, cancel);
  }

  /** By a wall clock that went back meanwhile the grace is not over yet. */
  async #goOn(name: RepositoryName, state: EventId): Promise<void> {
    const { store, clock, graceSeconds } = this.parts;
    const push = await partialPush(store, name, state);
    if (push && push.since + graceSeconds() > unixSeconds(clock)) await this.watch(name, state);
  }

  async close(): Promise<void> {
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
    await this.#releasing;
  }
}

interface PartialPush {
  readonly owner: RepositoryName["owner"];
  readonly identifier: string;
  readonly state: EventId;
  readonly since: number;
}

const partialPrefix = "partial:";

const partialKey = (name: RepositoryName, state: EventId): string => `${partialPrefix}${repositoryKey(name)}:${state}`;

/** The clock of a partial state starts with its first push and is not renewed by later ones. True: it starts now. */
export async function startPartial(
  tx: Transaction,
  name: RepositoryName,
  state: EventId,
  now: number,
): Promise<boolean> {
  const key = partialKey(name, state);
  if ((await tx.row("journal", key)) !== undefined) return false;
  const row: PartialPush = { owner: name.owner, identifier: name.identifier, state, since: now };
  tx.setRow("journal", key, row);
  return true;
}

/** For a clock that jumped. */
export const movePartial = (tx: Transaction, push: PartialPush, seconds: number): void =>
  tx.setRow("journal", partialKey(push, push.state), { ...push, since: push.since + seconds });

export const partialPush = (
  reader: TableReader,
  name: RepositoryName,
  state: EventId,
): Promise<PartialPush | undefined> => reader.row<PartialPush>("journal", partialKey(name, state));

export const endPartial = (tx: Transaction, name: RepositoryName, state: EventId): void =>
  tx.deleteRow("journal", partialKey(name, state));

export async function partialPushes(reader: TableReader): Promise<PartialPush[]> {
  const found: PartialPush[] = [];
  for await (const [, row] of reader.rows<PartialPush>("journal", { prefix: partialPrefix })) found.push(row);
  return found;
}
