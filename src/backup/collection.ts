// A folder of backups: each in a folder named after its time, complete ones only; what was begun and not finished is
// hidden and goes at the next backup.

import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { ifPresent } from "../base/durable-files.js";
import { BackupRefusal, manifestFile } from "./manifest.js";

const namePattern = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ(-\d+)?$/;
const incompletePrefix = ".incomplete-";

/** `2026-03-01T12-00-00Z`: sorts by time and may be a file name everywhere. */
export const backupName = (nowMs: number): string =>
  `${new Date(nowMs).toISOString().slice(0, 19).replaceAll(":", "-")}Z`;

const isComplete = async (folder: string): Promise<boolean> =>
  (await ifPresent(stat(join(folder, manifestFile)))) !== undefined;

/** Complete backups, oldest first. */
export async function backupsIn(collection: string): Promise<string[]> {
  const names = ((await ifPresent(readdir(collection))) ?? []).filter((name) => namePattern.test(name));
  const complete = await Promise.all(names.map((name) => isComplete(join(collection, name))));
  return names.filter((_, index) => complete[index]).sort(byTime);
}

/** `…Z-10` comes after `…Z-9`. */
const byTime = (a: string, b: string): number => a.localeCompare(b, "en", { numeric: true });

/** A backup itself, or the newest of a folder of them. */
export async function chosenBackup(path: string): Promise<string> {
  if (await isComplete(path)) return path;
  const newest = (await backupsIn(path)).at(-1);
  if (newest === undefined) throw new BackupRefusal(`there is no complete backup in ${path}`);
  return join(path, newest);
}

/** A name nobody has in the collection, and the hidden folder in which it is written. */
export async function newBackup(collection: string, nowMs: number): Promise<{ folder: string; draft: string }> {
  const taken = new Set((await ifPresent(readdir(collection))) ?? []);
  const base = backupName(nowMs);
  let name = base;
  for (let count = 2; taken.has(name); count++) name = `${base}-${count}`;
  return { folder: join(collection, name), draft: join(collection, `${incompletePrefix}${name}`) };
}

/** Only under the collection's lock: nobody is writing one of them. */
export async function removeIncomplete(collection: string): Promise<void> {
  for (const name of (await ifPresent(readdir(collection))) ?? []) {
    if (name.startsWith(incompletePrefix)) await rm(join(collection, name), { recursive: true, force: true });
  }
}

/** Removes all but the newest. */
export async function keepNewest(collection: string, count: number): Promise<string[]> {
  const old = (await backupsIn(collection)).slice(0, -count);
  for (const name of old) {
    // Without its manifest first: a removal that is cut short leaves nothing that looks complete.
    await rm(join(collection, name, manifestFile));
    await rm(join(collection, name), { recursive: true, force: true });
  }
  return old;
}
