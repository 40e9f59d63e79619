// Puts a backup back into empty data directories: repositories first, the store's file last, so that a restore that is
// cut short leaves nothing a server would take for data. Its marker says that what lies there is its own and may go.

import { readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ifPresent, makeDirectory, syncPath } from "../base/durable-files.js";
import { counted } from "../base/text.js";
import { type Checking, checkContents } from "./check.js";
import {
  BackupRefusal,
  bytesIn,
  copyWithChecksum,
  eachFile,
  eventsPath,
  type FileEntry,
  freeBytesOf,
  type Manifest,
  makeRepositoryFolders,
  syncFoldersOf,
} from "./files.js";

export const restoringFile = "restoring";

export interface RestoreOptions extends Checking {
  readonly backup: string;
  readonly manifest: Manifest;
  readonly relayDataPath: string;
  readonly gitDataPath: string;
  /** Files in the relay data path that are no data: the lock of whoever restores. */
  readonly ignored: readonly string[];
}

export async function restoreBackup(options: RestoreOptions): Promise<void> {
  const { relayDataPath, gitDataPath } = options;
  await makeDirectory(relayDataPath);
  await makeDirectory(gitDataPath);
  await mustBeEmpty(options);
  await mustHaveRoom(options);
  await writeFile(join(relayDataPath, restoringFile), "");
  await syncPath(relayDataPath);
  try {
    await copyAll(options);
    const inside = options.manifest.repositories.map((path) => path.slice("git/".length));
    const { events, problems } = await checkContents(relayDataPath, gitDataPath, inside, options);
    const { events: expected } = options.manifest;
    const lacking = events === expected ? [] : [`${counted(events, "event", "events")} instead of ${expected}`];
    const all = [...problems, ...lacking];
    if (all.length > 0) throw new BackupRefusal(`the restored data is not sound and was removed: ${all.join("; ")}`);
  } catch (error) {
    await removeAll(options);
    throw error;
  }
  await rm(join(relayDataPath, restoringFile));
  await syncPath(relayDataPath);
}

async function contentOf(folder: string, ignored: readonly string[]): Promise<string[]> {
  return ((await ifPresent(readdir(folder))) ?? []).filter((name) => !ignored.includes(name));
}

async function mustBeEmpty(options: RestoreOptions): Promise<void> {
  const { relayDataPath, gitDataPath, ignored } = options;
  const names = await contentOf(relayDataPath, [...ignored, ...nestedIn(relayDataPath, gitDataPath)]);
  if (names.includes(restoringFile) && !names.some((name) => name.endsWith(".mdb"))) {
    await removeAll(options);
    return;
  }
  const folders = [
    ...(names.length > 0 ? [relayDataPath] : []),
    ...((await contentOf(gitDataPath, [])).length > 0 ? [gitDataPath] : []),
  ];
  if (folders.length === 0) return;
  throw new BackupRefusal(
    `${folders.join(" and ")} ${folders.length > 1 ? "are" : "is"} not empty: move what is there away, or restore to another place with --data-path`,
  );
}

/** The git folder may lie in the relay's. */
const nestedIn = (outer: string, inner: string): string[] =>
  inner.startsWith(`${outer}/`) ? [inner.slice(outer.length + 1).split("/")[0] ?? ""] : [];

async function mustHaveRoom({ manifest, relayDataPath, gitDataPath }: RestoreOptions): Promise<void> {
  const needed = new Map<number, { folder: string; bytes: number }>();
  for (const [folder, top] of [[relayDataPath, "relay/"] as const, [gitDataPath, "git/"] as const]) {
    const { dev } = await stat(folder);
    const disk = needed.get(dev) ?? { folder, bytes: 0 };
    disk.bytes += bytesIn(manifest.files.filter(({ path }) => path.startsWith(top)));
    needed.set(dev, disk);
  }
  for (const { folder, bytes } of needed.values()) {
    const free = await freeBytesOf(folder);
    if (free >= bytes) continue;
    throw new BackupRefusal(
      `${folder} has ${Math.floor(free / 2 ** 20)} MiB free and the backup needs ${Math.ceil(bytes / 2 ** 20)}`,
    );
  }
}

async function copyAll(options: RestoreOptions): Promise<void> {
  const { manifest, relayDataPath, gitDataPath, progress, signal } = options;
  const place = (path: string): string =>
    path.startsWith("git/")
      ? join(gitDataPath, path.slice("git/".length))
      : join(relayDataPath, path.slice("relay/".length));
  const total = bytesIn(manifest.files);
  let done = 0;
  await eachFile(manifest.files, async (file) => {
    signal.throwIfAborted();
    await copyChecked(options, file, file.path === eventsPath ? `${place(file.path)}.part` : place(file.path));
    done += file.bytes;
    progress(done, total, "restoring", "bytes");
  });
  for (const repository of manifest.repositories) await makeRepositoryFolders(place(repository));
  const inGit = manifest.files.filter(({ path }) => path.startsWith("git/"));
  await syncFoldersOf(
    gitDataPath,
    inGit.map(({ path }) => ({ path: path.slice("git/".length) })),
  );
  const events = place(eventsPath);
  await rename(`${events}.part`, events);
  await syncPath(relayDataPath);
}

async function copyChecked({ backup, signal }: RestoreOptions, file: FileEntry, to: string): Promise<void> {
  const from = join(backup, file.path);
  const found = await ifPresent(stat(from));
  if (!found?.isFile()) throw new BackupRefusal(`the backup is damaged: ${file.path} is missing`);
  const sha256 = await copyWithChecksum(from, to, 0o600, signal);
  if (sha256 !== file.sha256) throw new BackupRefusal(`the backup is damaged: ${file.path} does not have its checksum`);
}

async function removeAll({ relayDataPath, gitDataPath, ignored }: RestoreOptions): Promise<void> {
  const kept = [...ignored, ...nestedIn(relayDataPath, gitDataPath), restoringFile];
  for (const name of await contentOf(relayDataPath, kept)) {
    await rm(join(relayDataPath, name), { recursive: true, force: true });
  }
  for (const name of await contentOf(gitDataPath, [])) {
    await rm(join(gitDataPath, name), { recursive: true, force: true });
  }
  await rm(join(relayDataPath, restoringFile), { force: true });
}
