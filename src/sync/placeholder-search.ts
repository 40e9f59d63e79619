// Git data that was pushed before its event (purgatory.md "Placeholder"): the event is asked for by id at the
// repository's relays and the bootstrap relays, at once and again now and then while the data is kept.

import type { Clock } from "../base/clock.js";
import type { EventId } from "../nostr/ids.js";

export interface Placeholder {
  readonly id: EventId;
  /** `30617:<owner>:<identifier>` */
  readonly repository: string;
}

const askAgainMs = 10 * 60_000;

export class PlaceholderSearch {
  readonly #askedMs = new Map<string, number>();

  constructor(
    private readonly clock: Clock,
    private readonly want: (ids: readonly EventId[], coordinate: string) => void,
  ) {}

  /** Given all placeholders there are. */
  look(held: readonly Placeholder[]): void {
    const nowMs = this.clock.monotonicMs();
    const due = new Map<string, EventId[]>();
    const known = new Set<string>();
    for (const { id, repository } of held) {
      const key = `${id} ${repository}`;
      known.add(key);
      const askedMs = this.#askedMs.get(key);
      if (askedMs !== undefined && nowMs - askedMs < askAgainMs) continue;
      this.#askedMs.set(key, nowMs);
      due.set(repository, [...(due.get(repository) ?? []), id]);
    }
    for (const key of this.#askedMs.keys()) if (!known.has(key)) this.#askedMs.delete(key);
    for (const [repository, ids] of due) this.want(ids, repository);
  }
}
