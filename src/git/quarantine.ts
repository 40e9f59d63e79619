// Objects on trial: a directory inside the repository's `objects/` into which index-pack writes, seen by nobody until
// `migrate` (mechanisms.md, "Push without receive-pack" 3, 5, 6). Everything that came in with a refused push goes with
// the directory.

import { randomBytes } from "node:crypto";
import { link, mkdir, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.js";
import { ifPresent, removeAll, syncPath } from "../base/durable-files.js";
import type { Oid } from "../nostr/ids.js";
import { missingObjects, type ObjectPlace } from "./objects.js";
import { quarantinePrefix } from "./repository-files.js";
import type { Git, GitEnvironment } from "./run.js";
import type { Quarantine } from "./types.js";

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

  /** They stay where they are as well: whoever is interrupted can begin again. */
  async linkInto(folder: string): Promise<void> {
    for (const pack of await this.#packs()) {
      for (const suffix of packSuffixes) {
        const name = pack + suffix;
        await ifPresent(link(join(this.directory, "pack", name), join(folder, name)).catch(ignoreExisting));
      }
    }
    await syncPath(folder);
  }

  async drop(): Promise<void> {
    await removeAll(this.directory);
  }
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
}

async function movePacks(from: string, to: string, packs: readonly string[]): Promise<void> {
  if (packs.length === 0) return;
  for (const pack of packs) {
    for (const suffix of packSuffixes) await ifPresent(rename(join(from, pack + suffix), join(to, pack + suffix)));
  }
  await syncPath(to);
}
