// Sync and the hunt follow what waits and what is hosted. The bell rings for them after every change, once the change is
// stored and git has followed.

import type { Change } from "../admission/verdict.js";
import type { RepositoryName } from "../catalogue/repositories.js";
import type { EventId, NostrEvent } from "../nostr/event.js";

export interface AwaitedEvent {
  readonly id: EventId;
  /** As `repositoryAddress` writes it: where the data was pushed to. */
  readonly repository: string;
}

export interface Notice {
  /** What waits around these repositories, or under these ids, may have changed. */
  readonly names: readonly RepositoryName[];
  readonly ids: readonly EventId[];
  /** The rows that were written. */
  readonly changes: readonly Change[];
  /** Git data for these events was kept aside: the events themselves are not here. */
  readonly awaited: readonly AwaitedEvent[];
  /** A stored announcement became hosted, or is hosted no more, without being stored anew. */
  readonly reviewed?: { readonly event: NostrEvent; readonly hosted: boolean };
}

export class Bell {
  readonly #listeners = new Set<(notice: Notice) => void>();

  /** Call the answer to stop listening. */
  listen(listener: (notice: Notice) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  ring(notice: Partial<Notice>): void {
    for (const listener of this.#listeners) listener({ names: [], ids: [], changes: [], awaited: [], ...notice });
  }
}
