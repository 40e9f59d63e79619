// A bare repository as files: how one is made, what its config must say, what a crash leaves behind in it and how that
// is removed. Starts no process. Nothing here judges who may have a repository.

import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rename, rmdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import {
  ifPresent,
  isMissing,
  makeDirectory,
  removeAll,
  replaceFile,
  syncPath,
  writeSynced,
} from "../base/durable-files.js";

export const unbornBranch = "refs/heads/master";
export const identifierFile = "holdfast-identifier";
export const unclaimedFolder = "unclaimed";
export const quarantinePrefix = "tmp_quarantine-";
/** Begun and not finished, or given up: beside repositories, never mistaken for one. */
export const leftoverPrefix = ".holdfast-";

/** Ours, to the byte: a repository's config could run programs for us (threats.md row 8). */
export const repositoryConfig = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n";

/** Makes it beside, then renames: it is there completely or not at all. False when it was there already. */
export async function createRepositoryFiles(directory: string, identifier: string): Promise<boolean> {
  const parent = dirname(directory);
  await makeDirectory(parent);
  const present = await ifPresent(readFile(join(directory, "HEAD"), "utf8"));
  if (present !== undefined) {
    const recorded = await ifPresent(readFile(join(directory, identifierFile), "utf8"));
    if (recorded !== undefined && recorded !== identifier) {
      throw new Error("the directory belongs to another identifier: does the file system fold case?");
    }
    return false;
  }
  const beside = join(parent, `${leftoverPrefix}new-${randomBytes(6).toString("hex")}`);
  try {
    await writeRepositoryFiles(beside, identifier);
    await rename(beside, directory);
  } catch (error) {
    await removeAll(beside);
    if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw error;
    // Somebody else made it meanwhile: theirs is as good.
    if ((await ifPresent(readFile(join(directory, "HEAD")))) !== undefined) return false;
    // Damage took HEAD away and left the rest. Nothing that is there is given up for it.
    await writeRepositoryFiles(directory, identifier);
  }
  await syncPath(parent);
  return true;
}

/** HEAD comes last: without it git does not take the directory for a repository. */
async function writeRepositoryFiles(directory: string, identifier: string): Promise<void> {
  for (const folder of ["objects/info", "objects/pack", "refs/heads", "refs/tags"]) {
    await mkdir(join(directory, folder), { recursive: true });
  }
  await writeSynced(join(directory, "config"), repositoryConfig);
  await writeSynced(join(directory, identifierFile), identifier);
  await writeSynced(join(directory, "HEAD"), `ref: ${unbornBranch}\n`);
  for (const folder of ["objects", "refs", "."]) await syncPath(join(directory, folder));
}

/** Out of the way first: from then on nobody can open it, however long removing takes. */
export async function removeRepositoryFiles(directory: string): Promise<void> {
  const parent = dirname(directory);
  const beside = join(parent, `${leftoverPrefix}old-${randomBytes(6).toString("hex")}`);
  try {
    await rename(directory, beside);
  } catch (error) {
    if (isMissing(error)) return;
    throw error;
  }
  await syncPath(parent);
  await removeAll(beside);
}

/** Keys cost nothing: an empty directory for each that ever announced something would pile up for ever. */
export async function removeEmptyFolder(folder: string): Promise<void> {
  await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
    // Another repository of the same owner is there, or just being made.
    if (!["ENOTEMPTY", "EEXIST", "ENOENT"].includes(error.code ?? "")) throw error;
  });
}

/** Removes what an earlier life of the server left. Only when no process of ours works there. */
export async function sweepRepositoryFiles(directory: string): Promise<void> {
  if ((await ifPresent(stat(join(directory, "HEAD")))) === undefined) return;
  const config = await ifPresent(readFile(join(directory, "config"), "utf8"));
  if (config !== repositoryConfig) await replaceFile(join(directory, "config"), repositoryConfig);
  await removeWhere(directory, (name) => name.startsWith("tmp_"));
  await removeWhere(join(directory, "objects"), (name) => name.startsWith("tmp_"));
  await sweepRefLocks(directory);
  await sweepPacks(directory);
  await sweepUnclaimed(join(directory, unclaimedFolder));
}

/** What a killed update-ref or pack-refs left: with it there every later one fails. Under the ref lock only. */
export async function sweepRefLocks(directory: string): Promise<void> {
  await removeWhere(directory, (name) => name.endsWith(".lock") || name === "packed-refs.new");
  await removeLocksBelow(join(directory, "refs"));
}

/** What a repack that was ended leaves. A pack without its .idx is none. Only when nobody moves packs into place there. */
export async function sweepPacks(directory: string): Promise<void> {
  const folder = join(directory, "objects/pack");
  const present = new Set((await ifPresent(readdir(folder))) ?? []);
  const isOrphan = (name: string): boolean => {
    const pack = /^(pack-[0-9a-f]+)\.(?!keep)/.exec(name)?.[1];
    return pack !== undefined && !present.has(`${pack}.idx`);
  };
  await removeWhere(folder, (name) => /^(?:tmp_|\.tmp-)|\.lock$/.test(name) || isOrphan(name));
  await removeWhere(join(directory, "objects/info"), (name) => name.endsWith(".lock"));
}

/** Data is unclaimed from the moment its tip is written; what is there without one was never acknowledged. */
async function sweepUnclaimed(folder: string): Promise<void> {
  for (const name of (await ifPresent(readdir(folder))) ?? []) {
    const names = (await ifPresent(readdir(join(folder, name)))) ?? [];
    if (!names.includes("tip")) await removeAll(join(folder, name));
    else await removeWhere(join(folder, name), (file) => file.startsWith("tmp_"));
  }
}

async function removeWhere(folder: string, isLeftover: (name: string) => boolean): Promise<void> {
  for (const name of (await ifPresent(readdir(folder))) ?? []) {
    if (isLeftover(name)) await removeAll(join(folder, name));
  }
}

async function removeLocksBelow(folder: string): Promise<void> {
  for (const entry of (await ifPresent(readdir(folder, { withFileTypes: true }))) ?? []) {
    const path = join(folder, entry.name);
    // A ref name never ends in .lock, so this is never a ref.
    if (entry.name.endsWith(".lock")) await removeAll(path);
    else if (entry.isDirectory()) await removeLocksBelow(path);
  }
}

export const isRepositoryDirectory = (path: string): boolean =>
  basename(path).endsWith(".git") && !basename(path).startsWith(leftoverPrefix);

/** Bytes of packs and loose objects, unclaimed ones included. */
export async function bytesBelow(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of (await ifPresent(readdir(folder, { withFileTypes: true }))) ?? []) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) bytes += await bytesBelow(path);
    else if (entry.isFile()) bytes += (await ifPresent(stat(path)))?.size ?? 0;
  }
  return bytes;
}
