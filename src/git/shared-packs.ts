// The packs of repositories where several machines share them. Rows say which repositories there are and which packs make up
// each (catalogue/packs.ts); the pack store has the files; this machine's directories hold copies: exactly the packs that are
// listed, fetched before they are needed. Whoever brings packs puts them into the store, and lists them in the transaction that
// names their objects, if nothing went of what they were checked against.
// Between the putting into place and the commit this machine's directory holds packs that no list has yet; a plan that saw
// them is made again when they are taken back (RepositoryContext.takenBack).

import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.js";
import { removeAll, syncPath } from "../base/durable-files.js";
import { KeyedLock, UseCounts } from "../base/keyed-lock.js";
import {
  addPacks,
  bytesOf,
  changedPacks,
  goingSince,
  listedPacks,
  noteLost,
  type PackBasis,
  type PackList,
  packList,
  type StoredPack,
  stillRests,
} from "../catalogue/packs.js";
import type { RepositoryLocks } from "../cluster/repository-locks.js";
import type { ObjectFormat } from "../nostr/nip34.js";
import { type PackStore, PackStoreError } from "../packs/port.js";
import type { Commit, Store, TableReader, Transaction } from "../store/port.js";
import type { RepositoryAddress } from "./address.js";
import { ListedRepositories, newId } from "./listed-repositories.js";
import { dropRetired, hasPack, isPackWhole, removePack, retirePacks } from "./local-packs.js";
import { fetchPack, LostPackError, putPack } from "./pack-transfer.js";
import type { RefTable } from "./ref-tables.js";
import {
  createRepositoryFiles,
  formatIn,
  leftoverPrefix,
  packsIn,
  replaceRepositoryFiles,
} from "./repository-files.js";
import { ObjectsUnavailableError } from "./run.js";
import { SharedFiles } from "./shared-files.js";
import { repackShared } from "./shared-repack.js";
import { UnclaimedPacks } from "./unclaimed-packs.js";

/** A repository's directory on this machine. */
export interface PackHome {
  readonly address: RepositoryAddress;
  readonly directory: string;
}

/** What the repositories of this machine do for the packs. */
export interface PacksHost {
  readonly gitDataPath: string;
  /** A folder must not go while a repository is made in it. */
  withFolder<T>(directory: string, work: () => Promise<T>): Promise<T>;
  changed(address: RepositoryAddress): void;
  /** Its directory here was made: none of git's files in it says yet what the rows say. */
  madeAnew(address: RepositoryAddress): void;
}

export interface SharedPacksParts {
  readonly packs: PackStore;
  readonly store: Store;
  readonly clock: Clock;
  /** Whether this machine does what one machine does for all: it joins packs. */
  readonly leads: () => boolean;
  /** So that machines do not do the same work twice. */
  readonly locks?: RepositoryLocks | undefined;
}

/** Packs on their way: put into the store, and listed or given up. */
export interface BroughtPacks {
  readonly bytes: number;
  readonly packs: readonly StoredPack[];
  /** In the transaction that names their objects. False: what they were checked against went. */
  list(tx: Transaction): Promise<boolean>;
  /** They are listed, or are not in place any more. */
  end(): void;
}

/** A pack that was put longer ago may be about to go as one that nobody lists. */
const listWithinMs = 3_600_000;
const fetchesAtOnce = 4;
/** A store that does not answer is not asked again for every request. */
const askAgainMs = 1_000;

export class SharedPacks {
  /** Repositories whose directory here holds exactly what their list says. */
  readonly #ready = new Set<string>();
  /** Those that are being brought in line; `isStale`: their list changed meanwhile. */
  readonly #underWay = new Map<string, { isStale: boolean }>();
  /** Those that were looked at since the start. */
  readonly #seen = new Set<string>();
  readonly #failed = new Map<string, { readonly error: unknown; readonly untilMs: number }>();
  /** `<key> <pack>`: in place here and not listed yet. */
  readonly #brought = new UseCounts();
  /** One at a time changes a repository's packs here. */
  readonly locks = new KeyedLock();
  /** Which repositories there are, and with which packs. */
  readonly listed: ListedRepositories;
  readonly unclaimed: UnclaimedPacks;
  /** This machine was the first to notice that packs are lost. */
  onLost: (address: RepositoryAddress) => void = () => undefined;
  readonly files: SharedFiles;
  readonly leads: () => boolean;
  readonly repositoryLocks: RepositoryLocks | undefined;
  readonly #store: Store;
  readonly #packs: PackStore;
  readonly #clock: Clock;

  constructor(
    parts: SharedPacksParts,
    readonly host: PacksHost,
  ) {
    this.#store = parts.store;
    this.#packs = parts.packs;
    this.#clock = parts.clock;
    this.leads = parts.leads;
    this.repositoryLocks = parts.locks;
    this.listed = new ListedRepositories(parts.store, parts.clock);
    this.files = new SharedFiles(parts.packs, parts.clock);
    this.unclaimed = new UnclaimedPacks({
      ...{ store: this.#store, clock: this.#clock },
      put: (address, folder, name) => this.put(address, folder, name),
      fetch: (folder, pack) => this.fetchInto(folder, pack),
      mayBeListed: (tx, packs) => this.mayBeListed(tx, packs),
    });
  }

  changedBy(commit: Commit): ReturnType<typeof changedPacks> {
    return changedPacks(commit);
  }

  /** Its row, and its directory here; no pack is fetched for it. */
  async create(home: PackHome, wanted: () => Promise<ObjectFormat>): Promise<void> {
    await this.listed.make(home.address, wanted);
    await this.#createFiles(home, (await this.listed.formatOf(home.address)) ?? (await wanted()));
  }

  async #createFiles({ address, directory }: PackHome, format: ObjectFormat): Promise<void> {
    const create = () => createRepositoryFiles(directory, address.identifier, format);
    if ((await this.host.withFolder(directory, create)) !== "was there") this.host.madeAnew(address);
  }

  /** Its list is not what it was. */
  forget(key: string): void {
    this.#ready.delete(key);
    this.#failed.delete(key);
    const underWay = this.#underWay.get(key);
    if (underWay) underWay.isStale = true;
  }

  isReady(key: string): boolean {
    return this.#ready.has(key);
  }

  /**
   * Its directory here gets what it lacks and loses what is not listed. `tolerant`: packs that cannot be had do not matter,
   * because what is lost is being brought again.
   */
  async bringHere(home: PackHome, { tolerant = false } = {}): Promise<void> {
    const { key } = home.address;
    await this.locks.run(key, async () => {
      const failed = this.#failed.get(key);
      if (failed && !tolerant && this.#clock.monotonicMs() < failed.untilMs) throw failed.error;
      while (!this.#ready.has(key)) {
        const state = { isStale: false };
        this.#underWay.set(key, state);
        try {
          const isWhole = await this.#align(home, tolerant);
          if (!state.isStale && isWhole) this.#ready.add(key);
          if (!state.isStale) return;
        } catch (error) {
          const untilMs = this.#clock.monotonicMs() + askAgainMs;
          // With another list the next attempt may end otherwise.
          if (error instanceof ObjectsUnavailableError && !state.isStale) this.#failed.set(key, { error, untilMs });
          throw error;
        } finally {
          this.#underWay.delete(key);
        }
      }
      this.#failed.delete(key);
    });
  }

  /** False: something could not be had. */
  async #align(home: PackHome, tolerant: boolean): Promise<boolean> {
    const { address, directory } = home;
    const list = await packList(this.#store, address);
    if (!list) return true;
    await this.#makeDirectory(home, list.format);
    if (!this.#seen.has(address.key)) await dropRetired(directory);
    this.#seen.add(address.key);
    const wanted = await listedPacks(this.#store, address);
    const folder = join(directory, "objects/pack");
    const lacking: StoredPack[] = [];
    for (const pack of wanted) if (!(await hasPack(folder, pack))) lacking.push(pack);
    const lost = await this.#fetchAll(home, list, lacking, tolerant);
    const listed = new Set(wanted.map(({ name }) => name));
    const others = (await packsIn(folder)).filter(
      (name) => !listed.has(name) && !this.#brought.has(`${address.key} ${name}`),
    );
    if (others.length > 0) await retirePacks(directory, others, this.#clock.nowMs());
    if (lacking.length + others.length > 0) {
      await syncPath(folder);
      this.host.changed(address);
    }
    if (lost) return false;
    if (list.lost) await this.#restoreLost(home, list, wanted);
    return true;
  }

  /** Some machine could not have these from the store, and this one has them: they are put there again. */
  async #restoreLost({ address, directory }: PackHome, list: PackList, wanted: readonly StoredPack[]): Promise<void> {
    const folder = join(directory, "objects/pack");
    for (const pack of wanted.filter(({ name }) => list.lost?.includes(name))) {
      if (!(await isPackWhole(folder, pack))) {
        await removePack(directory, pack.name);
        throw new ObjectsUnavailableError("lost", `${pack.name} of ${address.label} is damaged: it is looked for`);
      }
      await this.put(address, folder, pack.name);
    }
    await this.#store.transact(async (tx) => {
      const now = await packList(tx, address);
      if (now && now.made === list.made && now.version === list.version) noteLost(tx, now, []);
    });
  }

  async #makeDirectory(home: PackHome, format: ObjectFormat): Promise<void> {
    await this.#createFiles(home, format);
    if (formatIn(home.directory) === format) return;
    await this.host.withFolder(home.directory, () => replaceRepositoryFiles(home.directory, format));
    this.host.madeAnew(home.address);
  }

  /** True: some could not be had, which was tolerated. */
  async #fetchAll(home: PackHome, list: PackList, lacking: readonly StoredPack[], tolerant: boolean): Promise<boolean> {
    const waiting = [...lacking];
    const lost: string[] = [];
    const fetchSome = async (): Promise<void> => {
      for (let pack = waiting.shift(); pack; pack = waiting.shift()) {
        try {
          await this.#fetch(join(home.directory, "objects/pack"), pack);
        } catch (error) {
          if (!(error instanceof LostPackError)) {
            waiting.length = 0;
            throw this.#unavailable(error);
          }
          lost.push(error.pack);
        }
      }
    };
    const ends = await Promise.allSettled(Array.from({ length: fetchesAtOnce }, fetchSome));
    const failed = ends.find((end) => end.status === "rejected");
    if (failed && !tolerant) throw failed.reason;
    if (failed) return true;
    if (lost.length === 0) return false;
    const wasOld = !(await this.#reportLost(home.address, list, lost));
    if (tolerant || wasOld) return true;
    const sentence = `${lost.length} packs of ${home.address.label} are lost: they are looked for`;
    throw new ObjectsUnavailableError("lost", sentence);
  }

  #unavailable(error: unknown): unknown {
    if (!(error instanceof PackStoreError)) return error;
    return new ObjectsUnavailableError("unreachable", "the pack store cannot be reached: try again later", error);
  }

  /** Everybody is told, this machine too. False: the list was old, what another machine retired is gone; it is looked at again. */
  async #reportLost(address: RepositoryAddress, seen: PackList, lost: readonly string[]): Promise<boolean> {
    await this.#store.upToDate();
    const outcome = await this.#store.transact(async (tx): Promise<"old" | "known" | "noted"> => {
      const list = await packList(tx, address);
      if (!list || list.made !== seen.made || list.version !== seen.version) return "old";
      const all = [...new Set([...(list.lost ?? []), ...lost])].sort();
      if (all.length === (list.lost?.length ?? 0)) return "known";
      noteLost(tx, list, all);
      return "noted";
    });
    if (outcome !== "known") this.forget(address.key);
    if (outcome === "noted") this.onLost(address);
    return outcome !== "old";
  }

  /** One that is there already stays. Throws ObjectsUnavailableError. */
  async fetchInto(folder: string, pack: StoredPack): Promise<void> {
    if (await hasPack(folder, pack)) return;
    await this.#fetch(folder, pack).catch((error: unknown) => {
      if (error instanceof LostPackError) throw new ObjectsUnavailableError("lost", error.message, error);
      throw this.#unavailable(error);
    });
  }

  async #fetch(folder: string, pack: StoredPack): Promise<void> {
    const aside = await this.aside("fetch");
    try {
      await fetchPack(this.#packs, pack, aside);
      for (const { suffix } of pack.parts)
        await rename(join(aside, pack.name + suffix), join(folder, pack.name + suffix));
    } finally {
      await removeAll(aside);
    }
  }

  /** A folder beside the repositories, for as long as the work takes; the next start removes one that was left. */
  async aside(kind: string): Promise<string> {
    const folder = join(this.host.gitDataPath, `${leftoverPrefix}${kind}-${newId()}`);
    await mkdir(folder, { recursive: true });
    return folder;
  }

  /** Puts the packs of a folder into the store. Until `end` they are not taken for strays here. */
  async bring({ address }: PackHome, folder: string, basis: PackBasis | undefined): Promise<BroughtPacks> {
    const names = await packsIn(folder);
    const ends = names.map((name) => this.#brought.begin(`${address.key} ${name}`));
    const end = (): void => {
      for (const one of ends.splice(0)) one();
    };
    try {
      const packs: StoredPack[] = [];
      for (const name of names) packs.push(await this.put(address, folder, name));
      return { packs, bytes: bytesOf(packs), end, list: (tx) => this.#list(tx, address, packs, basis) };
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Throws ObjectsUnavailableError. */
  put(address: RepositoryAddress, folder: string, name: string): Promise<StoredPack> {
    return putPack(this.#packs, address, folder, name, this.#clock.nowMs()).catch((error: unknown) => {
      throw this.#unavailable(error);
    });
  }

  async #list(
    tx: Transaction,
    address: RepositoryAddress,
    packs: readonly StoredPack[],
    basis: PackBasis | undefined,
  ): Promise<boolean> {
    const list = await packList(tx, address);
    if (!stillRests(basis, list) || !(await this.mayBeListed(tx, packs))) return false;
    addPacks(tx, list, packs);
    return true;
  }

  /** None of them may be on its way out of the store. */
  async mayBeListed(reader: TableReader, packs: readonly StoredPack[]): Promise<boolean> {
    const oldestMs = this.#clock.nowMs() - listWithinMs;
    for (const { stored, putAt } of packs) {
      if (putAt < oldestMs || (await goingSince(reader, stored)) !== undefined) return false;
    }
    return true;
  }

  /** Copies here whose bytes are not those that were put go; they are fetched again. */
  async checkCopies({ address, directory }: PackHome): Promise<void> {
    const folder = join(directory, "objects/pack");
    await this.locks.run(address.key, async () => {
      for (const pack of await listedPacks(this.#store, address)) {
        if (!(await hasPack(folder, pack)) || (await isPackWhole(folder, pack))) continue;
        await removePack(directory, pack.name);
        this.forget(address.key);
      }
    });
  }

  /** Joins packs, if this machine is the one that does. See shared-repack.ts. */
  async repack(
    home: PackHome,
    table: RefTable,
    run: (directory: string) => Promise<void>,
    dropsGarbage: boolean,
  ): Promise<void> {
    if (!this.leads()) return;
    const alone = (key: string, work: () => Promise<void>): Promise<void> =>
      this.locks.run(key, async () => {
        const wasReady = this.#ready.has(key);
        const state = { isStale: false };
        this.forget(key);
        this.#underWay.set(key, state);
        try {
          await work();
          if (wasReady && !state.isStale) this.#ready.add(key);
        } finally {
          this.#underWay.delete(key);
        }
      });
    const parts = {
      ...{ store: this.#store, clock: this.#clock, alone },
      aside: (kind: string) => this.aside(kind),
      put: (address: RepositoryAddress, folder: string, name: string) => this.put(address, folder, name),
      mayBeListed: (reader: TableReader, packs: readonly StoredPack[]) => this.mayBeListed(reader, packs),
    };
    await repackShared(parts, home, table, run, dropsGarbage);
  }
}
