// Data pushed for events that are not known yet (purgatory.md, Placeholder). Kept in an object directory of its own below
// `unclaimed/<event id>`, so that it counts as here for nothing else, housekeeping does not see it, and it goes in one
// piece. What goes in is what a pushed tip reaches, what comes out is what the event's commit reaches: bytes that
// nothing names are never kept and never claimed (threats.md row 45).

import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { ifPresent, makeDirectory, removeAll, replaceFile } from "../base/durable-files.js";
import type { EventId, Oid } from "../nostr/ids.js";
import { copyObjects, reachedBy } from "./copy-objects.js";
import { missingObjects, type ObjectPlace } from "./objects.js";
import { alternatePath, type QuarantineDirectory } from "./quarantine.js";
import { unclaimedFolder } from "./repository-files.js";
import type { UnclaimedData } from "./types.js";

export const unclaimedObjects = (repositoryDirectory: string, eventId: EventId): string =>
  join(repositoryDirectory, unclaimedFolder, eventId);

async function packBytesIn(folder: string): Promise<number> {
  let bytes = 0;
  for (const name of (await ifPresent(readdir(join(folder, "pack")))) ?? []) {
    bytes += (await ifPresent(stat(join(folder, "pack", name))))?.size ?? 0;
  }
  return bytes;
}

/** `here`: what the refs name. */
export async function keepUnclaimed(
  quarantine: QuarantineDirectory,
  eventId: EventId,
  tip: Oid,
  here: readonly Oid[],
): Promise<UnclaimedData> {
  const directory = quarantine.repositoryDirectory;
  const folder = unclaimedObjects(directory, eventId);
  const reached = await reachedBy(quarantine, [tip], here);
  try {
    await makeDirectory(join(folder, "pack"));
    await reached.linkInto(join(folder, "pack"));
  } finally {
    await reached.drop();
  }
  const before = await readUnclaimed(directory, eventId);
  const sinceMs = before?.sinceMs ?? quarantine.clock.nowMs();
  await replaceFile(join(folder, "tip"), JSON.stringify({ tip, sinceMs }));
  return { eventId, tip, sinceMs, bytes: await packBytesIn(folder) };
}

export async function readUnclaimed(repositoryDirectory: string, eventId: EventId): Promise<UnclaimedData | undefined> {
  const folder = unclaimedObjects(repositoryDirectory, eventId);
  const text = await ifPresent(readFile(join(folder, "tip"), "utf8"));
  if (text === undefined) return undefined;
  const { tip, sinceMs } = JSON.parse(text) as { tip: Oid; sinceMs: number };
  return { eventId, tip, sinceMs, bytes: await packBytesIn(folder) };
}

/**
 * The event came: what its commit reaches joins the repository, through an empty quarantine; all other data goes.
 * `here`: what the refs name.
 */
export async function claimUnclaimed(
  into: QuarantineDirectory,
  eventId: EventId,
  tip: Oid,
  here: readonly Oid[],
): Promise<boolean> {
  const { git, repositoryDirectory: directory } = into;
  const folder = unclaimedObjects(directory, eventId);
  if ((await ifPresent(readdir(join(folder, "pack")))) === undefined) return false;
  const together: ObjectPlace = {
    git,
    directory,
    env: { GIT_ALTERNATE_OBJECT_DIRECTORIES: alternatePath(folder) },
  };
  const isHere = (await missingObjects(together, [tip])).size === 0;
  if (isHere) {
    await copyObjects(together, into, [tip], here);
    await into.migrate();
  }
  await removeAll(folder);
  return isHere;
}

export async function dropUnclaimed(repositoryDirectory: string, eventId: EventId): Promise<void> {
  await removeAll(unclaimedObjects(repositoryDirectory, eventId));
}
