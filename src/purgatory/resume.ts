// After a crash or a power cut: git's own refs follow their rows; repositories that should be on disk are made; releases
// that had begun are ended.

import {
  type CatalogueRow,
  catalogueRow,
  catalogueRows,
  type RepositoryName,
  repositoryKey,
} from "../catalogue/repositories.js";
import { awaitedUnderPrs, waitingHints, waitingKeys } from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import { Overtaken } from "../git/change-refs.js";
import type { Repositories } from "../git/repositories.js";
import { GitError, ObjectsUnavailableError } from "../git/run.js";
import type { EventId } from "../nostr/event.js";
import { adoptRefs } from "./adopt-refs.js";
import type { PurgatoryContext } from "./context.js";
import type { Contributors } from "./contributors.js";
import type { Placeholders } from "./placeholders.js";
import type { Releaser } from "./release.js";

export async function resume(
  parts: PurgatoryContext & {
    readonly placeholders: Placeholders;
    readonly releaser: Releaser;
    /** Set while GRASP-06 is on. */
    readonly contributors: Contributors | undefined;
    readonly claim: (id: EventId) => Promise<void>;
  },
): Promise<void> {
  const { store, repositories, placeholders, releaser, contributors } = parts;
  await placeholders.open();
  await releaser.readUnfinished();
  // One repository that git cannot work with must not keep the server from starting.
  const unlessBroken = async (what: string, work: () => Promise<unknown>): Promise<boolean> => {
    try {
      await work();
      return true;
    } catch (error) {
      const passes =
        error instanceof GitError || error instanceof ObjectsUnavailableError || error instanceof Overtaken;
      if (!passes) throw error;
      parts.observer.failed(what, error);
      return false;
    }
  };
  const replayed = await adoptRefs(parts, (work) => unlessBroken("taking over refs", work));
  await repositories.alignAll((error) => parts.observer.refsBehind?.(error));
  const unreleased: RepositoryName[] = [];
  for await (const row of catalogueRows(store)) {
    if (row.status === "waiting") {
      await repositories.create(diskAddress(row));
      // The row says another format since a crash: the directory follows it.
      if (await repositories.remakeInFormat(diskAddress(row))) await placeholders.madeAnew(row);
    }
    if (wantsNoDirectory(row)) await removeRepository(repositories, row);
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
  for (const name of awaited) await unlessBroken("settling at start", () => releaser.release([name], "present"));
  await unlessBroken("looking at contributors' repositories", () => contributors.sweep());
}

/** Soft ones have no directory, except where one was served once (deleted, announced again): that data is kept. */
const wantsNoDirectory = (row: CatalogueRow | undefined): boolean =>
  row === undefined || (row.status === "soft" && row.governing === null);

/**
 * A repository's directory goes only while the catalogue wants none. Rows change in the store first and directories after
 * them: whoever announces it again in between must find it. False: the repository is wanted again, and stays.
 */
export function removeRepository(repositories: Repositories, name: RepositoryName): Promise<boolean> {
  return repositories.delete(diskAddress(name), async (reader) => wantsNoDirectory(await catalogueRow(reader, name)));
}
