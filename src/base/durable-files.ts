// Files that are on disk when the call returns: written beside, synced, renamed into place, directory synced. And one way that
// leaves syncing to the caller.

import { randomBytes } from "node:crypto";
import { link, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** A file or a directory. */
export const syncPath = async (path: string): Promise<void> => void (await syncedBytes(path));

/** And how large the file is. */
export async function syncedBytes(path: string): Promise<number> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
    return (await handle.stat()).size;
  } finally {
    await handle.close();
  }
}

export async function writeSynced(path: string, text: string): Promise<void> {
  const handle = await open(path, "w", 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export async function replaceFile(path: string, text: string): Promise<void> {
  const beside = join(dirname(path), `tmp_${basename(path)}_${randomBytes(6).toString("hex")}`);
  try {
    await writeSynced(beside, text);
    await rename(beside, path);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
  await syncPath(dirname(path));
}

/**
 * Written into `<path>.lock`, which is renamed; folders that are missing are made. Not synced. False: something is in the way, and
 * stays as it is; or the disk would not take it.
 */
export async function replaceUnderLock(path: string, text: string): Promise<boolean> {
  const lock = `${path}.lock`;
  const write = async (): Promise<void> => {
    const handle = await open(lock, "wx", 0o600);
    try {
      await handle.writeFile(text);
    } catch (error) {
      await rm(lock, { force: true });
      throw error;
    } finally {
      await handle.close();
    }
  };
  try {
    await write().catch(async (error: unknown) => {
      if (!isMissing(error)) throw error;
      await mkdir(dirname(path), { recursive: true });
      await write();
    });
  } catch {
    return false;
  }
  try {
    await rename(lock, path);
    return true;
  } catch {
    await rm(lock, { force: true });
    return false;
  }
}

/** Makes a directory and its parents, and their names durable. */
export async function makeDirectory(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  for (let at = path; ; at = dirname(at)) {
    await syncPath(dirname(at));
    if (at === first) return;
  }
}

/** Without a descriptor to be had a directory cannot even be read; that passes. */
export const removeAll = (path: string): Promise<void> =>
  rm(path, { recursive: true, force: true, maxRetries: 12, retryDelay: 100 });

export const isMissing = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");

/** Undefined instead of an error when there is no such thing. */
export async function ifPresent<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** A second name for a file. What hinders that and is nobody's fault is an answer. */
export async function tryLink(from: string, to: string): Promise<"linked" | "missing" | "exists"> {
  try {
    await link(from, to);
    return "linked";
  } catch (error) {
    if (isMissing(error)) return "missing";
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return "exists";
    throw error;
  }
}

/** Every file and directory below, and the directory itself. */
export async function syncBelow(folder: string): Promise<void> {
  for (const entry of (await ifPresent(readdir(folder, { withFileTypes: true }))) ?? []) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await syncBelow(path);
    else if (entry.isFile()) await ifPresent(syncPath(path));
  }
  await ifPresent(syncPath(folder));
}
