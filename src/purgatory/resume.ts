// After a crash or a power cut: promised refs are written again, oldest promise first; repositories that should be on disk
// are made; releases that had begun are ended.

import {
  type CatalogueRow,
  catalogueRow,
  catalogueRows,
  type RepositoryName,
  repositoryKey,
} from "../catalogue/repositories.js";
import { awaitedUnderPrs, waitingHints, waitingKeys } from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import { nostrRefEventId } from "../git/decide-push.js";
import type { Repositories } from "../git/repositories.js";
import type { RefUpdate } from "../git/repository-refs.js";
import { GitError } from "../git/run.js";
import { type EventId, isOid } from "../nostr/ids.js";
import type { Store } from "../store/port.js";
import type { PurgatoryContext } from "./context.js";
import type { Contributors } from "./contributors.js";
import { type Journal, type PromisedRefs, takeBack } from "./journal.js";
import type { Placeholders } from "./placeholders.js";
import type { Releaser } from "./release.js";
import { isStillHere } from "./store-released.js";

export async function resume(
  parts: PurgatoryContext & {
    readonly journal: Journal;
    readonly placeholders: Placeholders;
    readonly releaser: Releaser;
    /** Set while GRASP-06 is on. */
    readonly contributors: Contributors | undefined;
    readonly claim: (id: EventId) => Promise<void>;
  },
): Promise<void> {
  const { store, repositories, journal, placeholders, releaser, contributors } = parts;
  await placeholders.open();
  // One repository that git cannot work with must not keep the server from starting.
  const unlessBroken = async (what: string, work: () => Promise<unknown>): Promise<boolean> => {
    try {
      await work();
      return true;
    } catch (error) {
      if (!(error instanceof GitError)) throw error;
      parts.observer.failed(what, error);
      return false;
    }
  };
  const promises = await journal.open();
  await replayPromises(promises, store, repositories, journal, (work) => unlessBroken("keeping a promise", work));
  // Of two promises the later may have been kept and forgotten before the earlier: what governs has the last word.
  const replayed = new Set(promises.filter(({ area }) => area === "main").map(repositoryKey));
  const unreleased: RepositoryName[] = [];
  for await (const row of catalogueRows(store)) {
    if (row.status === "waiting") await repositories.create(diskAddress(row));
    if (wantsNoDirectory(row)) await removeRepository(store, repositories, row);
    if (row.status === "waiting" || row.status === "served" || row.status === "archived") unreleased.push(row);
    await placeholders.dropUnknown(row);
  }
  for (const id of placeholders.ids) await unlessBroken("claiming", () => parts.claim(id));
  for (const name of unreleased) {
    const isWaitedFor = (await waitingHints(store, waitingKeys.repository(name), 1)).length > 0;
    if (!isWaitedFor && !replayed.has(repositoryKey(name))) continue;
    await unlessBroken("settling at start", () => releaser.release([name], "present"));
  }
  if (!contributors) return;
  await contributors.adopt();
  const awaited: RepositoryName[] = [];
  for await (const name of awaitedUnderPrs(store)) awaited.push(name);
  for (const name of awaited) await releaser.release([name], "present");
  await contributors.sweep();
}

async function replayPromises(
  left: readonly (PromisedRefs & { readonly key: string })[],
  store: Store,
  repositories: Repositories,
  journal: Journal,
  /** False: git could not work with that repository; its promise stands until the next start. */
  attempt: (work: () => Promise<void>) => Promise<boolean>,
): Promise<void> {
  const kept: string[] = [];
  const never: (typeof left)[number][] = [];
  for (const promised of left) {
    const address = diskAddress(promised, promised.area);
    if (await repositories.exists(address)) {
      const repository = repositories.open(address);
      const keep = async (): Promise<void> => {
        const wanted = promised.updates.flatMap(({ to }) => (isOid(to) ? [to] : []));
        const missing = await repository.missingObjects(wanted);
        // The packs of a push follow its promise, its refs follow the packs: nothing of it was written yet.
        if (promised.push && missing.size > 0) return void never.push(promised);
        // Of others the objects were synced before; if some are gone all the same, the hunt brings them back.
        const updates: RefUpdate[] = [];
        for (const { ref, to } of promised.updates) {
          const id = nostrRefEventId(ref);
          // Its event was deleted since: its ref does not come back.
          const isGone = to !== null && (missing.has(to) || (id && !(await isStillHere(store, id))));
          if (!isGone) updates.push({ ref, to: to ?? undefined });
        }
        await repository.updateRefs(updates);
        if (promised.head) await repository.setHead(promised.head);
        await repository.syncRefs();
      };
      if (!(await attempt(() => repositories.withLocks([address], keep)))) continue;
    }
    kept.push(promised.key);
  }
  await journal.kept(kept, async (tx) => {
    for (const promised of never) await takeBack(tx, promised, promised.push ?? {});
  });
}

/** Soft ones have no directory, except where one was served once (deleted, announced again): that data is kept. */
const wantsNoDirectory = (row: CatalogueRow | undefined): boolean =>
  row === undefined || (row.status === "soft" && row.governing === null);

/**
 * A repository's directory goes only while the catalogue wants none. Rows change in the store first and directories after
 * them: whoever announces it again in between must find it. False: the repository is wanted again, and stays.
 */
export function removeRepository(store: Store, repositories: Repositories, name: RepositoryName): Promise<boolean> {
  return repositories.delete(diskAddress(name), async () => wantsNoDirectory(await catalogueRow(store, name)));
}
