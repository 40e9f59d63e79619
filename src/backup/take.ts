// Writes a snapshot (operator/snapshot.ts) into a folder of backups:
//   1. room for it?   2. packs an earlier backup has are linked, the rest is copied
//   3. everything is read back and checked   4. the manifest   5. the folder gets its name
// Whatever stops it before 5 leaves no folder that looks like a backup. Each backup is a folder named after its time; what
// was begun and not finished is hidden and goes at the next backup.

import { readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ifPresent, makeDirectory, syncPath, writeSynced } from "../base/durable-files.js";
import { type Checking, checkContents, checkFiles } from "./check.js";
import {
  BackupRefusal,
  bytesIn,
  checksumOf,
  copyWithChecksum,
  eachFile,
  type FileEntry,
  filesBelow,
  formatVersion,
  freeBytesOf,
  isImmutable,
  type Manifest,
  makeRepositoryFolders,
  manifestFile,
  readManifest,
  serverKeyPath,
  syncFoldersOf,
  tryLink,
} from "./files.js";

export interface TakeOptions extends Checking {
  readonly collection: string;
  readonly snapshot: { readonly relay: string; readonly git: string };
  /** The server's key file; undefined leaves it out. */
  readonly keyFile: string | undefined;
  readonly program: string;
  readonly domain: string;
  readonly nowMs: number;
}

export interface Taken {
  readonly folder: string;
  readonly manifest: Manifest;
  readonly bytes: number;
  /** Of these so many were not written again, because an earlier backup has them. */
  readonly sharedBytes: number;
}

interface Source extends Pick<FileEntry, "path" | "bytes"> {
  readonly from: string;
  /** The same file in an earlier backup. */
  readonly earlier: { readonly from: string; readonly sha256: string } | undefined;
}

export async function takeBackup(options: TakeOptions): Promise<Taken> {
  const { collection, progress, signal } = options;
  await makeDirectory(collection);
  await removeIncomplete(collection);
  const sources = await sourcesOf(options);
  const newBytes = bytesIn(sources.filter(({ earlier }) => !earlier));
  const freeBytes = await freeBytesOf(collection);
  if (freeBytes < newBytes) {
    throw new BackupRefusal(
      `${collection} has ${Math.floor(freeBytes / 2 ** 20)} MiB free and the backup needs ${Math.ceil(newBytes / 2 ** 20)}: make room, or name another folder`,
    );
  }
  const { folder, draft } = await newBackup(collection, options.nowMs);
  try {
    const total = bytesIn(sources);
    const files: FileEntry[] = [];
    let sharedBytes = 0;
    let done = 0;
    await eachFile(sources, async (source) => {
      signal.throwIfAborted();
      const { sha256, isShared } = await bringOver(source, draft, signal);
      files.push({ path: source.path, bytes: source.bytes, sha256 });
      if (isShared) sharedBytes += source.bytes;
      done += source.bytes;
      progress(done, total, "copying", "bytes");
    });
    files.sort((a, b) => (a.path < b.path ? -1 : 1));
    const manifest = await checked(options, draft, files);
    await syncFoldersOf(draft, files);
    await writeSynced(join(draft, manifestFile), `${JSON.stringify(manifest, null, 1)}\n`);
    await syncPath(draft);
    await rename(draft, folder);
    await syncPath(collection);
    return { folder, manifest, bytes: total, sharedBytes };
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
}

async function sourcesOf({ collection, snapshot, keyFile }: TakeOptions): Promise<Source[]> {
  const newest = (await backupsIn(collection)).at(-1);
  const before = newest === undefined ? undefined : join(collection, newest);
  // An earlier backup that cannot be read is no reason not to take a new one.
  const known = before ? await readManifest(before).catch(() => undefined) : undefined;
  const earlier = new Map(
    (known?.files ?? []).filter(({ path }) => isImmutable(path)).map((file) => [file.path, file]),
  );
  const sources: Source[] = [];
  for (const [top, folder] of [["relay", snapshot.relay] as const, ["git", snapshot.git] as const]) {
    for (const { path: inside, bytes } of await filesBelow(folder)) {
      const path = `${top}/${inside}`;
      const same = earlier.get(path);
      const isSame = before !== undefined && same?.bytes === bytes;
      const shared = isSame ? { from: join(before, path), sha256: same.sha256 } : undefined;
      // LMDB's lock file belongs to a process, not to the data.
      if (!path.endsWith(".mdb-lock")) sources.push({ path, bytes, from: join(folder, inside), earlier: shared });
    }
  }
  const key = keyFile === undefined ? undefined : await ifPresent(stat(keyFile));
  if (key && keyFile !== undefined) {
    sources.push({ path: serverKeyPath, bytes: key.size, from: keyFile, earlier: undefined });
  }
  return sources;
}

async function bringOver(
  { path, from, earlier }: Source,
  draft: string,
  signal: AbortSignal,
): Promise<{ readonly sha256: string; readonly isShared: boolean }> {
  const to = join(draft, path);
  if (earlier && (await tryLink(earlier.from, to))) {
    if (await hasChecksum(to, earlier.sha256, signal)) return { sha256: earlier.sha256, isShared: true };
    // It rotted since (threats row 52): this backup must not inherit it.
    await rm(to);
  }
  return { sha256: await copyWithChecksum(from, to, 0o600, signal), isShared: false };
}

async function hasChecksum(path: string, sha256: string, signal: AbortSignal): Promise<boolean> {
  try {
    return (await checksumOf(path, signal)) === sha256;
  } catch (error) {
    signal.throwIfAborted();
    // A bad sector is a rotted file as well.
    if ((error as NodeJS.ErrnoException).code === "EIO") return false;
    throw error;
  }
}

async function checked(options: TakeOptions, draft: string, files: readonly FileEntry[]): Promise<Manifest> {
  const repositories = files
    .filter(({ path }) => path.startsWith("git/") && path.endsWith(".git/HEAD"))
    .map(({ path }) => dirname(path));
  for (const repository of repositories) await makeRepositoryFolders(join(draft, repository));
  const inside = repositories.map((path) => path.slice("git/".length));
  const { events, problems } = await checkContents(join(draft, "relay"), join(draft, "git"), inside, options);
  const manifest: Manifest = {
    format: formatVersion,
    program: options.program,
    domain: options.domain,
    takenAt: new Date(options.nowMs).toISOString(),
    events,
    repositories,
    files: [...files],
  };
  // Last, so that the bytes compared are those that stay.
  const all = [...problems, ...(await checkFiles(draft, manifest, options))];
  if (all.length > 0) throw new BackupRefusal(`the backup is not sound and was removed: ${all.join("; ")}`);
  return manifest;
}

const namePattern = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ(-\d+)?$/;
const incompletePrefix = ".incomplete-";

/** `2026-03-01T12-00-00Z`: sorts by time and may be a file name everywhere. */
const backupName = (nowMs: number): string => `${new Date(nowMs).toISOString().slice(0, 19).replaceAll(":", "-")}Z`;

const isComplete = async (folder: string): Promise<boolean> =>
  (await ifPresent(stat(join(folder, manifestFile)))) !== undefined;

/** Complete backups, oldest first. */
async function backupsIn(collection: string): Promise<string[]> {
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
async function newBackup(collection: string, nowMs: number): Promise<{ folder: string; draft: string }> {
  const taken = new Set((await ifPresent(readdir(collection))) ?? []);
  const base = backupName(nowMs);
  let name = base;
  for (let count = 2; taken.has(name); count++) name = `${base}-${count}`;
  return { folder: join(collection, name), draft: join(collection, `${incompletePrefix}${name}`) };
}

/** Only under the collection's lock: nobody is writing one of them. */
async function removeIncomplete(collection: string): Promise<void> {
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
