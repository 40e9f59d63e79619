// Large files as files of a repository's directory: `lfs/<first two digits>/<oid>`, and `lfs/unclaimed/<oid>` for what nothing
// names yet. A file is there completely or not at all, and is what its name says: it is hashed while it comes, written beside,
// synced and renamed. Knows no rows and no rules.

import { createHash, randomBytes } from "node:crypto";
import { open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ifPresent, makeDirectory, syncPath, tryLink } from "../base/durable-files.js";
import { isLargeFileId, type LargeFileId } from "../catalogue/large-files.js";
import { largeFilesFolder, unclaimedFolder } from "../git/repository-files.js";

/** What came is not the file it was said to be. */
export class WrongContentError extends Error {
  override readonly name = "WrongContentError";
}

export type NextChunk = () => Promise<Buffer | undefined>;

export const largeFilePath = (directory: string, oid: LargeFileId): string =>
  join(directory, largeFilesFolder, oid.slice(0, 2), oid);

export const unclaimedPath = (directory: string, oid: LargeFileId): string =>
  join(directory, largeFilesFolder, unclaimedFolder, oid);

/**
 * Never holds more than a chunk. `place` is called with the path of the whole and checked file. Throws WrongContentError, or
 * whatever `next` or `place` throws; then nothing is left.
 */
export async function receiveFile(
  directory: string,
  { oid, size }: { readonly oid: LargeFileId; readonly size: number },
  next: NextChunk,
  place: (beside: string) => Promise<void>,
): Promise<void> {
  const folder = join(directory, largeFilesFolder);
  const beside = join(folder, `tmp_${randomBytes(8).toString("hex")}`);
  await makeDirectory(folder);
  try {
    const handle = await open(beside, "wx", 0o600);
    try {
      const hash = createHash("sha256");
      let bytes = 0;
      for (let chunk = await next(); chunk; chunk = await next()) {
        bytes += chunk.length;
        if (bytes > size) throw new WrongContentError(`the file has more than the ${size} bytes that were announced`);
        hash.update(chunk);
        await handle.writeFile(chunk);
      }
      if (bytes !== size) throw new WrongContentError(`the file has ${bytes} bytes, ${size} were announced`);
      if (hash.digest("hex") !== oid) throw new WrongContentError("the content does not have the hash that names it");
      await handle.sync();
    } finally {
      await handle.close();
    }
    await place(beside);
  } finally {
    await rm(beside, { force: true });
  }
}

/** False: it is not there. */
export async function moveFile(from: string, to: string): Promise<boolean> {
  await makeDirectory(dirname(to));
  const isMoved = (await ifPresent(rename(from, to).then(() => true))) ?? false;
  if (!isMoved) return (await sizeOfFile(to)) !== undefined;
  await syncPath(dirname(to));
  return true;
}

/** Content never changes, so a link is a copy. False: it is not there. */
export async function linkFile(from: string, to: string): Promise<boolean> {
  await makeDirectory(dirname(to));
  if ((await tryLink(from, to)) === "missing") return false;
  await syncPath(dirname(to));
  return true;
}

export const removeFile = (path: string): Promise<void> => rm(path, { force: true });

export const sizeOfFile = async (path: string): Promise<number | undefined> => (await ifPresent(stat(path)))?.size;

/** Whether its bytes still are what its name says. */
export async function isWhole(path: string, oid: LargeFileId): Promise<boolean> {
  const handle = await ifPresent(open(path, "r"));
  if (!handle) return false;
  try {
    const hash = createHash("sha256");
    for await (const chunk of handle.createReadStream({ autoClose: false, highWaterMark: 2 ** 18 })) hash.update(chunk);
    return hash.digest("hex") === oid;
  } finally {
    await handle.close();
  }
}

/** Those that are there for good. */
export async function* filesIn(directory: string): AsyncGenerator<LargeFileId> {
  const root = join(directory, largeFilesFolder);
  for (const folder of ((await ifPresent(readdir(root))) ?? []).filter((name) => /^[0-9a-f]{2}$/.test(name))) {
    for (const name of (await ifPresent(readdir(join(root, folder)))) ?? []) if (isLargeFileId(name)) yield name;
  }
}

export const unclaimedIn = async (directory: string): Promise<LargeFileId[]> =>
  ((await ifPresent(readdir(join(directory, largeFilesFolder, unclaimedFolder)))) ?? []).filter(isLargeFileId);
