// After a crash or a power cut: ref values that were promised are written again, oldest promise first.

import type { RepositoryStore } from "../git/types.js";
import { isOid } from "../nostr/ids.js";
import type { Journal, PromisedRefs } from "./journal.js";
import { diskAddress } from "./repository-address.js";

export async function replayPromises(
  left: readonly (PromisedRefs & { readonly key: string })[],
  repositories: RepositoryStore,
  journal: Journal,
  /** False: git could not work with that repository; its promise stands until the next start. */
  attempt: (work: () => Promise<void>) => Promise<boolean>,
): Promise<void> {
  const kept: string[] = [];
  for (const promised of left) {
    const address = diskAddress(promised, promised.area);
    if (await repositories.exists(address)) {
      const repository = repositories.open(address);
      const keep = async (): Promise<void> => {
        const wanted = promised.updates.flatMap(({ to }) => (isOid(to) ? [to] : []));
        // Objects are synced before a promise is made; if some are gone all the same, the hunt brings them back.
        const missing = await repository.missingObjects(wanted);
        const updates = promised.updates
          .filter(({ to }) => to === null || !missing.has(to))
          .map(({ ref, to }) => ({ ref, to: to ?? undefined }));
        await repository.updateRefs(updates);
        if (promised.head) await repository.setHead(promised.head);
        await repository.syncRefs();
      };
      if (!(await attempt(() => repositories.withLocks([address], keep)))) continue;
    }
    kept.push(promised.key);
  }
  await journal.kept(kept);
}
