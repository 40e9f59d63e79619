// Questions about objects, each answered by a handful of processes however many are asked about: which exist, of what
// type, what a tag finally points at, and which have everything they reach (connectivity).

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { isOid, type Oid, oidDigits } from "../nostr/nip34.js";
import { formatIn } from "./repository-files.js";
import { checkedOid, type Git, type GitEnvironment, GitError } from "./run.js";

export type ObjectType = "commit" | "tree" | "blob" | "tag";

/** A repository to ask, with the environment that adds a quarantine's objects to it. */
export interface ObjectPlace {
  readonly git: Git;
  readonly directory: string;
  readonly env?: GitEnvironment;
}

/** Bisecting for incomplete tips stops here; what is undecided then counts as missing. */
const maxConnectivityChecks = 64;

/** An id of the other format is never here. git would take a shorter one for the beginning of a longer one. */
function namedAs({ directory }: ObjectPlace): (oid: Oid) => boolean {
  const digits = oidDigits[formatIn(directory)];
  return (oid) => oid.length === digits;
}

export async function objectTypes(place: ObjectPlace, oids: readonly Oid[]): Promise<Map<Oid, ObjectType>> {
  const types = new Map<Oid, ObjectType>();
  for (const [oid, answer] of await batchCheck(place, oids, "")) {
    const type = answer.split(" ")[1];
    if (type === "commit" || type === "tree" || type === "blob" || type === "tag") types.set(oid, type);
  }
  return types;
}

/** For each id that names a tag object: what it finally points at. Others are left out. */
export async function peelTags(place: ObjectPlace, oids: readonly Oid[]): Promise<Map<Oid, Oid>> {
  const peeled = new Map<Oid, Oid>();
  for (const [oid, answer] of await batchCheck(place, oids, "^{}")) {
    const target = answer.split(" ")[0];
    if (answer.split(" ").length === 3 && isOid(target) && target !== oid) peeled.set(oid, target);
  }
  return peeled;
}

async function batchCheck(place: ObjectPlace, oids: readonly Oid[], suffix: string): Promise<[Oid, string][]> {
  const { git, directory, env = {} } = place;
  const candidates = [...new Set(oids)].filter(namedAs(place)).map(checkedOid);
  if (candidates.length === 0) return [];
  // With an environment the objects may be elsewhere too.
  const absent = place.env ? undefined : absentObjects(join(directory, "objects"), candidates);
  const asked = candidates.filter((oid) => !absent?.has(oid));
  if (asked.length === 0) return [];
  const input = asked.map((oid) => `${oid}${suffix}\n`).join("");
  const output = await git.mustRun(["cat-file", "--batch-check"], { directory, env, input });
  const lines = output.toString("utf8").split("\n");
  return asked.map((oid, index) => [oid, lines[index] ?? ""]);
}

interface MissingOptions {
  /** Do not take for granted that what existing refs reach is here. */
  readonly deep?: boolean;
  /** Ids that are known to exist (they came in this push): only what they reach is in question. */
  readonly existing?: ReadonlySet<Oid>;
}

/** Which of these are not here, or do not have everything they reach. */
export async function missingObjects(
  place: ObjectPlace,
  oids: readonly Oid[],
  { deep = false, existing = new Set() }: MissingOptions = {},
): Promise<Set<Oid>> {
  const wanted = [...new Set(oids)];
  if (wanted.length === 0) return new Set();
  const canBeHere = namedAs(place);
  const missing = new Set(wanted.filter((oid) => !canBeHere(oid)));
  const unsure = wanted.filter((oid) => canBeHere(oid) && !existing.has(oid));
  const present = await objectTypes(place, unsure);
  for (const oid of unsure) if (!present.has(oid)) missing.add(oid);
  const tips = wanted.filter((oid) => !missing.has(oid));
  let checksLeft = maxConnectivityChecks;
  const visit = async (group: readonly Oid[]): Promise<void> => {
    if (group.length === 0) return;
    if (checksLeft-- > 0 && (await isConnected(place, group, deep))) return;
    const [only] = group;
    if (group.length === 1 && only !== undefined) missing.add(only);
    else if (checksLeft <= 0) for (const oid of group) missing.add(oid);
    else {
      await visit(group.slice(0, group.length >> 1));
      await visit(group.slice(group.length >> 1));
    }
  };
  await visit(tips);
  return missing;
}

async function isConnected(
  { git, directory, env = {} }: ObjectPlace,
  tips: readonly Oid[],
  deep: boolean,
): Promise<boolean> {
  const known = deep ? [] : ["--not", "--all"];
  // --ignore-missing: a damaged ref of ours must not make every push look incomplete.
  const result = await git.run(["rev-list", "--objects", "--quiet", "--ignore-missing", "--stdin", ...known], {
    directory,
    env,
    input: tips.map((oid) => `${checkedOid(oid)}\n`).join(""),
  });
  // Killed, it has said nothing about the objects.
  if (result.code === undefined) throw new GitError("rev-list", result);
  return result.code === 0;
}

/** The largest object of the place's own object directory, and the types of those asked for. Streams: there may be millions. */
export async function surveyObjects(
  place: ObjectPlace,
  interesting: ReadonlySet<Oid>,
): Promise<{ readonly largestBytes: number; readonly types: ReadonlyMap<Oid, ObjectType> }> {
  const { git, directory, env = {} } = place;
  const job = await git.start(["cat-file", "--batch-all-objects", "--batch-check", "--unordered"], { directory, env });
  const types = new Map<Oid, ObjectType>();
  let largestBytes = 0;
  let rest = "";
  for await (const chunk of job.stdout) {
    const lines = (rest + String(chunk)).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const [oid = "", type, size] = line.split(" ");
      largestBytes = Math.max(largestBytes, Number(size));
      if (interesting.has(oid as Oid)) types.set(oid as Oid, type as ObjectType);
    }
  }
  const exit = await job.exit;
  if (exit.code !== 0) throw new Error(`git cat-file failed: ${exit.stderr}`);
  return { largestBytes, types };
}

/** Bytes on disk of what refs below `prefix` reach and branches and tags do not; undefined when git cannot tell. */
export async function bytesOnlyReachedBy({ git, directory }: ObjectPlace, prefix: string): Promise<number | undefined> {
  const others = ["--not", "--branches", "--tags"];
  const result = await git.run(
    ["rev-list", "--disk-usage", "--objects", "--use-bitmap-index", `--glob=${prefix}*`, ...others],
    { directory },
  );
  const bytes = Number(result.stdout.toString("utf8").trim());
  return result.code === 0 && Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Of all indexes of a repository, some 30,000 objects; git maps what is larger, and is asked. */
const maxIndexBytes = 2 ** 20;
const maxIndexes = 50;
const magicOfVersion2 = "ff744f6300000002";
const headerBytes = 8;
const namesAt = headerBytes + 256 * 4;

/**
 * Which objects a repository lacks for sure, read from its files: a look into pack indexes instead of a git process. Most
 * questions are about commits that have not come yet (a state before its push, pull requests that wait), and while
 * strangers keep every core busy a process takes ten times as long as a read. Reads at once and little: each wait for the
 * disk would be a turn of an event loop that is busy. Of these ids, all of the repository's format, those that are not in the
 * object directory; an id that is not among them may be here or not.
 */
export function absentObjects(objectDirectory: string, oids: readonly Oid[]): ReadonlySet<Oid> {
  try {
    // Loose ones first: git packs an object before it removes the loose file.
    const folders = new Set(readdirSync(objectDirectory));
    const [first] = oids;
    if (first === undefined) return new Set();
    const indexes = readIndexes(join(objectDirectory, "pack"), first.length / 2);
    if (!indexes) return new Set();
    return new Set(
      oids.filter((oid) => !folders.has(oid.slice(0, 2)) && !indexes.some((index) => isInIndex(index, oid))),
    );
  } catch {
    // A repack has just replaced a pack and the object may be in the new one, or nothing can be read: git will say.
    return new Set();
  }
}

/** Undefined: one of them is not as expected, or they are too large to be read here. */
function readIndexes(folder: string, nameBytes: number): readonly Buffer[] | undefined {
  const paths = readdirSync(folder)
    .filter((name) => name.endsWith(".idx"))
    .map((name) => join(folder, name));
  if (paths.length > maxIndexes) return undefined;
  let bytes = 0;
  for (const path of paths) bytes += statSync(path).size;
  if (bytes > maxIndexBytes) return undefined;
  const indexes: Buffer[] = [];
  for (const path of paths) {
    const index = readFileSync(path);
    if (!isWellFormed(index, nameBytes)) return undefined;
    indexes.push(index);
  }
  return indexes;
}

function isWellFormed(index: Buffer, nameBytes: number): boolean {
  if (index.length < namesAt || index.toString("hex", 0, headerBytes) !== magicOfVersion2) return false;
  return index.length >= namesAt + endOf(index, 255) * nameBytes;
}

/** How many objects have a name whose first byte is this or a smaller one. */
const endOf = (index: Buffer, firstByte: number): number => index.readUInt32BE(headerBytes + firstByte * 4);

function isInIndex(index: Buffer, oid: Oid): boolean {
  const name = Buffer.from(oid, "hex");
  const nameBytes = name.length;
  const first = name.readUInt8(0);
  let low = first === 0 ? 0 : endOf(index, first - 1);
  let high = endOf(index, first);
  while (low < high) {
    const middle = (low + high) >> 1;
    const at = namesAt + middle * nameBytes;
    const order = name.compare(index, at, at + nameBytes);
    if (order === 0) return true;
    if (order < 0) high = middle;
    else low = middle + 1;
  }
  return false;
}
