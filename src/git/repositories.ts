// All repositories of this server: made, found, opened, deleted, listed; locks in a fixed order. Made from addresses
// only. Whether one may be served is for the catalogue, not for the disk.

import { readdir, readFile, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Clock } from "../base/clock.js";
import type { RepositoryAddress } from "./address.js";
import { ifPresent } from "./durable-files.js";
import { GivingWay } from "./giving-way.js";
import { KeyedLock } from "./keyed-lock.js";
import { RefTables } from "./ref-tables.js";
import { GitRepository, type RepositoryContext } from "./repository.js";
import {
  createRepositoryFiles,
  identifierFile,
  isRepositoryDirectory,
  leftoverPrefix,
  removeRepositoryFiles,
} from "./repository-files.js";
import type { Git } from "./run.js";
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
  readonly #watchers = new Set<(address: RepositoryAddress) => void>();

  constructor({ gitDataPath, git, clock, maxRefsInMemory = 1_000_000 }: RepositoriesOptions) {
    // git runs in another working directory.
    this.#gitDataPath = resolve(gitDataPath);
    this.#context = {
      git,
      clock,
      tables: new RefTables(maxRefsInMemory),
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
      if (await createRepositoryFiles(repository.directory, address.identifier)) this.#forget(address);
    });
    return repository;
  }

  async exists(address: RepositoryAddress): Promise<boolean> {
    return (await ifPresent(readFile(join(this.open(address).directory, "HEAD")))) !== undefined;
  }

  async delete(address: RepositoryAddress): Promise<void> {
    const remove = async (): Promise<void> => {
      this.#forget(address);
      await removeRepositoryFiles(this.open(address).directory);
    };
    await this.#context.givingWay.during([address.key], () => this.#context.refLocks.run(address.key, remove));
  }

  #forget({ key }: RepositoryAddress): void {
    this.#context.tables.delete(key);
    this.#context.tables.publish(key);
  }

  async *list(): AsyncGenerator<{ npubOrOwner: string; identifier: string; area: "main" | "prs" }> {
    for (const area of ["main", "prs"] as const) {
      const root = area === "main" ? this.#gitDataPath : join(this.#gitDataPath, "prs");
      for (const npubOrOwner of (await ifPresent(readdir(root))) ?? []) {
        if (area === "main" && npubOrOwner === "prs") continue;
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
        for (const name of (await ifPresent(readdir(join(root, folder)))) ?? []) {
          if (name.startsWith(leftoverPrefix)) await rm(join(root, folder, name), { recursive: true, force: true });
        }
      }
    }
  }

  withLocks<T>(addresses: readonly RepositoryAddress[], work: () => Promise<T>): Promise<T> {
    const keys = addresses.map(({ key }) => key);
    return this.#context.givingWay.during(keys, () => this.#context.workLocks.runAll(keys, work));
  }

  onChange(listener: (address: RepositoryAddress) => void): () => void {
    this.#watchers.add(listener);
    return () => this.#watchers.delete(listener);
  }
}
