// A bare repository as files: how one is made, what its config must say, its refs, what a crash leaves behind in it and
// how that is removed. Starts no process. Nothing here judges who may have a repository.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rmdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import {
  ifPresent,
  isMissing,
  makeDirectory,
  removeAll,
  replaceFile,
  replaceUnderLock,
  syncPath,
  writeSynced,
} from "../base/durable-files.js";
import { mayBePeeled, type RefValue } from "../catalogue/refs.js";
import type { RepositoryArea } from "../catalogue/repositories.js";
import { type EventId, isEventId, isPubkey } from "../nostr/event.js";
import { parseNpub } from "../nostr/nip19.js";
import { isOid, isRefName, type ObjectFormat, type Oid, type RefName } from "../nostr/nip34.js";
import { diskAddress, type RepositoryAddress } from "./address.js";
import { unbornBranch } from "./ref-tables.js";

export const identifierFile = "holdfast-identifier";
export const unclaimedFolder = "unclaimed";
/** Large files (LFS): see lfs/files.ts. */
export const largeFilesFolder = "lfs";
/** Packs that left the list which several machines share: only fetches still look there. */
export const retiredFolder = "retired";
export const quarantinePrefix = "tmp_quarantine-";
/** What makes up a pack, in the order in which git may see it: a pack is known by its .idx, which therefore comes last. */
export const packParts = [".pack", ".rev", ".mtimes", ".idx"] as const;
/** Begun and not finished, or given up: beside repositories, never mistaken for one. */
export const leftoverPrefix = ".holdfast-";

const core = (version: number): string =>
  `[core]\n\trepositoryformatversion = ${version}\n\tfilemode = true\n\tbare = true\n`;

/** Ours, to the byte: a repository's config could run programs for us (threats.md row 8). */
export const repositoryConfigs: Readonly<Record<ObjectFormat, string>> = {
  sha1: core(0),
  sha256: `${core(1)}[extensions]\n\tobjectformat = sha256\n`,
};

/**
 * The format in which git reads a repository, ours or another program's. Read at once: a small file, asked for before each
 * question to git.
 */
export function formatIn(directory: string): ObjectFormat {
  try {
    return /^\s*objectformat\s*=\s*"?sha256"?\s*$/im.test(readFileSync(join(directory, "config"), "utf8"))
      ? "sha256"
      : "sha1";
  } catch {
    return "sha1";
  }
}

/** One of the two that this server writes. */
export async function hasOurConfig(directory: string): Promise<boolean> {
  const config = await ifPresent(readFile(join(directory, "config"), "utf8"));
  return config === repositoryConfigs.sha1 || config === repositoryConfigs.sha256;
}

/** Writes the config anew unless it is the one of this format. True: it was another. */
export async function mendConfig(directory: string, format: ObjectFormat): Promise<boolean> {
  const path = join(directory, "config");
  if ((await ifPresent(readFile(path, "utf8"))) === repositoryConfigs[format]) return false;
  await replaceFile(path, repositoryConfigs[format]);
  return true;
}

/**
 * Makes it beside, then renames: it is there completely or not at all. `completed`: damage had taken HEAD away and left the
 * rest, of which nothing is given up.
 */
export async function createRepositoryFiles(
  directory: string,
  identifier: string,
  format: ObjectFormat = "sha1",
): Promise<"made" | "completed" | "was there"> {
  const parent = dirname(directory);
  await makeDirectory(parent);
  const present = await ifPresent(readFile(join(directory, "HEAD"), "utf8"));
  if (present !== undefined) {
    const recorded = await ifPresent(readFile(join(directory, identifierFile), "utf8"));
    if (recorded !== undefined && recorded !== identifier) {
      throw new Error("the directory belongs to another identifier: does the file system fold case?");
    }
    return "was there";
  }
  const beside = join(parent, `${leftoverPrefix}new-${randomBytes(6).toString("hex")}`);
  try {
    await writeRepositoryFiles(beside, identifier, format);
    await rename(beside, directory);
  } catch (error) {
    await removeAll(beside);
    if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw error;
    // Somebody else made it meanwhile: theirs is as good.
    if ((await ifPresent(readFile(join(directory, "HEAD")))) !== undefined) return "was there";
    await writeRepositoryFiles(directory, identifier, format);
    return "completed";
  }
  await syncPath(parent);
  return "made";
}

/** HEAD comes last: without it git does not take the directory for a repository. */
async function writeRepositoryFiles(directory: string, identifier: string, format: ObjectFormat): Promise<void> {
  for (const folder of emptyFolders) await mkdir(join(directory, folder), { recursive: true });
  await writeSynced(join(directory, "config"), repositoryConfigs[format]);
  await writeSynced(join(directory, identifierFile), identifier);
  await writeSynced(join(directory, "HEAD"), `ref: ${unbornBranch}\n`);
  for (const folder of ["objects", "refs", "."]) await syncPath(join(directory, folder));
}

const emptyFolders = ["objects/info", "objects/pack", "refs/heads", "refs/tags"];
/** What one in another format has too. Large files stay: their names are of no git format. */
const keptFiles: ReadonlySet<string> = new Set(["objects", "refs", "HEAD", "config", identifierFile, largeFilesFolder]);

/**
 * An empty one in another format, in place of one without refs. Large files never leave it, wherever a crash comes; the
 * settings, by which the format is known, come last, so that a start finds out whether it has to begin again.
 */
export async function replaceRepositoryFiles(directory: string, format: ObjectFormat): Promise<void> {
  const files = await readdir(directory);
  for (const name of files) if (!keptFiles.has(name)) await removeAll(join(directory, name));
  for (const folder of ["objects", "refs"]) {
    const old = (await ifPresent(readdir(join(directory, folder)))) ?? [];
    for (const name of old) await removeAll(join(directory, folder, name));
  }
  for (const folder of emptyFolders) await mkdir(join(directory, folder), { recursive: true });
  for (const folder of ["objects", "refs", "."]) await syncPath(join(directory, folder));
  await mendConfig(directory, format);
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

/** A repository's directory, with the identifier it records. */
export interface FoundDirectory {
  readonly npubOrOwner: string;
  readonly identifier: string;
  /** None: its folder is not named after a key. */
  readonly address: RepositoryAddress | undefined;
}

export async function* repositoryDirectories(
  gitDataPath: string,
  areas: readonly RepositoryArea[],
): AsyncGenerator<FoundDirectory> {
  for (const area of areas) {
    const root = area === "main" ? gitDataPath : join(gitDataPath, "prs");
    for (const npubOrOwner of (await ifPresent(readdir(root))) ?? []) {
      if ((area === "main" && npubOrOwner === "prs") || npubOrOwner.startsWith(leftoverPrefix)) continue;
      const owner = area === "main" ? parseNpub(npubOrOwner) : isPubkey(npubOrOwner) ? npubOrOwner : undefined;
      for (const name of (await ifPresent(readdir(join(root, npubOrOwner)))) ?? []) {
        if (!isRepositoryDirectory(name)) continue;
        const recorded = await ifPresent(readFile(join(root, npubOrOwner, name, identifierFile), "utf8"));
        // One that another server made has no record: its name is its identifier.
        const identifier = recorded ?? name.slice(0, -".git".length);
        yield { npubOrOwner, identifier, address: owner && diskAddress({ owner, identifier, area }) };
      }
    }
  }
}

/** What was begun and not finished, or deleted and not removed, beside repositories. */
export async function sweepLeftovers(gitDataPath: string): Promise<void> {
  for (const root of [gitDataPath, join(gitDataPath, "prs")]) {
    for (const folder of (await ifPresent(readdir(root))) ?? []) {
      if (folder.startsWith(leftoverPrefix)) await removeAll(join(root, folder));
      for (const name of (await ifPresent(readdir(join(root, folder)))) ?? []) {
        if (name.startsWith(leftoverPrefix)) await removeAll(join(root, folder, name));
      }
      if (root !== gitDataPath) await removeEmptyFolder(join(root, folder));
    }
  }
}

/** Removes what an earlier life of the server left. Only when no process of ours works there. */
export async function sweepRepositoryFiles(directory: string, format: ObjectFormat): Promise<void> {
  if ((await ifPresent(stat(join(directory, "HEAD")))) === undefined) return;
  await mendConfig(directory, format);
  await removeWhere(directory, (name) => name.startsWith("tmp_"));
  await removeWhere(join(directory, "objects"), (name) => name.startsWith("tmp_"));
  await removeWhere(join(directory, largeFilesFolder), (name) => name.startsWith("tmp_"));
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

/** Events whose unclaimed data is in a folder. */
export const unclaimedEventsIn = async (folder: string): Promise<EventId[]> =>
  ((await ifPresent(readdir(folder))) ?? []).filter(isEventId);

/** Names of the packs in a folder, without a suffix. */
export const packsIn = async (folder: string): Promise<string[]> =>
  ((await ifPresent(readdir(folder))) ?? [])
    .filter((name) => name.endsWith(".idx"))
    .map((name) => name.slice(0, -".idx".length));

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

interface RefsOnDisk {
  readonly head: RefName;
  readonly refs: Map<RefName, RefValue>;
  /** Loose refs that may be annotated tags: what they point at is not written in the files. */
  readonly unpeeled: readonly RefName[];
  /** Files with the name of a ref that hold no id: what a power cut emptied. git neither reads nor overwrites them. */
  readonly broken: readonly RefName[];
}

/**
 * HEAD, packed-refs and loose refs. Only well-formed names and ids are taken; symbolic links and symbolic refs below refs/
 * are not followed (threats.md row 8).
 */
export async function readRefFiles(directory: string): Promise<RefsOnDisk> {
  const head = await readHead(directory);
  const { refs, fullyPeeled } = parsePackedRefs(
    (await ifPresent(readFile(join(directory, "packed-refs"), "utf8"))) ?? "",
  );
  const unpeeled = new Set<RefName>(fullyPeeled ? [] : [...refs.keys()].filter(mayBePeeled));
  const loose = await readLooseRefs(directory, "refs");
  for (const [name, oid] of loose.found) {
    if (refs.get(name)?.oid === oid) continue;
    refs.set(name, { oid, peeled: undefined });
    if (mayBePeeled(name)) unpeeled.add(name);
  }
  return { head, refs, unpeeled: [...unpeeled], broken: loose.broken };
}

export const readHead = async (directory: string): Promise<RefName> => branchIn((await headFile(directory)) ?? "");

/** Undefined: without it git does not take the directory for a repository. */
export const headFile = (directory: string): Promise<string | undefined> =>
  ifPresent(readFile(join(directory, "HEAD"), "utf8"));

export function branchIn(text: string): RefName {
  const branch = text.startsWith("ref: ") ? text.slice("ref: ".length).trim() : "";
  return isRefName(branch) ? branch : (unbornBranch as RefName);
}

/** The file `packed-refs`, of sorted refs. */
export function packedRefs(refs: ReadonlyMap<RefName, RefValue>): string {
  const lines = [...refs].map(
    ([name, { oid, peeled }]) => `${oid} ${name}\n${peeled === undefined ? "" : `^${peeled}\n`}`,
  );
  return `# pack-refs with: peeled fully-peeled sorted \n${lines.join("")}`;
}

function parsePackedRefs(text: string): { refs: Map<RefName, RefValue>; fullyPeeled: boolean } {
  const refs = new Map<RefName, RefValue>();
  let fullyPeeled = text === "";
  let last: RefName | undefined;
  for (const line of text.split("\n")) {
    if (line.startsWith("#")) fullyPeeled ||= line.includes(" fully-peeled");
    else if (line.startsWith("^")) {
      const peeled = line.slice(1);
      const value = last && refs.get(last);
      if (last && value && isOid(peeled)) refs.set(last, { oid: value.oid, peeled });
    } else {
      const [oid, name] = [line.slice(0, line.indexOf(" ")), line.slice(line.indexOf(" ") + 1)];
      last = isOid(oid) && isRefName(name) ? name : undefined;
      if (last) refs.set(last, { oid: oid as Oid, peeled: undefined });
    }
  }
  return { refs, fullyPeeled };
}

const readsAtOnce = 32;

async function readLooseRefs(
  directory: string,
  below: string,
): Promise<{ readonly found: readonly (readonly [RefName, Oid])[]; readonly broken: readonly RefName[] }> {
  const names: RefName[] = [];
  await collectNames(directory, below, names);
  const found: [RefName, Oid][] = [];
  const broken: RefName[] = [];
  for (let at = 0; at < names.length; at += readsAtOnce) {
    const batch = names.slice(at, at + readsAtOnce);
    const texts = await Promise.all(batch.map((name) => ifPresent(readFile(join(directory, name), "utf8"))));
    texts.forEach((text, index) => {
      const name = batch[index];
      const oid = text?.trim();
      if (name && isOid(oid)) found.push([name, oid]);
      else if (name && text !== undefined) broken.push(name);
    });
  }
  return { found, broken };
}

async function collectNames(directory: string, folder: string, names: RefName[]): Promise<void> {
  for (const entry of (await ifPresent(readdir(join(directory, folder), { withFileTypes: true }))) ?? []) {
    const name = `${folder}/${entry.name}`;
    if (entry.isDirectory()) await collectNames(directory, name, names);
    else if (entry.isFile() && isRefName(name)) names.push(name);
  }
}

/** More than this is git's work: it locks all of them before it writes the first. */
const maxLooseRefs = 16;

/**
 * Writes these refs as git would: most changes are one branch, and starting git takes longer than all the rest of its way into the
 * files. Under the ref lock. False: git has to, because one is to go, they are many, or something is in the way (a lock that was
 * left, a folder with the ref's name); those that are written then are written once more. Not synced.
 */
export async function writeLooseRefs(
  directory: string,
  updates: readonly { readonly ref: RefName; readonly to: Oid | undefined }[],
): Promise<boolean> {
  if (updates.length > maxLooseRefs || updates.some(({ to }) => to === undefined)) return false;
  for (const { ref, to } of updates) {
    if (!isRefName(ref) || !isOid(to)) throw new RangeError("not a ref and an object id");
    if (!(await replaceUnderLock(join(directory, ref), `${to}\n`))) return false;
  }
  return true;
}
