// Files that are on disk when the call returns: written beside, synced, renamed into place, directory synced.

import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** A file or a directory. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
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

/** Every file and directory below, and the directory itself. */
export async function syncBelow(folder: string): Promise<void> {
  for (const entry of (await ifPresent(readdir(folder, { withFileTypes: true }))) ?? []) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await syncBelow(path);
    else if (entry.isFile()) await ifPresent(syncPath(path));
  }
  await ifPresent(syncPath(folder));
}
