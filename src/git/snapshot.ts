// All repositories as they were at one moment, as hard links in a folder beside them: objects never change, so a link is
// a copy, and whatever is repacked or deleted afterwards stays there. Refs are written from what they were at that moment
// (SnapshotRefs). Left out is what git makes again by itself: multi-pack index, bitmaps, commit-graph.

import { link, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { ifPresent, isMissing } from "../base/durable-files.js";
import type { RepositoryArea } from "../catalogue/repositories.js";
import { isEventId, isPubkey } from "../nostr/ids.js";
import { npubOf, parseNpub } from "../nostr/nip19.js";
import { asNpub, RepositoryAddress } from "./address.js";
import { readUnclaimed } from "./quarantine.js";
import type { RefTable, SnapshotRefs } from "./ref-tables.js";
import type { GitRepository } from "./repository.js";
import { identifierFile, repositoryConfig, unclaimedFolder } from "./repository-files.js";

/** What makes up a pack; its .idx comes last because git knows a pack by it. */
const packParts = [".pack", ".rev", ".mtimes", ".idx"];
const maxLooks = 5;

/** A repository's directory, with the identifier it records. */
export interface FoundDirectory {
  readonly npubOrOwner: string;
  readonly identifier: string;
  readonly area: RepositoryArea;
}

export class RepositoriesSnapshot {
  readonly #staged = new Map<string, Promise<boolean>>();

  constructor(
    private readonly repositories: {
      list(): AsyncIterable<FoundDirectory>;
      exists(address: RepositoryAddress): Promise<boolean>;
      open(address: RepositoryAddress): GitRepository;
    },
    private readonly kept: SnapshotRefs,
    private readonly gitDataPath: string,
    /** Where it is put; below the git data path, so that links are possible. */
    readonly folder: string,
    private readonly beganMs: number,
  ) {}

  /** Resolves to how many there are when all are in the folder. */
  async stageAll(progress: (done: number) => void, signal: AbortSignal): Promise<number> {
    await mkdir(this.folder, { recursive: true });
    let count = 0;
    for await (const { npubOrOwner, identifier, area } of this.repositories.list()) {
      signal.throwIfAborted();
      const owner = area === "main" ? parseNpub(npubOrOwner) : isPubkey(npubOrOwner) ? npubOrOwner : undefined;
      const npub = owner && asNpub(npubOf(owner));
      if (owner && npub && (await this.stage(RepositoryAddress.of(owner, npub, identifier, area)))) count++;
      progress(count);
    }
    return count;
  }

  /** Also called for one that is about to be deleted. */
  stage(address: RepositoryAddress): Promise<boolean> {
    const staged = this.#staged.get(address.key) ?? this.#stage(address);
    this.#staged.set(address.key, staged);
    return staged;
  }

  async #stage(address: RepositoryAddress): Promise<boolean> {
    if (!(await this.repositories.exists(address))) return false;
    const repository = this.repositories.open(address);
    const now = await repository.refs();
    const table = this.kept.of(address.key) ?? now;
    if (table === "not there") return false;
    const target = join(this.folder, relative(this.gitDataPath, repository.directory));
    for (const folder of ["objects/info", "objects/pack", "refs/heads", "refs/tags"]) {
      await mkdir(join(target, folder), { recursive: true });
    }
    await linkObjects(join(repository.directory, "objects"), join(target, "objects"));
    await this.#linkUnclaimed(repository.directory, target);
    await writeFile(join(target, "config"), repositoryConfig);
    await writeFile(join(target, identifierFile), address.identifier);
    if (table.refs.size > 0) await writeFile(join(target, "packed-refs"), packedRefs(table));
    await writeFile(join(target, "HEAD"), `ref: ${table.head}\n`);
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
  for (const folder of ((await ifPresent(readdir(from))) ?? []).filter((name) => /^[0-9a-f]{2}$/.test(name))) {
    await mkdir(join(to, folder), { recursive: true });
    for (const name of (await ifPresent(readdir(join(from, folder)))) ?? []) {
      if (/^[0-9a-f]{38}$/.test(name)) await linked(join(from, folder, name), join(to, folder, name));
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
        complete = (await linked(join(from, pack + part), join(to, pack + part))) && complete;
      }
    }
    if (complete) return;
  }
  throw new Error(`the packs of ${dirname(from)} do not stand still`);
}

/** False when it is gone. */
async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return true;
    throw error;
  }
}

function packedRefs(table: RefTable): string {
  const lines = [...table.refs].map(
    ([name, { oid, peeled }]) => `${oid} ${name}\n${peeled === undefined ? "" : `^${peeled}\n`}`,
  );
  return `# pack-refs with: peeled fully-peeled sorted \n${lines.join("")}`;
}
