// Objects on trial: a directory inside the repository's `objects/` into which index-pack writes, seen by nobody until
// `migrate` (mechanisms.md, "Push without receive-pack" 3, 5, 6). Everything that came in with a refused push goes with
// the directory.
//
// Data pushed for events that are not known yet (purgatory.md, Placeholder) is kept in an object directory of its own below
// `unclaimed/<event id>`, so that it counts as here for nothing else, housekeeping does not see it, and it goes in one
// piece. What goes in is what a pushed tip reaches, what comes out is what the event's commit reaches: bytes that
// nothing names are never kept and never claimed (threats.md row 45).

import { randomBytes } from "node:crypto";
import { link, mkdir, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Clock } from "../base/clock.js";
import {
  ifPresent,
  makeDirectory,
  removeAll,
  replaceFile,
  syncedBytes,
  syncPath,
  tryLink,
} from "../base/durable-files.js";
import type { PackBasis, StoredPack } from "../catalogue/packs.js";
import type { EventId } from "../nostr/event.js";
import type { Oid } from "../nostr/nip34.js";
import type { Transaction } from "../store/port.js";
import type { JobLimits } from "./launcher.js";
import { type MissingOptions, missingObjects, type ObjectPlace, objectTypes } from "./objects.js";
import { packParts, quarantinePrefix, unclaimedFolder } from "./repository-files.js";
import { checkedOid, type Git, type GitCall, type GitEnvironment, GitError, toleratedFaults } from "./run.js";

/** git splits this variable at colons unless an entry is quoted. */
export const alternatePath = (path: string): string => (/[":\\]/.test(path) ? JSON.stringify(path) : path);

/** Objects that are in place, and that nothing names yet. */
export interface Placed {
  /** Of the packs that were not there before. */
  readonly bytes: number;
  /**
   * In the transaction that names them: where machines share their packs, the others learn of them. False: what they were
   * checked against is not there any more, so that they must be checked again.
   */
  list(tx: Transaction): Promise<boolean>;
  /** That transaction is written. */
  listed(): void;
  /** Removes again what was put into place, and nothing that was there before. */
  takeBack(): Promise<void>;
}

/** Everything was there already. */
export const nothingPlaced: Placed = {
  bytes: 0,
  list: async () => true,
  listed: () => undefined,
  takeBack: async () => undefined,
};

export class QuarantineDirectory {
  /** Bytes of pack received so far. */
  packBytes = 0;
  /** Where machines share their packs: the list that its objects rest on. */
  basis: PackBasis | undefined;

  private constructor(
    readonly git: Git,
    readonly repositoryDirectory: string,
    readonly directory: string,
    readonly clock: Clock,
  ) {}

  static async make(git: Git, repositoryDirectory: string, clock: Clock): Promise<QuarantineDirectory> {
    const name = `${quarantinePrefix}${randomBytes(8).toString("hex")}`;
    const directory = join(repositoryDirectory, "objects", name);
    await mkdir(join(directory, "pack"), { recursive: true });
    return new QuarantineDirectory(git, repositoryDirectory, directory, clock);
  }

  /** For processes that write new objects here and may build on the repository's. */
  get writingEnvironment(): GitEnvironment {
    const objects = join(this.repositoryDirectory, "objects");
    return { GIT_OBJECT_DIRECTORY: this.directory, GIT_ALTERNATE_OBJECT_DIRECTORIES: alternatePath(objects) };
  }

  /** For processes that must see only what came in. */
  get aloneEnvironment(): GitEnvironment {
    return { GIT_OBJECT_DIRECTORY: this.directory };
  }

  /** For the ref transaction: git forbids refs to objects of what it knows to be a quarantine, so it is an alternate. */
  get readingEnvironment(): GitEnvironment {
    return { GIT_ALTERNATE_OBJECT_DIRECTORIES: alternatePath(this.directory) };
  }

  get place(): ObjectPlace {
    return { git: this.git, directory: this.repositoryDirectory, env: this.readingEnvironment };
  }

  /** Which of these are not here, or do not have everything they reach, in the repository and this quarantine together. */
  missingObjects(oids: readonly Oid[], options?: MissingOptions): Promise<Set<Oid>> {
    return missingObjects(this.place, oids, options);
  }

  get packFolder(): string {
    return join(this.directory, "pack");
  }

  /** Puts the packs into the repository, durably. Until `drop` they stay here as well. */
  migrate(): Promise<Placed> {
    return this.linkInto(join(this.repositoryDirectory, "objects/pack"));
  }

  /** They stay where they are as well: whoever is interrupted can begin again. */
  async linkInto(folder: string): Promise<Placed> {
    const linked: string[] = [];
    let bytes = 0;
    const takeBack = async (): Promise<void> => {
      // The index first: without it git does not see a pack.
      for (const path of linked.reverse()) await rm(path, { force: true });
    };
    try {
      for (const { name, bytes: size } of await this.#synced()) {
        const to = join(folder, name);
        if (!(await linkInPlace(join(this.packFolder, name), to))) continue;
        linked.push(to);
        bytes += size;
      }
      await syncPath(folder);
      return { ...nothingPlaced, bytes, takeBack };
    } catch (error) {
      await takeBack();
      throw error;
    }
  }

  /**
   * The files of its packs, on disk, in the order in which git may see them. All are synced at once, which is one wait for the
   * disk; index-pack would sync one after the other, and one of them twice.
   */
  async #synced(): Promise<{ readonly name: string; readonly bytes: number }[]> {
    const present = new Set(await readdir(this.packFolder));
    const names = [...present]
      .filter((name) => name.endsWith(".idx"))
      .flatMap((name) => packParts.map((suffix) => name.replace(/\.idx$/, suffix)))
      .filter((name) => present.has(name));
    return await Promise.all(
      names.map(async (name) => ({ name, bytes: await syncedBytes(join(this.packFolder, name)) })),
    );
  }

  /** Removes everything; safe to call after migrate. */
  async drop(): Promise<void> {
    await removeAll(this.directory);
  }
}

/**
 * True: the file was not there before. A file of the same name has the same content, unless its bytes rotted on the disk. So
 * it is replaced by the new file, as a rename into place would do.
 */
async function linkInPlace(from: string, to: string): Promise<boolean> {
  const result = await tryLink(from, to);
  if (result !== "exists") return result === "linked";
  const beside = join(dirname(to), `tmp_${randomBytes(8).toString("hex")}`);
  try {
    await link(from, beside);
    await rename(beside, to);
  } finally {
    // A rename between two names of one file does nothing.
    await rm(beside, { force: true });
  }
  return false;
}

/** For index-pack: its files are synced when they go into place, and what does not need not be on disk. */
export const notSynced: NonNullable<GitCall["settings"]> = { "core.fsync": "none" };

interface CopyOptions {
  /** Objects that nobody checked yet: git's strict check is made on the way, and a fault throws. */
  readonly strict?: boolean;
  /** What is here already may be damaged: it is not read, not even to compare it with what comes. */
  readonly alone?: boolean;
  readonly limits?: Partial<JobLimits>;
}

/** Deltas that are there are used as they are; none is looked for, that is housekeeping's work. */
const packArguments = ["--revs", "--stdout", "--delta-base-offset", "--window=0", "--quiet"] as const;

/** Copies what some ids reach into a quarantine as one pack: pack-objects there, index-pack here. */
export async function copyObjects(
  from: ObjectPlace,
  into: QuarantineDirectory,
  oids: readonly Oid[],
  alreadyThere: readonly Oid[],
  { strict = false, alone = false, limits = {} }: CopyOptions = {},
): Promise<void> {
  // pack-objects dies of an unknown id, so only what both have may be excluded.
  const shared = [...(await objectTypes(from, alreadyThere)).keys()];
  const lines = [...oids.map(checkedOid), "--not", ...shared.map(checkedOid)];
  const packing = await from.git.start(["pack-objects", ...packArguments], {
    directory: from.directory,
    env: from.env ?? {},
    limits,
    stdin: true,
  });
  const check = strict ? [`--strict=${toleratedFaults}`] : [];
  const indexing = await into.git.start(["index-pack", "--stdin", "--fix-thin", ...check], {
    directory: into.repositoryDirectory,
    env: alone ? into.aloneEnvironment : into.writingEnvironment,
    settings: notSynced,
    limits,
    stdin: true,
  });
  packing.stdin?.end(`${lines.join("\n")}\n`);
  indexing.stdout.resume();
  if (indexing.stdin) await pipeline(packing.stdout, indexing.stdin).catch(() => undefined);
  const [packed, indexed] = await Promise.all([packing.exit, indexing.exit]);
  if (packed.code !== 0) throw new GitError("pack-objects", packed);
  if (indexed.code !== 0) throw new GitError("index-pack", indexed);
}

/** Another quarantine, with what these reach and the refs do not: bytes that no tip names stay behind. `here`: what the refs name. */
export async function reachedBy(
  quarantine: QuarantineDirectory,
  tips: readonly Oid[],
  here: readonly Oid[],
  { from = quarantine.place, ...options }: CopyOptions & { readonly from?: ObjectPlace } = {},
): Promise<QuarantineDirectory> {
  const { git, repositoryDirectory, clock } = quarantine;
  const reached = await QuarantineDirectory.make(git, repositoryDirectory, clock);
  reached.basis = quarantine.basis;
  try {
    await copyObjects(from, reached, tips, here, options);
    return reached;
  } catch (error) {
    await reached.drop();
    throw error;
  }
}

/** The data of a git-first push whose event is not known yet: kept outside the repository's objects. */
export interface UnclaimedData {
  readonly eventId: EventId;
  /** What was pushed last. */
  readonly tip: Oid;
  /** All pushes together. */
  readonly bytes: number;
  readonly sinceMs: number;
  /** Where machines share their packs: those it lies in. */
  readonly packs?: readonly StoredPack[];
}

export const unclaimedObjects = (repositoryDirectory: string, eventId: EventId): string =>
  join(repositoryDirectory, unclaimedFolder, eventId);

async function packBytesIn(folder: string): Promise<number> {
  let bytes = 0;
  for (const name of (await ifPresent(readdir(join(folder, "pack")))) ?? []) {
    bytes += (await ifPresent(stat(join(folder, "pack", name))))?.size ?? 0;
  }
  return bytes;
}

/** `reached`: what the tip reaches, and no more. */
export async function keepUnclaimed(
  quarantine: QuarantineDirectory,
  reached: QuarantineDirectory,
  eventId: EventId,
  tip: Oid,
): Promise<UnclaimedData> {
  const directory = quarantine.repositoryDirectory;
  const folder = unclaimedObjects(directory, eventId);
  await makeDirectory(join(folder, "pack"));
  await reached.linkInto(join(folder, "pack"));
  const before = await readUnclaimed(directory, eventId);
  const sinceMs = before?.sinceMs ?? quarantine.clock.nowMs();
  await replaceFile(join(folder, "tip"), JSON.stringify({ tip, sinceMs }));
  return { eventId, tip, sinceMs, bytes: await packBytesIn(folder) };
}

export async function readUnclaimed(repositoryDirectory: string, eventId: EventId): Promise<UnclaimedData | undefined> {
  const folder = unclaimedObjects(repositoryDirectory, eventId);
  const text = await ifPresent(readFile(join(folder, "tip"), "utf8"));
  if (text === undefined) return undefined;
  const { tip, sinceMs } = JSON.parse(text) as { tip: Oid; sinceMs: number };
  return { eventId, tip, sinceMs, bytes: await packBytesIn(folder) };
}

/** The event came: what its commit reaches is copied into an empty quarantine. False: it is not all there. `here`: what the refs name. */
export async function copyUnclaimed(
  into: QuarantineDirectory,
  eventId: EventId,
  tip: Oid,
  here: readonly Oid[],
): Promise<boolean> {
  const { git, repositoryDirectory: directory } = into;
  const folder = unclaimedObjects(directory, eventId);
  if ((await ifPresent(readdir(join(folder, "pack")))) === undefined) return false;
  const together: ObjectPlace = {
    git,
    directory,
    env: { GIT_ALTERNATE_OBJECT_DIRECTORIES: alternatePath(folder) },
  };
  const isHere = (await missingObjects(together, [tip])).size === 0;
  if (isHere) await copyObjects(together, into, [tip], here);
  return isHere;
}

export async function dropUnclaimed(repositoryDirectory: string, eventId: EventId): Promise<void> {
  await removeAll(unclaimedObjects(repositoryDirectory, eventId));
}
