// Writes refs that events speak of: promised in the journal first, withheld from clients until the events are stored.

import type { RepositoryName } from "../catalogue/repositories.js";
import type { GitRepository } from "../git/repository.js";
import type { RefUpdate } from "../git/repository-refs.js";
import type { RefName } from "../nostr/ids.js";
import type { Store } from "../store/port.js";
import type { Journal } from "./journal.js";
import type { PromiseKeeper } from "./promise-keeper.js";

export interface RefWriterParts {
  readonly store: Store;
  readonly journal: Journal;
  readonly keeper: PromiseKeeper;
  readonly problem: (name: RepositoryName, what: string) => void;
}

export class RefWriter {
  constructor(private readonly parts: RefWriterParts) {}

  /** Under the repository's lock. False: it could not be done; nothing that speaks of it may be stored. */
  async write(repository: GitRepository, updates: readonly RefUpdate[], head?: RefName): Promise<boolean> {
    const { store, journal, keeper, problem } = this.parts;
    const { address } = repository;
    if (updates.length > 0) {
      const { owner, identifier, area } = address;
      const promised = updates.map(({ ref, to }) => ({ ref, to: to ?? null }));
      const row = { owner, identifier, area, updates: promised, head: head ?? null };
      const promise = await store.transact(async (tx) => journal.promise(tx, row));
      // Also when it throws: whatever was written is synced, and the promise must not outlive newer ones.
      const result = await repository
        .updateRefs(updates, { withhold: true })
        .finally(() => keeper.add(address, promise));
      if (!result.ok) {
        problem({ owner, identifier }, `its refs could not be written: ${result.reason}`);
        return false;
      }
    }
    if (head && (await repository.refs()).head !== head) await repository.setHead(head, { withhold: true });
    return true;
  }
}
