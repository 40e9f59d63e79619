// All repositories of this server: made, found, opened, deleted, listed; locks in a fixed order. Made from addresses
// only. Whether one may be served is for the catalogue, not for the disk. Where several machines share their packs, rows say
// which repositories there are, and directories are copies (shared-packs.ts): one that is missing here says nothing.

import { randomBytes } from "node:crypto";
import { stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Clock } from "../base/clock.js";
import { ifPresent } from "../base/durable-files.js";
import { InUse, KeyedLock } from "../base/keyed-lock.js";
import { hasLargeFileRows, removeLargeFiles } from "../catalogue/large-files.js";
import { wantedFormat } from "../catalogue/object-format.js";
import { anyRef, changedRepositories, refsVersion, removeRefs, unalignedRepositories } from "../catalogue/refs.js";
import { type RepositoryArea, type RepositoryName, repositoryKey } from "../catalogue/repositories.js";
import type { ObjectFormat } from "../nostr/nip34.js";
import type { Commit, Store, TableReader, Transaction } from "../store/port.js";
import { diskAddress, type RepositoryAddress } from "./address.js";
import { changeRefs, type PlanBasis, type RefChanges } from "./change-refs.js";
import type { UnclaimedData } from "./quarantine.js";
import { RefAlignment, RefTables } from "./ref-tables.js";
import { GitRepository } from "./repository.js";
import {
  createRepositoryFiles,
  type FoundDirectory,
  formatIn,
  hasOurConfig,
  leftoverPrefix,
  removeEmptyFolder,
  removeRepositoryFiles,
  replaceRepositoryFiles,
  repositoryDirectories,
  sweepLeftovers,
} from "./repository-files.js";
import type { RepositoryContext } from "./repository-refs.js";
import type { Git } from "./run.js";
import type { PacksHost, SharedPacks } from "./shared-packs.js";
import type { RepositoriesHost, SharedRepositories } from "./shared-repositories.js";
import { RepositoriesSnapshot } from "./snapshot.js";

/** What is loaded only where packs are shared. */
export interface Sharing {
  packs(host: PacksHost): SharedPacks;
  repositories(context: RepositoryContext, host: RepositoriesHost): SharedRepositories;
}

interface RepositoriesOptions {
  readonly gitDataPath: string;
  readonly git: Git;
  readonly clock: Clock;
  readonly store: Store;
  /** Where several machines share their packs. */
  readonly share?: Sharing | undefined;
  /** Refs kept in memory over all repositories; about 300 bytes each. */
  readonly maxRefsInMemory?: number;
}

/** Asked when nobody can make it, and in the transaction that removes it. */
type IsUnwanted = (reader: TableReader) => Promise<boolean>;

const isThere = async (directory: string): Promise<boolean> => (await ifPresent(stat(directory))) !== undefined;

export class Repositories {
  readonly #gitDataPath: string;
  readonly #context: RepositoryContext;
  #snapshot: RepositoriesSnapshot | undefined;
  readonly #watchers = new Set<(address: RepositoryAddress) => void>();
  /** Set where several machines share their packs. */
  readonly shared: SharedRepositories | undefined;

  constructor({ gitDataPath, git, clock, store, share, maxRefsInMemory = 1_000_000 }: RepositoriesOptions) {
    // git runs in another working directory.
    this.#gitDataPath = resolve(gitDataPath);
    const changed = (address: RepositoryAddress): void => {
      for (const watcher of this.#watchers) watcher(address);
    };
    this.#context = {
      git,
      clock,
      store,
      tables: new RefTables(maxRefsInMemory),
      behind: new Map(),
      alignment: new RefAlignment(store, clock),
      fetchable: { basis: new WeakMap(), changes: 0 },
      refLocks: new KeyedLock(),
      workLocks: new KeyedLock(),
      inUse: new InUse(),
      takenBack: { count: 0 },
      swept: new Set(),
      foreign: { changes: 0 },
      changed,
      packs: share?.packs({
        gitDataPath: this.#gitDataPath,
        changed,
        madeAnew: ({ key }) => this.#context.behind.set(key, { names: undefined }),
        withFolder: (directory, work) => this.#withFolder(directory, work),
      }),
    };
    this.shared = share?.repositories(this.#context, {
      open: (address) => this.open(address),
      removeCopy: (address) => this.#removeCopy(address),
    });
    store.onForeignCommit((commit) => this.#follow(commit));
  }

  /** Another machine changed refs or packs: what is known of them in memory is old, and so are git's own files here. */
  #follow(commit: Commit): undefined {
    const { tables, behind, foreign } = this.#context;
    const keys = new Set(changedRepositories(commit));
    for (const key of keys) {
      foreign.changes += 1;
      tables.delete(key);
      behind.set(key, { names: undefined });
    }
    this.shared?.follow(commit, keys);
  }

  /** What plans for these rest on: asked before their objects are looked at, and the answer in the transaction. */
  async basisOf(addresses: readonly RepositoryAddress[]): Promise<PlanBasis | undefined> {
    return await this.shared?.basisOf(addresses);
  }

  /** With the placeholder's row. False: the repository is gone. */
  async noteUnclaimed(tx: Transaction, address: RepositoryAddress, data: UnclaimedData): Promise<boolean> {
    return this.shared ? await this.shared.packs.unclaimed.note(tx, address, data) : true;
  }

  /** Ends what is done in the background. */
  async close(): Promise<void> {
    await this.shared?.close();
  }

  /** Before something is served that must not be old: see `Store.upToDate`. */
  upToDate(): Promise<void> | undefined {
    return this.#context.store.upToDate();
  }

  get git(): Git {
    return this.#context.git;
  }

  open(address: RepositoryAddress): GitRepository {
    return new GitRepository(this.#context, address, address.directoryUnder(this.#gitDataPath));
  }

  /** The format a repository has, or would have if it were made now. */
  async formatFor(address: RepositoryAddress): Promise<ObjectFormat> {
    return (await this.exists(address))
      ? (await this.open(address).refs()).format
      : await wantedFormat(this.#context.store, address);
  }

  /**
   * Bare, HEAD at refs/heads/master, our config, in the format its row says; durable when it resolves. Existing ones are
   * left as they are.
   */
  async create(address: RepositoryAddress): Promise<GitRepository> {
    const repository = this.open(address);
    const { packs } = this.#context;
    await this.#context.refLocks.run(address.key, async () => {
      if (packs) return await packs.create(repository, () => wantedFormat(this.#context.store, address));
      // Rows without a directory speak of objects that are lost. First: after a crash in between they would count again.
      if (!(await isThere(repository.directory))) await this.#forget(address);
      const format = await repository.expectedFormat();
      const create = () => createRepositoryFiles(repository.directory, address.identifier, format);
      const how = await this.#withFolder(repository.directory, create);
      if (how === "completed") this.#context.behind.set(address.key, { names: undefined });
    });
    return repository;
  }

  /**
   * An announced repository without refs whose row says another format than its files have: unclaimed data goes with it
   * (git-http.md, "SHA-256 repositories"). False: it is as it should be.
   */
  async remakeInFormat(address: RepositoryAddress): Promise<boolean> {
    const { store, workLocks, refLocks, inUse, packs } = this.#context;
    const { directory } = this.open(address);
    const hasOther = async (reader: TableReader): Promise<boolean> => {
      const wanted = await wantedFormat(reader, address);
      if (packs) return await packs.listed.isOfAnother(reader, address, wanted);
      return (await hasOurConfig(directory)) && formatIn(directory) !== wanted;
    };
    const isOther = async (reader: TableReader = store): Promise<boolean> =>
      address.area === "main" && (await hasOther(reader)) && (await anyRef(reader, address)) === undefined;
    if (!(await isOther())) return false;
    await this.#snapshot?.keep(address);
    const remake = async (): Promise<boolean> => {
      if (!(await isOther())) return false;
      if (packs) {
        const isRemade = await packs.listed.remake(address, (reader) => wantedFormat(reader, address), isOther);
        this.#forgetInMemory(address);
        return isRemade;
      }
      const format = await wantedFormat(store, address);
      await this.#withFolder(directory, () => replaceRepositoryFiles(directory, format));
      this.#forgetInMemory(address);
      return true;
    };
    // A push that is being written ends first, and then has fixed the format.
    const locked = (): Promise<boolean> => workLocks.run(address.key, () => refLocks.run(address.key, remake));
    return await inUse.during([address.key], locked, { always: true });
  }

  /** Innermost of all locks: a folder must not go while a repository is made in it. */
  #withFolder<T>(directory: string, work: () => Promise<T>): Promise<T> {
    return this.#context.refLocks.run(`folder ${dirname(directory)}`, work);
  }

  /** While the work runs, housekeeping and `removeIfEmpty` stay away. */
  whileUsed<T>(address: RepositoryAddress, work: () => Promise<T>): Promise<T> {
    return this.open(address).duringPush(work);
  }

  /** Deletes one without refs and without unclaimed data, unless others use it. `ownUses`: uses that are the caller's own. */
  async removeIfEmpty(address: RepositoryAddress, ownUses = 0): Promise<boolean> {
    const { workLocks, refLocks, inUse } = this.#context;
    const repository = this.open(address);
    if (inUse.workersIn(address.key) > ownUses || !(await this.exists(address))) return false;
    const { store, packs } = this.#context;
    const isEmpty = async (reader: TableReader): Promise<boolean> => {
      if ((await anyRef(reader, address)) !== undefined) return false;
      if (packs) return await packs.listed.isEmpty(reader, address);
      return (await repository.unclaimed()).length === 0 && !(await repository.hasLargeFiles());
    };
    const remove = async (): Promise<boolean> => {
      if (!(await isEmpty(store))) return false;
      await this.#snapshot?.keep(address);
      // Asked last: whoever begins to use it after this waits for the lock and makes it again. One is this removal.
      if (inUse.workersIn(address.key) > ownUses + 1) return false;
      return await this.#removeWhole(repository, isEmpty);
    };
    const locked = (): Promise<boolean> => workLocks.run(address.key, () => refLocks.run(address.key, remove));
    return inUse.during([address.key], locked, { always: true });
  }

  async exists(address: RepositoryAddress): Promise<boolean> {
    const { packs } = this.#context;
    if (packs) return await packs.listed.exists(address);
    // Not at once: the hunt asks too, right after an event, and its whole look would come before the event's answer leaves.
    return (await ifPresent(stat(join(this.open(address).directory, "HEAD")))) !== undefined;
  }

  /** Gone at once (renamed away), then removed. `isUnwanted` is asked when nobody can make it; false: it stays. */
  async delete(address: RepositoryAddress, isUnwanted: IsUnwanted = async () => true): Promise<boolean> {
    await this.#snapshot?.keep(address);
    const remove = async (): Promise<boolean> =>
      (await isUnwanted(this.#context.store)) && (await this.#removeWhole(this.open(address), isUnwanted));
    const { inUse, refLocks } = this.#context;
    return inUse.during([address.key], () => refLocks.run(address.key, remove), { always: true });
  }

  /** Directory and rows. Where machines share them the rows say it, so they go first, if it is still unwanted then. */
  async #removeWhole({ address, directory }: GitRepository, isUnwanted: IsUnwanted): Promise<boolean> {
    const removeRest = async (tx: Transaction): Promise<void> => {
      await removeRefs(tx, address);
      await removeLargeFiles(tx, address);
    };
    if (this.shared && !(await this.shared.removeRows(address, isUnwanted, removeRest))) return false;
    await this.#remove(directory);
    if (this.shared) this.#forgetInMemory(address);
    else await this.#forget(address);
    return true;
  }

  /** Only this machine's. */
  async #removeCopy(address: RepositoryAddress): Promise<void> {
    await this.#snapshot?.keep(address);
    await this.#remove(this.open(address).directory);
    this.#forgetInMemory(address);
  }

  async #remove(directory: string): Promise<void> {
    await removeRepositoryFiles(directory);
    await this.#withFolder(directory, () => removeEmptyFolder(dirname(directory)));
  }

  /** Under the ref lock. The directory goes first: rows without one are forgotten when it is made again. */
  async #forget(address: RepositoryAddress): Promise<void> {
    const { store } = this.#context;
    if ((await refsVersion(store, address)) > 0 || (await hasLargeFileRows(store, address))) {
      await store.transact(async (tx) => {
        await removeRefs(tx, address);
        await removeLargeFiles(tx, address);
      });
    }
    this.#forgetInMemory(address);
  }

  #forgetInMemory({ key }: RepositoryAddress): void {
    const { tables, behind, alignment, packs } = this.#context;
    tables.delete(key);
    packs?.forget(key);
    behind.delete(key);
    alignment.forget(key);
  }

  /** The only way refs change: see change-refs.ts. */
  changeRefs<T>(
    changes: RefChanges,
    alongside: (tx: Transaction) => Promise<T>,
    committed?: (result: T) => void,
  ): Promise<T> {
    return changeRefs(this.#context, changes, alongside, committed);
  }

  /** At start: files that a crash left behind their rows follow them. One that cannot stops no other, and is tried again later. */
  async alignAll(failed: (error: unknown) => void): Promise<void> {
    const { store, behind, refLocks, alignment } = this.#context;
    if (this.shared) return await this.shared.comeUpAll(repositoryDirectories(this.#gitDataPath, ["main", "prs"]));
    for await (const name of unalignedRepositories(store)) {
      const repository = this.open(diskAddress(name));
      const { address } = repository;
      if (!(await isThere(repository.directory))) {
        await refLocks.run(address.key, () => this.#forget(address));
        continue;
      }
      behind.set(address.key, { names: undefined });
      try {
        // Damage may have taken HEAD away and left the rest.
        await this.create(address);
        await repository.bringInLine();
      } catch (error) {
        failed(error);
        alignment.add(repository);
      }
    }
  }

  /** Repositories whose files do not say yet what their rows say. */
  get countBehind(): number {
    return this.#context.behind.size;
  }

  get alignment(): RefAlignment {
    return this.#context.alignment;
  }

  /** Every repository there is, with the identifier that its directory records. `reader`: where packs are shared, as it sees them. */
  async *list(
    areas: readonly RepositoryArea[] = ["main", "prs"],
    reader?: TableReader,
  ): AsyncGenerator<FoundDirectory> {
    const { packs } = this.#context;
    if (!packs) return yield* repositoryDirectories(this.#gitDataPath, areas);
    for await (const address of packs.listed.list(areas, reader)) {
      const { area, npub, owner, identifier } = address;
      yield { npubOrOwner: area === "main" ? npub : owner, identifier, address };
    }
  }

  /** At start: what was begun and not finished, or deleted and not removed, goes. Repositories are swept when first opened. */
  sweep(): Promise<void> {
    return sweepLeftovers(this.#gitDataPath);
  }

  /**
   * From this call on the objects of this moment are kept, until `endSnapshot`. Undefined: another snapshot is being
   * taken. The caller removes the folder when it needs it no longer; the next start removes one that was left.
   */
  beginSnapshot(): RepositoriesSnapshot | undefined {
    if (this.#snapshot) return undefined;
    const folder = join(this.#gitDataPath, `${leftoverPrefix}snapshot-${randomBytes(6).toString("hex")}`);
    this.#snapshot = new RepositoriesSnapshot(this, this.#gitDataPath, folder, this.#context.clock.nowMs());
    return this.#snapshot;
  }

  /** While it is, files that rows of its moment name stay. */
  get isBeingCopied(): boolean {
    return this.#snapshot !== undefined;
  }

  endSnapshot(): void {
    this.#snapshot = undefined;
  }

  /** Runs alone among all work that names one of these repositories; taken in a fixed order, so it cannot deadlock. */
  withLocks<T>(addresses: readonly RepositoryAddress[], work: () => Promise<T>): Promise<T> {
    // Housekeeping goes on: most who take a lock find nothing to write. Who writes stops it (updateRefs).
    const keys = addresses.map(({ key }) => key);
    const elsewhere = this.#context.packs?.repositoryLocks;
    return this.#context.workLocks.runAll(keys, elsewhere ? () => elsewhere.during(keys, work) : work);
  }

  /** Another machine brings something there, as far as can be learned. */
  async isBusyElsewhere(name: RepositoryName): Promise<boolean> {
    return (await this.#context.packs?.repositoryLocks?.isBusyElsewhere(repositoryKey(name))) ?? false;
  }

  /** Called after packs or refs of a repository changed. The answer stops it. */
  onChange(listener: (address: RepositoryAddress) => void): () => void {
    this.#watchers.add(listener);
    return () => this.#watchers.delete(listener);
  }
}
