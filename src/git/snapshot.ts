// All repositories as they were at one moment, as hard links in a folder beside them: objects never change, so a link is
// a copy, and whatever is repacked or deleted afterwards stays there. Refs are written from the rows of that moment, which
// the store's own copy has. Left out is what git makes again by itself: multi-pack index, bitmaps, commit-graph.

import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { ifPresent, tryLink } from "../base/durable-files.js";
import { readRefs } from "../catalogue/refs.js";
import { catalogueRow } from "../catalogue/repositories.js";
import { isEventId } from "../nostr/event.js";
import type { TableReader } from "../store/port.js";
import type { RepositoryAddress } from "./address.js";
import { readUnclaimed } from "./quarantine.js";
import { emptyTables } from "./ref-tables.js";
import type { GitRepository } from "./repository.js";
import {
  type FoundDirectory,
  formatIn,
  identifierFile,
  largeFilesFolder,
  packedRefs,
  packParts,
  repositoryConfigs,
  unclaimedFolder,
} from "./repository-files.js";
import type { SharedRepositories } from "./shared-repositories.js";

const maxLooks = 5;

export class RepositoriesSnapshot {
  /** Objects linked so far; false: there was none. */
  readonly #linked = new Map<string, Promise<boolean>>();
  readonly #deleted = new Map<string, RepositoryAddress>();

  constructor(
    private readonly repositories: {
      list(areas?: undefined, reader?: TableReader): AsyncIterable<FoundDirectory>;
      readonly shared?: Pick<SharedRepositories, "completeCopy"> | undefined;
      exists(address: RepositoryAddress): Promise<boolean>;
      open(address: RepositoryAddress): GitRepository;
    },
    private readonly gitDataPath: string,
    /** Where it is put; below the git data path, so that links are possible. */
    readonly folder: string,
    private readonly beganMs: number,
  ) {}

  /** `copy`: the store of that moment. Resolves to how many there are when all are in the folder. */
  async stageAll(copy: TableReader, progress: (done: number) => void, signal: AbortSignal): Promise<number> {
    await mkdir(this.folder, { recursive: true });
    let count = 0;
    for await (const { address } of this.repositories.list(undefined, copy)) {
      signal.throwIfAborted();
      if (address && (await this.#stage(address, copy))) count++;
      progress(count);
    }
    for (const address of this.#deleted.values()) await this.#stage(address, copy);
    return count;
  }

  /** Called for one that is about to be deleted: its objects stay in the folder. */
  async keep(address: RepositoryAddress): Promise<void> {
    this.#deleted.set(address.key, address);
    await this.#linkOnce(address);
  }

  #directory(address: RepositoryAddress): string {
    return join(this.folder, relative(this.gitDataPath, this.repositories.open(address).directory));
  }

  #linkOnce(address: RepositoryAddress): Promise<boolean> {
    const linked = this.#linked.get(address.key) ?? this.#link(address);
    this.#linked.set(address.key, linked);
    return linked;
  }

  async #link(address: RepositoryAddress): Promise<boolean> {
    if (!this.repositories.shared && !(await this.repositories.exists(address))) return false;
    const { directory } = this.repositories.open(address);
    const target = this.#directory(address);
    const format = formatIn(directory);
    for (const folder of ["objects/info", "objects/pack", "refs/heads", "refs/tags"]) {
      await mkdir(join(target, folder), { recursive: true });
    }
    await linkObjects(join(directory, "objects"), join(target, "objects"));
    await this.#linkUnclaimed(directory, target);
    await linkLargeFiles(join(directory, largeFilesFolder), join(target, largeFilesFolder));
    // One that is made anew in the other format leaves its objects here first.
    await writeFile(join(target, "config"), repositoryConfigs[format]);
    return true;
  }

  async #stage(address: RepositoryAddress, copy: TableReader): Promise<boolean> {
    if (!(await this.#linkOnce(address))) return false;
    const target = this.#directory(address);
    await this.repositories.shared?.completeCopy(copy, address, target);
    const stored = await readRefs(copy, address);
    // Made after the moment: no row of the snapshot knows it.
    const isKnown =
      stored || (await catalogueRow(copy, address)) || (await ifPresent(readdir(join(target, unclaimedFolder))));
    if (!isKnown) {
      await rm(target, { recursive: true });
      return false;
    }
    const { head, refs } = stored ?? emptyTables.sha1;
    await writeFile(join(target, identifierFile), address.identifier);
    if (refs.size > 0) await writeFile(join(target, "packed-refs"), packedRefs(refs));
    await writeFile(join(target, "HEAD"), `ref: ${head}\n`);
    return true;
  }

  async #linkUnclaimed(from: string, to: string): Promise<void> {
    for (const id of (await ifPresent(readdir(join(from, unclaimedFolder)))) ?? []) {
      const data = isEventId(id) ? await readUnclaimed(from, id) : undefined;
      // Pushed after the moment: no row of the snapshot knows it.
      if (!data || data.sinceMs >= this.beganMs) continue;
      const target = join(to, unclaimedFolder, id);
      await mkdir(join(target, "pack"), { recursive: true });
      await linkPacks(join(from, unclaimedFolder, id, "pack"), join(target, "pack"));
      const tip = await ifPresent(readFile(join(from, unclaimedFolder, id, "tip"), "utf8"));
      // Claimed meanwhile: its packs are, or are about to be, among the repository's.
      if (tip === undefined) await rm(target, { recursive: true });
      else await writeFile(join(target, "tip"), tip);
    }
  }
}

async function linkObjects(from: string, to: string): Promise<void> {
  await linkPacks(join(from, "pack"), join(to, "pack"));
  await linkFiles(from, to, /^(?:[0-9a-f]{38}|[0-9a-f]{62})$/);
}

/** Content never changes. Those that nothing names yet are left out: they end within a day. */
const linkLargeFiles = (from: string, to: string): Promise<void> => linkFiles(from, to, /^[0-9a-f]{64}$/);

/** Files whose names match, in folders that are called by two hexadecimal digits. One that is gone by then is left out. */
async function linkFiles(from: string, to: string, wanted: RegExp): Promise<void> {
  for (const folder of ((await ifPresent(readdir(from))) ?? []).filter((name) => /^[0-9a-f]{2}$/.test(name))) {
    await mkdir(join(to, folder), { recursive: true });
    for (const name of (await ifPresent(readdir(join(from, folder)))) ?? []) {
      if (wanted.test(name)) await tryLink(join(from, folder, name), join(to, folder, name));
    }
  }
}

/** A repack in between puts new packs there before it takes old ones away: looking again finds what went missing. */
async function linkPacks(from: string, to: string): Promise<void> {
  for (let look = 0; look < maxLooks; look++) {
    const names = new Set((await ifPresent(readdir(from))) ?? []);
    let complete = true;
    for (const index of [...names].filter((name) => /^pack-[0-9a-f]+\.idx$/.test(name))) {
      const pack = index.slice(0, -".idx".length);
      for (const part of packParts) {
        if (!names.has(pack + part)) continue;
        complete = (await tryLink(join(from, pack + part), join(to, pack + part))) !== "missing" && complete;
      }
    }
    if (complete) return;
  }
  throw new Error(`the packs of ${dirname(from)} do not stand still`);
}
