// Whole repositories between a machine's directories and the pack store: a copy that gets all that rows name, for a backup or for
// a server that leaves its cluster; and the directories of a server that joins one, whose packs and large files go into the
// store with rows that name them.

import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.js";
import { ifPresent, replaceFile } from "../base/durable-files.js";
import { isLargeFileId, type LargeFileId, largeFiles } from "../catalogue/large-files.js";
import {
  addPacks,
  listedPacks,
  makeList,
  packList,
  type StoredPack,
  setUnclaimed,
  type UnclaimedPacks,
  unclaimedPacks,
} from "../catalogue/packs.js";
import { refsVersion } from "../catalogue/refs.js";
import { catalogueRow } from "../catalogue/repositories.js";
import { isEventId } from "../nostr/event.js";
import type { Oid } from "../nostr/nip34.js";
import type { PackStore } from "../packs/port.js";
import type { Store, TableReader } from "../store/port.js";
import type { RepositoryAddress } from "./address.js";
import { newId } from "./listed-repositories.js";
import { putPack } from "./pack-transfer.js";
import {
  formatIn,
  largeFilesFolder,
  packsIn,
  repositoryConfigs,
  repositoryDirectories,
  unclaimedFolder,
} from "./repository-files.js";
import type { Git } from "./run.js";
import { storedFileName } from "./shared-files.js";
import type { SharedPacks } from "./shared-packs.js";

export async function completeCopy(
  packs: SharedPacks,
  reader: TableReader,
  address: RepositoryAddress,
  directory: string,
): Promise<void> {
  const list = await packList(reader, address);
  if (!list) return;
  await writeFile(join(directory, "config"), repositoryConfigs[list.format]);
  for (const pack of await listedPacks(reader, address)) await packs.fetchInto(join(directory, "objects/pack"), pack);
  for (const { eventId, tip, sinceMs, packs: unclaimed } of await unclaimedPacks(reader, address)) {
    const folder = join(directory, unclaimedFolder, eventId);
    await mkdir(join(folder, "pack"), { recursive: true });
    for (const pack of unclaimed) await packs.fetchInto(join(folder, "pack"), pack);
    await replaceFile(join(folder, "tip"), JSON.stringify({ tip, sinceMs }));
  }
  for await (const [oid, { isHere }] of largeFiles(reader, address)) {
    const path = join(directory, largeFilesFolder, oid.slice(0, 2), oid);
    if (isHere && !(await ifPresent(readdir(join(path, "..")).then((names) => names.includes(oid))))) {
      await packs.files.fetch(oid, path);
    }
  }
}

interface ShareParts {
  readonly gitDataPath: string;
  readonly git: Git;
  readonly packs: PackStore;
  /** Whose rows speak of these directories; it gets the rows of the packs. */
  readonly store: Store;
  readonly clock: Clock;
}

/** For a server that joins a cluster, before anything is served. May be done again after it was interrupted. */
export async function shareDirectories(parts: ShareParts, progress: (done: number) => void): Promise<number> {
  let count = 0;
  for await (const { address } of repositoryDirectories(parts.gitDataPath, ["main", "prs"])) {
    // A directory that no row speaks of is not the server's.
    if (!address) continue;
    const isKnown = (await catalogueRow(parts.store, address)) || (await refsVersion(parts.store, address)) > 0;
    if (isKnown) await shareDirectory(parts, address);
    progress(++count);
  }
  return count;
}

async function shareDirectory(
  { gitDataPath, git, packs, store, clock }: ShareParts,
  address: RepositoryAddress,
): Promise<void> {
  const directory = address.directoryUnder(gitDataPath);
  const objects = join(directory, "objects");
  // Only packs are shared; what another program left loose becomes one.
  const isLoose = ((await ifPresent(readdir(objects))) ?? []).some((name) => /^[0-9a-f]{2}$/.test(name));
  if (isLoose) await git.mustRun(["repack", "-d", "-q"], { directory });
  const putAll = async (folder: string): Promise<StoredPack[]> => {
    const stored: StoredPack[] = [];
    for (const name of await packsIn(folder)) stored.push(await putPack(packs, address, folder, name, clock.nowMs()));
    return stored;
  };
  const listed = await putAll(join(objects, "pack"));
  const unclaimed: UnclaimedPacks[] = [];
  for (const eventId of (await ifPresent(readdir(join(directory, unclaimedFolder)))) ?? []) {
    const folder = join(directory, unclaimedFolder, eventId);
    const text = await ifPresent(readFile(join(folder, "tip"), "utf8"));
    if (!isEventId(eventId) || text === undefined) continue;
    const { tip, sinceMs } = JSON.parse(text) as { tip: Oid; sinceMs: number };
    unclaimed.push({ eventId, tip, sinceMs, packs: await putAll(join(folder, "pack")) });
  }
  for await (const [oid, path] of largeFilesBelow(join(directory, largeFilesFolder)))
    await packs.put(storedFileName(oid), path);
  const [made, format] = [newId(), formatIn(directory)];
  await store.transact(async (tx) => {
    await makeList(tx, address, made, format);
    const list = await packList(tx, address);
    if (list) addPacks(tx, list, listed);
    for (const row of unclaimed) setUnclaimed(tx, address, row);
  });
}

async function* largeFilesBelow(folder: string): AsyncGenerator<readonly [LargeFileId, string]> {
  for (const name of (await ifPresent(readdir(folder))) ?? []) {
    if (!/^[0-9a-f]{2}$/.test(name) && name !== unclaimedFolder) continue;
    for (const oid of await readdir(join(folder, name))) if (isLargeFileId(oid)) yield [oid, join(folder, name, oid)];
  }
}
