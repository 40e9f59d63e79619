// How this machine's repositories follow what other machines do to them: what is known in memory is dropped in the turn in
// which the change is learned; files follow in the background, or before somebody is served.

import { join } from "node:path";
import { type PackHold, packListOf, packLists, setHold } from "../catalogue/packs.js";
import { forgetAligned, removeSomeRefs, unalignedRepositories } from "../catalogue/refs.js";
import { repositoryOfKey } from "../catalogue/repositories.js";
import type { Commit, TableReader, Transaction } from "../store/port.js";
import { diskAddress, type RepositoryAddress } from "./address.js";
import { Overtaken, type PlanBasis } from "./change-refs.js";
import { newId } from "./listed-repositories.js";
import { completeCopy } from "./pack-copies.js";
import { PackFollowers } from "./pack-followers.js";
import { unclaimedEventsIn, unclaimedFolder } from "./repository-files.js";
import type { RepositoryContext, RepositoryRefs } from "./repository-refs.js";
import type { SharedPacks } from "./shared-packs.js";

export interface RepositoriesHost {
  open(address: RepositoryAddress): RepositoryRefs;
  /** The directory on this machine. */
  removeCopy(address: RepositoryAddress): Promise<void>;
}

/** Of a backup whose end nobody heard of. */
const longestHoldMs = 86_400_000;

/** Some 300 kB of a change. */
const refsAtOnce = 2_000;

export class SharedRepositories {
  readonly #background = new PackFollowers();
  readonly #lossWatchers = new Set<(address: RepositoryAddress) => Promise<void>>();
  /** Repositories of whose losses the watchers were told last. */
  readonly #lacking = new Set<string>();

  constructor(
    private readonly context: RepositoryContext,
    readonly packs: SharedPacks,
    private readonly host: RepositoriesHost,
  ) {
    // No commit of another machine will tell it.
    packs.onLost = (address) => this.#background.add(address.key, () => this.#comeUp(address));
  }

  /** `keys`: repositories whose refs changed. */
  follow(commit: Commit, keys: Set<string>): void {
    const { tables, foreign, takenBack, fetchable } = this.context;
    const { lists, unclaimed } = this.packs.changedBy(commit);
    for (const key of lists) {
      // Its format may be another, and objects may be gone on which something here is planned.
      foreign.changes += 1;
      takenBack.count += 1;
      tables.delete(key);
      this.packs.forget(key);
      keys.add(key);
    }
    for (const key of unclaimed) {
      fetchable.changes += 1;
      tables.delete(`unclaimed ${key}`);
      this.#dropUnclaimedLater(key);
    }
    for (const key of keys) {
      const name = repositoryOfKey(key);
      if (name) this.#background.add(key, () => this.#comeUp(diskAddress(name)));
    }
  }

  /** What another machine did to a repository is done here too, before somebody asks for it. */
  async #comeUp(address: RepositoryAddress): Promise<void> {
    const { listed } = this.packs;
    if (!(await listed.exists(address))) return await this.#removeCopy(address);
    // What cannot be had now is fetched when somebody asks.
    await this.host
      .open(address)
      .bringInLine()
      .catch(() => undefined);
    this.context.changed(address);
    const isLacking = (await listed.lost(address)).length > 0;
    // Also when another machine had them after all: nobody need look for them any longer.
    if (!isLacking && !this.#lacking.delete(address.key)) return;
    if (isLacking) this.#lacking.add(address.key);
    for (const watcher of this.#lossWatchers) await watcher(address);
  }

  /** Without this the data that another machine ended or claimed would lie here for ever. */
  #dropUnclaimedLater(key: string): void {
    this.#background.add(`unclaimed ${key}`, async () => {
      const { context, packs } = this;
      const list = await packListOf(context.store, key);
      // Its directory goes as a whole.
      if (!list) return;
      const address = diskAddress(list);
      const drop = () => packs.unclaimed.dropForgotten(address, this.#unclaimedFolder(address));
      // Under the lock of pushes: theirs is on disk before its row is written.
      await context.workLocks.run(key, drop);
    });
  }

  #unclaimedFolder(address: RepositoryAddress): string {
    return join(this.host.open(address).directory, unclaimedFolder);
  }

  /** Whoever begins to hunt is told what was lost before: once more, one after the other. */
  async tellLosses(): Promise<void> {
    for await (const { lost, ...name } of packLists(this.context.store)) {
      if (!lost?.length) continue;
      const address = diskAddress(name);
      this.#background.add(address.key, () => this.#comeUp(address));
    }
  }

  async #removeCopy(address: RepositoryAddress): Promise<void> {
    const { inUse, workLocks, refLocks } = this.context;
    const remove = async (): Promise<void> => {
      // One is this removal. Who uses it brings it in line, or makes it again.
      if (inUse.workersIn(address.key) > 1 || (await this.packs.listed.exists(address))) return;
      await this.host.removeCopy(address);
      await this.context.store.transact(async (tx) => forgetAligned(tx, address), { isLocal: true });
    };
    const locked = (): Promise<void> => workLocks.run(address.key, () => refLocks.run(address.key, remove));
    await inUse.during([address.key], locked, { always: true });
  }

  /** At start. Nothing is waited for: a repository is brought in line before it is served, the others one after the other. */
  async comeUpAll(directories: AsyncIterable<{ readonly address: RepositoryAddress | undefined }>): Promise<void> {
    for await (const name of unalignedRepositories(this.context.store)) {
      const address = diskAddress(name);
      this.context.behind.set(address.key, { names: undefined });
      this.#background.add(address.key, () => this.#comeUp(address));
    }
    // What other machines removed while this one was away.
    for await (const { address } of directories) {
      if (!address) continue;
      const isGone = !(await this.packs.listed.exists(address));
      if (isGone) this.#background.add(address.key, () => this.#comeUp(address));
      else if ((await unclaimedEventsIn(this.#unclaimedFolder(address))).length > 0)
        this.#dropUnclaimedLater(address.key);
    }
  }

  /** The rows of one that is not wanted, in changes that the log can hold. False: it is wanted. */
  async removeRows(
    address: RepositoryAddress,
    isUnwanted: (reader: TableReader) => Promise<boolean>,
    removeRest: (tx: Transaction) => Promise<void>,
  ): Promise<boolean> {
    const { store } = this.context;
    if (!(await this.packs.listed.exists(address))) return true;
    for (;;) {
      const step = await store.transact(async (tx): Promise<"wanted" | "more" | "gone"> => {
        if (!(await isUnwanted(tx))) return "wanted";
        if (await removeSomeRefs(tx, address, refsAtOnce)) return "more";
        await this.packs.listed.remove(tx, address);
        await removeRest(tx);
        return "gone";
      });
      if (step !== "more") return step === "gone";
    }
  }

  /** See Repositories.basisOf. */
  async basisOf(addresses: readonly RepositoryAddress[]): Promise<PlanBasis> {
    const { listed } = this.packs;
    const seen = await Promise.all(
      addresses.map(async (address) => ({ address, basis: await listed.basisOf(address) })),
    );
    return async (tx) => {
      for (const { address, basis } of seen) {
        if (!(await listed.rests(tx, address, basis))) throw new Overtaken(`packs of ${address.label} went`);
      }
    };
  }

  /** Until it is released, what leaves the lists stays in the pack store. */
  async hold(): Promise<() => Promise<void>> {
    const { store, clock } = this.context;
    const [id, since] = [newId(), clock.nowMs()];
    const set = (hold?: PackHold): Promise<void> => store.transact(async (tx) => setHold(tx, id, hold));
    await set({ since, until: since + longestHoldMs });
    return () => set();
  }

  /** A copy of that repository gets what it lacks of what the reader's rows name. */
  completeCopy(reader: TableReader, address: RepositoryAddress, directory: string): Promise<void> {
    return completeCopy(this.packs, reader, address, directory);
  }

  /** Everything there is, in the directories of this machine: for a server that leaves the cluster. */
  async bringAllHere(progress: (done: number) => void): Promise<number> {
    let count = 0;
    for await (const address of this.packs.listed.list(["main", "prs"])) {
      const repository = this.host.open(address);
      await repository.bringInLine();
      await completeCopy(this.packs, this.context.store, address, repository.directory);
      progress(++count);
    }
    return count;
  }

  /** Called when the pack store has lost packs of a repository, and when it has them again; on every machine. */
  onLoss(watcher: (address: RepositoryAddress) => Promise<void>): void {
    this.#lossWatchers.add(watcher);
  }

  idle(): Promise<void> {
    return this.#background.idle();
  }

  close(): Promise<void> {
    return this.#background.close();
  }
}
