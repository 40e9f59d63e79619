// What a backup is made of. Its manifest (`manifest.json`) is written last, so that a folder without one is no backup; it
// is read from disks that may have rotted and from other machines, so it is checked before anything in it is believed.
// Files are listed, copied with their checksum in one reading, and linked when an earlier backup has the same.

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { link, open, readdir, readFile, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { makeDirectory, syncPath } from "../base/durable-files.js";

export const manifestFile = "manifest.json";
export const formatVersion = 1;

/** Below `relay/` or `git/`, and nowhere else: a path of a manifest decides where restore writes. */
const isInside = (path: string): boolean =>
  /^(relay|git)\//.test(path) &&
  !/[\0\\]/.test(path) &&
  path.split("/").every((part) => !["", ".", ".."].includes(part));
const insidePath = z.string().max(4_096).refine(isInside, "a path leaves the backup");

const schema = z.object({
  format: z.literal(formatVersion),
  program: z.string(),
  domain: z.string(),
  takenAt: z.string(),
  events: z.number().int().min(0),
  /** Folders below `git/`; their empty directories are made again at a restore. */
  repositories: z.array(insidePath),
  files: z.array(
    z.object({ path: insidePath, bytes: z.number().int().min(0), sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
  ),
});

export type Manifest = z.infer<typeof schema>;
export type FileEntry = Manifest["files"][number];

export const serverKeyPath = "relay/server.key";
export const eventsPath = "relay/events-1.mdb";

export const hasServerKey = ({ files }: Manifest): boolean => files.some(({ path }) => path === serverKeyPath);
export const bytesIn = (files: readonly { readonly bytes: number }[]): number =>
  files.reduce((sum, { bytes }) => sum + bytes, 0);

/** Something an operator can mend, in a sentence. */
export class BackupRefusal extends Error {
  override readonly name = "BackupRefusal";
}

export async function readManifest(folder: string): Promise<Manifest> {
  const path = join(folder, manifestFile);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new BackupRefusal(`${folder} is no complete backup: ${manifestFile} cannot be read (${code})`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new BackupRefusal(`${path} is damaged: it is no JSON`);
  }
  const format = (value as { format?: unknown } | null)?.format;
  if (typeof format === "number" && format !== formatVersion) {
    throw new BackupRefusal(`${path} has format ${format}; this program reads format ${formatVersion}`);
  }
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  const issue = checked.error.issues[0];
  throw new BackupRefusal(`${path} is damaged: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`.trim());
}

/** Reports how far long work is; the label says what it is. */
export type Progress = (done: number, total: number | undefined, label: string, unit?: "bytes") => void;

export interface FoundFile {
  /** With `/`, relative to where the search began. */
  readonly path: string;
  readonly bytes: number;
}

export async function filesBelow(folder: string, prefix = ""): Promise<FoundFile[]> {
  const found: FoundFile[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = `${prefix}${entry.name}`;
    if (entry.isDirectory()) found.push(...(await filesBelow(join(folder, entry.name), `${path}/`)));
    else if (entry.isFile()) found.push({ path, bytes: (await stat(join(folder, entry.name))).size });
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

const worksAtOnce = 16;

/**
 * Files are synced side by side: a disk that is asked for many at once does them together. After a failure nothing new
 * is begun, and nothing is at work any more when it throws: the caller removes what was written.
 */
export async function eachFile<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const left = items.values();
  const failures: unknown[] = [];
  const worker = async (): Promise<void> => {
    for (const item of left) {
      if (failures.length > 0) return;
      await work(item).catch((error: unknown) => void failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: worksAtOnce }, worker));
  if (failures.length > 0) throw failures[0];
}

/** Packs are named after what is in them: the same name is the same content. */
export const isImmutable = (path: string): boolean =>
  /\/(?:pack-[0-9a-f]{40,64}\.(?:pack|idx|rev)|lfs\/[0-9a-f]{2}\/[0-9a-f]{64})$/.test(path);

export async function checksumOf(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20, signal })) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

/** On disk when it resolves, except for the names of its directories. */
export async function copyWithChecksum(from: string, to: string, mode: number, signal: AbortSignal): Promise<string> {
  await makeDirectory(dirname(to));
  const hash = createHash("sha256");
  const target = await open(to, "wx", mode);
  try {
    for await (const chunk of createReadStream(from, { highWaterMark: 1 << 20, signal })) {
      hash.update(chunk as Buffer);
      await target.writeFile(chunk as Buffer);
    }
    await target.sync();
  } finally {
    await target.close();
  }
  return hash.digest("hex");
}

/** False where links are not possible (another file system, too many of them): then it must be copied. */
export async function tryLink(from: string, to: string): Promise<boolean> {
  await makeDirectory(dirname(to));
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (["EXDEV", "EPERM", "EMLINK", "ENOTSUP", "ENOENT"].includes((error as NodeJS.ErrnoException).code ?? "")) {
      return false;
    }
    throw error;
  }
}

export async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

/** Makes the names of these files durable. */
export async function syncFoldersOf(root: string, files: readonly { readonly path: string }[]): Promise<void> {
  const folders = new Set<string>(["."]);
  for (const { path } of files) {
    for (let at = dirname(path); at !== "."; at = dirname(at)) folders.add(at);
  }
  await eachFile([...folders], (folder) => syncPath(join(root, folder)));
}

/** Directories git needs and no file stands for. */
export async function makeRepositoryFolders(repository: string): Promise<void> {
  for (const folder of ["objects/info", "objects/pack", "refs/heads", "refs/tags"]) {
    await makeDirectory(join(repository, folder));
  }
}
