// All repositories of this server: made, found, opened, deleted, listed; locks in a fixed order. Made from addresses
// only. Whether one may be served is for the catalogue, not for the disk.

import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Clock } from "../base/clock.js";
import { ifPresent, removeAll } from "../base/durable-files.js";
import { KeyedLock } from "../base/keyed-lock.js";
import type { RepositoryAddress } from "./address.js";
import { GivingWay } from "./giving-way.js";
import { readRefFiles } from "./ref-files.js";
import { RefTables } from "./ref-tables.js";
import { RefsKept } from "./refs-kept.js";
import { GitRepository } from "./repository.js";
import {
  createRepositoryFiles,
  identifierFile,
  isRepositoryDirectory,
  leftoverPrefix,
  removeEmptyFolder,
  removeRepositoryFiles,
} from "./repository-files.js";
import type { RepositoryContext } from "./repository-refs.js";
import type { Git } from "./run.js";
import { RepositoriesSnapshot } from "./snapshot.js";
import type { RepositoryStore } from "./types.js";

export interface RepositoriesOptions {
  readonly gitDataPath: string;
  readonly git: Git;
  readonly clock: Clock;
  /** Refs kept in memory over all repositories; about 300 bytes each. */
  readonly maxRefsInMemory?: number;
}

export class Repositories implements RepositoryStore {
  readonly #gitDataPath: string;
  readonly #context: RepositoryContext;
  #snapshot: RepositoriesSnapshot | undefined;
  readonly #watchers = new Set<(address: RepositoryAddress) => void>();

  constructor({ gitDataPath, git, clock, maxRefsInMemory = 1_000_000 }: RepositoriesOptions) {
    // git runs in another working directory.
    this.#gitDataPath = resolve(gitDataPath);
    this.#context = {
      git,
      clock,
      tables: new RefTables(maxRefsInMemory),
      refsKept: new RefsKept(),
      fetchable: { basis: new WeakMap(), changes: 0 },
      refLocks: new KeyedLock(),
      workLocks: new KeyedLock(),
      givingWay: new GivingWay(),
      swept: new Set(),
      changed: (address) => {
        for (const watcher of this.#watchers) watcher(address);
      },
    };
  }

  get git(): Git {
    return this.#context.git;
  }

  open(address: RepositoryAddress): GitRepository {
    return new GitRepository(this.#context, address, address.directoryUnder(this.#gitDataPath));
  }

  async create(address: RepositoryAddress): Promise<GitRepository> {
    const repository = this.open(address);
    await this.#context.refLocks.run(address.key, async () => {
      const create = () => createRepositoryFiles(repository.directory, address.identifier);
      if (!(await this.#withFolder(repository.directory, create))) return;
      this.#context.refsKept.created(address.key);
      this.#forget(address);
    });
    return repository;
  }

  /** Innermost of all locks: a folder must not go while a repository is made in it. */
  #withFolder<T>(directory: string, work: () => Promise<T>): Promise<T> {
    return this.#context.refLocks.run(`folder ${dirname(directory)}`, work);
  }

  whileUsed<T>(address: RepositoryAddress, work: () => Promise<T>): Promise<T> {
    return this.open(address).duringPush(work);
  }

  /** `ownUses`: how many of those who use it now are the caller. */
  async removeIfEmpty(address: RepositoryAddress, ownUses = 0): Promise<boolean> {
    const { workLocks, refLocks, givingWay } = this.#context;
    const repository = this.open(address);
    const { directory } = repository;
    if (givingWay.workersIn(address.key) > ownUses || !(await this.exists(address))) return false;
    const remove = async (): Promise<boolean> => {
      const { refs } = await readRefFiles(directory);
      if (refs.size > 0 || (await repository.unclaimed()).length > 0) return false;
      // Asked last: whoever begins to use it after this waits for the lock and makes it again. One is this removal.
      if (givingWay.workersIn(address.key) > ownUses + 1) return false;
      this.#forget(address);
      await this.#remove(directory);
      return true;
    };
    const locked = (): Promise<boolean> => workLocks.run(address.key, () => refLocks.run(address.key, remove));
    return givingWay.during([address.key], locked, { always: true });
  }

  async exists(address: RepositoryAddress): Promise<boolean> {
    return (await ifPresent(readFile(join(this.open(address).directory, "HEAD")))) !== undefined;
  }

  async delete(address: RepositoryAddress, isUnwanted = async () => true): Promise<boolean> {
    await this.#snapshot?.stage(address);
    const remove = async (): Promise<boolean> => {
      if (!(await isUnwanted())) return false;
      this.#forget(address);
      await this.#remove(this.open(address).directory);
      return true;
    };
    const { givingWay, refLocks } = this.#context;
    return givingWay.during([address.key], () => refLocks.run(address.key, remove), { always: true });
  }

  async #remove(directory: string): Promise<void> {
    await removeRepositoryFiles(directory);
    await this.#withFolder(directory, () => removeEmptyFolder(dirname(directory)));
  }

  #forget({ key }: RepositoryAddress): void {
    this.#context.tables.delete(key);
    this.#context.tables.publish(key);
  }

  async *list(): AsyncGenerator<{ npubOrOwner: string; identifier: string; area: "main" | "prs" }> {
    for (const area of ["main", "prs"] as const) {
      const root = area === "main" ? this.#gitDataPath : join(this.#gitDataPath, "prs");
      for (const npubOrOwner of (await ifPresent(readdir(root))) ?? []) {
        if ((area === "main" && npubOrOwner === "prs") || npubOrOwner.startsWith(leftoverPrefix)) continue;
        for (const name of (await ifPresent(readdir(join(root, npubOrOwner)))) ?? []) {
          if (!isRepositoryDirectory(name)) continue;
          const recorded = await ifPresent(readFile(join(root, npubOrOwner, name, identifierFile), "utf8"));
          // One that another server made has no record: its name is its identifier.
          yield { npubOrOwner, identifier: recorded ?? name.slice(0, -".git".length), area };
        }
      }
    }
  }

  /** At start: what was begun and not finished, or deleted and not removed, goes. Repositories are swept when first opened. */
  async sweep(): Promise<void> {
    for (const root of [this.#gitDataPath, join(this.#gitDataPath, "prs")]) {
      for (const folder of (await ifPresent(readdir(root))) ?? []) {
        if (folder.startsWith(leftoverPrefix)) await removeAll(join(root, folder));
        for (const name of (await ifPresent(readdir(join(root, folder)))) ?? []) {
          if (name.startsWith(leftoverPrefix)) await removeAll(join(root, folder, name));
        }
        if (root !== this.#gitDataPath) await removeEmptyFolder(join(root, folder));
      }
    }
  }

  beginSnapshot(): RepositoriesSnapshot | undefined {
    if (!this.#context.refsKept.begin()) return undefined;
    const folder = join(this.#gitDataPath, `${leftoverPrefix}snapshot-${randomBytes(6).toString("hex")}`);
    const { refsKept, clock } = this.#context;
    this.#snapshot = new RepositoriesSnapshot(this, refsKept, this.#gitDataPath, folder, clock.nowMs());
    return this.#snapshot;
  }

  endSnapshot(): void {
    this.#snapshot = undefined;
    this.#context.refsKept.end();
  }

  withLocks<T>(addresses: readonly RepositoryAddress[], work: () => Promise<T>): Promise<T> {
    // Housekeeping goes on: most who take a lock find nothing to write. Who writes stops it (updateRefs).
    return this.#context.workLocks.runAll(
      addresses.map(({ key }) => key),
      work,
    );
  }

  onChange(listener: (address: RepositoryAddress) => void): () => void {
    this.#watchers.add(listener);
    return () => this.#watchers.delete(listener);
  }
}
