// Questions about objects, each answered by a handful of processes however many are asked about: which exist, of what
// type, what a tag finally points at, and which have everything they reach (connectivity).

import { closeSync, existsSync, fstatSync, openSync, readdirSync, readFileSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { isOid, type Oid, oidDigits } from "../nostr/nip34.js";
import type { Job } from "./launcher.js";
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

/**
 * Whether some tips have everything they reach, asked before they are here: git is started meanwhile, which takes longer than its
 * walk over what a small push brings. It reads nothing before it is told the tips.
 */
export class Walk {
  readonly #job: Promise<Job | undefined>;
  #isAsked = false;

  constructor(place: ObjectPlace) {
    // One that could not be started is started again when it is needed, and then says why.
    this.#job = startWalk(place, false).catch(() => undefined);
  }

  /** One question only. Undefined: another is to be started for this one. */
  async answer(tips: readonly Oid[]): Promise<boolean | undefined> {
    if (this.#isAsked) return undefined;
    this.#isAsked = true;
    const job = await this.#job;
    return job && (await walked(job, tips));
  }

  /** Nobody asks any more. Resolves when git is gone. */
  async end(): Promise<void> {
    const job = await this.#job;
    job?.end();
    await job?.exit;
  }
}

export interface MissingOptions {
  /** One that was begun for these tips. */
  readonly walk?: Walk | undefined;
  /** Do not take for granted that what existing refs reach is here. */
  readonly deep?: boolean;
  /** Ids that are known to exist (they came in this push): only what they reach is in question. */
  readonly existing?: ReadonlySet<Oid>;
}

/** Which of these are not here, or do not have everything they reach. */
export async function missingObjects(
  place: ObjectPlace,
  oids: readonly Oid[],
  { deep = false, existing = new Set(), walk }: MissingOptions = {},
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
  const isConnected = async (group: readonly Oid[]): Promise<boolean> =>
    (await walk?.answer(group)) ?? (await walked(await startWalk(place, deep), group));
  const visit = async (group: readonly Oid[]): Promise<void> => {
    if (group.length === 0) return;
    if (checksLeft-- > 0 && (await isConnected(group))) return;
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

function startWalk({ git, directory, env = {} }: ObjectPlace, deep: boolean): Promise<Job> {
  const known = deep ? [] : ["--not", "--all"];
  // --ignore-missing: a damaged ref of ours must not make every push look incomplete.
  const args = ["rev-list", "--objects", "--quiet", "--ignore-missing", "--stdin", ...known] as const;
  return git.start(args, { directory, env, stdin: true });
}

async function walked(job: Job, tips: readonly Oid[]): Promise<boolean> {
  job.stdout.resume();
  job.stdin?.end(tips.map((oid) => `${checkedOid(oid)}\n`).join(""));
  const exit = await job.exit;
  // Killed, it has said nothing about the objects.
  if (exit.code === undefined) throw new GitError("rev-list", exit);
  return exit.code === 0;
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

// ---- what files tell without a git process -----------------------------------------------------------------------
// A process takes milliseconds, ten times as many while strangers keep every core busy; these look-ups take microseconds. They
// read at once and little: each wait for the disk would be a turn of an event loop that is busy. Where anything is larger or
// other than expected, git is asked. Nothing is unpacked.

/** Of all indexes of a repository, some 30,000 objects: these are read whole. In larger ones a few names are looked up. */
export const maxIndexBytes = 2 ** 20;
const maxIndexes = 50;
const maxLookUps = 256;
const magicOfVersion2 = "ff744f6300000002";
const headerBytes = 8;
const namesAt = headerBytes + 256 * 4;

/**
 * Of these ids, all of the repository's format, those that are not in the object directory; an id that is not among them
 * may be here or not. Most questions are about commits that have not come yet: a state before its push, pull requests that wait.
 */
export function absentObjects(objectDirectory: string, oids: readonly Oid[]): ReadonlySet<Oid> {
  try {
    // Loose ones first: git packs an object before it removes the loose file.
    const folders = new Set(readdirSync(objectDirectory));
    const isAbsent = lookUp(objectDirectory, oids, (oid, isInPack) => !folders.has(oid.slice(0, 2)) && !isInPack);
    return isAbsent ?? new Set();
  } catch {
    // A repack has just replaced a pack and the object may be in the new one, or nothing can be read: git will say.
    return new Set();
  }
}

/** Whether all of these are in the object directory; false may also mean that git has to be asked. */
export function arePresent(objectDirectory: string, oids: readonly Oid[]): boolean {
  try {
    const isLoose = (oid: Oid): boolean => existsSync(join(objectDirectory, oid.slice(0, 2), oid.slice(2)));
    const present = lookUp(objectDirectory, oids, (oid, isInPack) => isInPack || isLoose(oid));
    return present?.size === new Set(oids).size;
  } catch {
    return false;
  }
}

/** Those that pass. Undefined: the indexes are not as expected, or this would take long. */
function lookUp(
  objectDirectory: string,
  oids: readonly Oid[],
  passes: (oid: Oid, isInPack: boolean) => boolean,
): ReadonlySet<Oid> | undefined {
  const [first] = oids;
  if (first === undefined) return new Set();
  const indexes: PackIndex[] = [];
  try {
    const folder = join(objectDirectory, "pack");
    const paths = readdirSync(folder)
      .filter((name) => name.endsWith(".idx"))
      .map((name) => join(folder, name));
    if (paths.length > maxIndexes) return undefined;
    const bytes = paths.reduce((sum, path) => sum + statSync(path).size, 0);
    if (bytes > maxIndexBytes && paths.length * oids.length > maxLookUps) return undefined;
    const open = bytes > maxIndexBytes ? fileBytes : heldBytes;
    for (const path of paths) indexes.push(new PackIndex(open(path), first.length / 2));
    if (!indexes.every((index) => index.isWhole)) return undefined;
    return new Set(
      oids.filter((oid) =>
        passes(
          oid,
          indexes.some((index) => index.find(oid) !== undefined),
        ),
      ),
    );
  } finally {
    for (const { bytes } of indexes) bytes.close();
  }
}

interface Bytes {
  readonly length: number;
  /** Valid until the next call. */
  at(from: number, count: number): Buffer;
  close(): void;
}

export function heldBytes(path: string): Bytes {
  const bytes = readFileSync(path);
  return { length: bytes.length, at: (from, count) => bytes.subarray(from, from + count), close: () => undefined };
}

function fileBytes(path: string): Bytes {
  const file = openSync(path, "r");
  const buffer = Buffer.alloc(64);
  const at = (from: number, count: number): Buffer => {
    if (readSync(file, buffer, 0, count, from) < count) throw new RangeError("the file is too short");
    return buffer.subarray(0, count);
  };
  return { length: fstatSync(file).size, at, close: () => closeSync(file) };
}

/** The index of a pack: its objects by name, and where in the pack each begins. */
export class PackIndex {
  constructor(
    readonly bytes: Bytes,
    readonly nameBytes: number,
  ) {}

  /** It is of version 2, and not cut off. */
  get isWhole(): boolean {
    if (this.bytes.length < namesAt || this.bytes.at(0, headerBytes).toString("hex") !== magicOfVersion2) return false;
    return this.bytes.length >= this.#offsetsAt + this.count * 4;
  }

  get count(): number {
    return this.#endOf(255);
  }

  get #offsetsAt(): number {
    const checksumBytes = 4;
    return namesAt + this.count * (this.nameBytes + checksumBytes);
  }

  /** How many objects have a name whose first byte is this or a smaller one. */
  #endOf(firstByte: number): number {
    return this.bytes.at(headerBytes + firstByte * 4, 4).readUInt32BE();
  }

  /** Its place among the names. */
  find(oid: Oid): number | undefined {
    const name = Buffer.from(oid, "hex");
    const first = name.readUInt8(0);
    let low = first === 0 ? 0 : this.#endOf(first - 1);
    let high = this.#endOf(first);
    while (low < high) {
      const middle = (low + high) >> 1;
      const order = name.compare(this.bytes.at(namesAt + middle * this.nameBytes, this.nameBytes));
      if (order === 0) return middle;
      if (order < 0) high = middle;
      else low = middle + 1;
    }
    return undefined;
  }

  /** Where in the pack the object with that place begins. In packs beyond 2 GiB it is something else. */
  offset(place: number): number {
    return this.bytes.at(this.#offsetsAt + place * 4, 4).readUInt32BE();
  }
}
