// Objects on trial: a directory inside the repository's `objects/` into which index-pack writes, seen by nobody until
// `migrate` (mechanisms.md, "Push without receive-pack" 3, 5, 6). Everything that came in with a refused push goes with
// the directory.

import { randomBytes } from "node:crypto";
import { link, mkdir, readdir, readFile, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.js";
import type { EventId, Oid } from "../nostr/ids.js";
import { ifPresent, makeDirectory, removeAll, replaceFile, syncPath } from "./durable-files.js";
import { missingObjects, type ObjectPlace } from "./objects.js";
import { quarantinePrefix, unclaimedFolder } from "./repository-files.js";
import type { Git, GitEnvironment } from "./run.js";
import type { Quarantine, UnclaimedData } from "./types.js";

/** In the order in which git may see them: a pack is known by its .idx, which therefore comes last. */
const packSuffixes = [".pack", ".rev", ".idx"] as const;

/** git splits this variable at colons unless an entry is quoted. */
export const alternatePath = (path: string): string => (/[":\\]/.test(path) ? JSON.stringify(path) : path);

export class QuarantineDirectory implements Quarantine {
  packBytes = 0;

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

  missingObjects(oids: readonly Oid[], existing?: ReadonlySet<Oid>): Promise<Set<Oid>> {
    return missingObjects(this.place, oids, existing ? { existing } : {});
  }

  async #packs(): Promise<string[]> {
    const names = (await ifPresent(readdir(join(this.directory, "pack")))) ?? [];
    return names.filter((name) => name.endsWith(".idx")).map((name) => name.slice(0, -".idx".length));
  }

  async migrate(): Promise<void> {
    await movePacks(join(this.directory, "pack"), join(this.repositoryDirectory, "objects/pack"), await this.#packs());
    await this.drop();
  }

  async keepUnclaimed(eventId: EventId, tip: Oid): Promise<UnclaimedData> {
    const folder = join(this.repositoryDirectory, unclaimedFolder, eventId);
    await makeDirectory(join(folder, "pack"));
    await linkPacks(join(this.directory, "pack"), join(folder, "pack"), await this.#packs());
    const before = await readUnclaimed(this.repositoryDirectory, eventId);
    const sinceMs = before?.sinceMs ?? this.clock.nowMs();
    await replaceFile(join(folder, "tip"), JSON.stringify({ tip, sinceMs }));
    return { eventId, tip, sinceMs, bytes: await packBytesIn(folder) };
  }

  async drop(): Promise<void> {
    await removeAll(this.directory);
  }
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
}

/** They stay where they are as well: whoever is interrupted can begin again. */
async function linkPacks(from: string, to: string, packs: readonly string[]): Promise<void> {
  for (const pack of packs) {
    for (const suffix of packSuffixes) {
      await ifPresent(link(join(from, pack + suffix), join(to, pack + suffix)).catch(ignoreExisting));
    }
  }
  await syncPath(to);
}

async function movePacks(from: string, to: string, packs: readonly string[]): Promise<void> {
  if (packs.length === 0) return;
  for (const pack of packs) {
    for (const suffix of packSuffixes) await ifPresent(rename(join(from, pack + suffix), join(to, pack + suffix)));
  }
  await syncPath(to);
}

// ---- data of events that are not known yet -----------------------------------------------------------------------
// Kept in an object directory of its own below `unclaimed/<event id>`, so that it counts as here for nothing else, no
// fetch can reach it, housekeeping does not see it, and it goes in one piece (purgatory.md, Placeholder).

async function packBytesIn(folder: string): Promise<number> {
  let bytes = 0;
  for (const name of (await ifPresent(readdir(join(folder, "pack")))) ?? []) {
    bytes += (await ifPresent(stat(join(folder, "pack", name))))?.size ?? 0;
  }
  return bytes;
}

export async function readUnclaimed(repositoryDirectory: string, eventId: EventId): Promise<UnclaimedData | undefined> {
  const folder = join(repositoryDirectory, unclaimedFolder, eventId);
  const text = await ifPresent(readFile(join(folder, "tip"), "utf8"));
  if (text === undefined) return undefined;
  const { tip, sinceMs } = JSON.parse(text) as { tip: Oid; sinceMs: number };
  return { eventId, tip, sinceMs, bytes: await packBytesIn(folder) };
}

/** The event came: its data joins the repository if the event's commit is in it, and goes otherwise. */
export async function claimUnclaimed(place: ObjectPlace, eventId: EventId, tip: Oid): Promise<boolean> {
  const { directory: repositoryDirectory } = place;
  const folder = join(repositoryDirectory, unclaimedFolder, eventId);
  const names = await ifPresent(readdir(join(folder, "pack")));
  if (names === undefined) return false;
  const together = { ...place, env: { ...place.env, GIT_ALTERNATE_OBJECT_DIRECTORIES: alternatePath(folder) } };
  if ((await missingObjects(together, [tip])).size > 0) {
    await removeAll(folder);
    return false;
  }
  const packs = names.filter((name) => name.endsWith(".idx")).map((name) => name.slice(0, -".idx".length));
  // Not moved: killed in the middle, a pack here and its index there would be neither's.
  await linkPacks(join(folder, "pack"), join(repositoryDirectory, "objects/pack"), packs);
  await removeAll(folder);
  return true;
}

export async function dropUnclaimed(repositoryDirectory: string, eventId: EventId): Promise<void> {
  await removeAll(join(repositoryDirectory, unclaimedFolder, eventId));
}
