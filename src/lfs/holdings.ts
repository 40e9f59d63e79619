// What of large files is here, and what becomes of it: rows and files change together, always in this order: a file is in
// place before its row says so, and a row is gone before its file goes. What strangers bring shares the budgets of unclaimed
// pushes (git-http.md, "Large files" and "Budgets"; threats.md rows 10 and 19). Where several machines share their files, a file
// is in the pack store before its row says so, and what lies in the directory is a copy.

import { type Clock, unixSeconds } from "../base/clock.js";
import { KeyedLock } from "../base/keyed-lock.js";
import {
  changedFiles,
  deleteUnclaimedFile,
  type LargeFileId,
  type LargeFileRow,
  largeFile,
  setLargeFile,
  setUnclaimedFile,
  type UnclaimedFileRow,
  unclaimedFiles,
} from "../catalogue/large-files.js";
import {
  bookContributors,
  bookOwners,
  type RepositoryName,
  repositoryKey,
  rowForData,
  setCatalogueRow,
} from "../catalogue/repositories.js";
import { diskAddress } from "../git/address.js";
import { Overtaken } from "../git/change-refs.js";
import type { SharedFiles } from "../git/shared-files.js";
import type { Pubkey } from "../nostr/event.js";
import type { OtherUnclaimed } from "../purgatory/placeholders.js";
import type { Purgatory } from "../purgatory/purgatory.js";
import type { Commit, LedBy, Transaction } from "../store/port.js";
import {
  filesIn,
  isWhole,
  largeFilePath,
  linkFile,
  moveFile,
  type NextChunk,
  receiveFile,
  removeFile,
  sizeOfFile,
  unclaimedIn,
  unclaimedPath,
} from "./files.js";
import type { Pointer } from "./pointer.js";

export class Holdings implements OtherUnclaimed {
  /** Mirrors the rows of the store. */
  readonly #unclaimed = new Map<string, UnclaimedFileRow>();
  readonly #clock: Clock;
  /** One file's row and bytes change together. */
  readonly #locks = new KeyedLock();

  constructor(private readonly purgatory: Purgatory) {
    this.#clock = purgatory.context.clock;
    purgatory.context.store.onForeignCommit((commit) => this.#follow(commit));
  }

  get #shared(): SharedFiles | undefined {
    return this.purgatory.context.repositories.shared?.packs.files;
  }

  /** Another machine changed what is here: the mirror follows, and copies that no row names go. */
  async #follow(commit: Commit): Promise<void> {
    const { store } = this.purgatory.context;
    const { here, unclaimed } = changedFiles(commit);
    const gone: UnclaimedFileRow[] = [];
    for (const key of unclaimed) {
      const row = await store.row<UnclaimedFileRow>("lfs", `unclaimed:${key}`);
      const before = this.#unclaimed.get(key);
      if (row) this.#unclaimed.set(key, row);
      else if (this.#unclaimed.delete(key) && before) gone.push(before);
    }
    if (this.#shared && here.length + gone.length > 0) void this.#dropCopies(here, gone).catch(() => undefined);
  }

  async #dropCopies(
    here: readonly (readonly [RepositoryName, LargeFileId])[],
    unclaimed: readonly UnclaimedFileRow[],
  ): Promise<void> {
    for (const [name, oid] of here) await this.removeUnrecorded(name, oid);
    for (const row of unclaimed) await this.removeUnrecorded(row, row.oid, "unclaimed");
  }

  /** Files of that repository on this machine of which no row speaks, any more or yet. */
  async removeAllUnrecorded(name: RepositoryName): Promise<void> {
    const directory = this.directoryOf(name);
    for await (const oid of filesIn(directory)) await this.removeUnrecorded(name, oid);
    for (const oid of await unclaimedIn(directory)) await this.removeUnrecorded(name, oid, "unclaimed");
  }

  /** Where the file is on this machine. Undefined: it is lost. */
  async pathOf(name: RepositoryName, oid: LargeFileId): Promise<string | undefined> {
    const path = largeFilePath(this.directoryOf(name), oid);
    if ((await sizeOfFile(path)) !== undefined) return path;
    return this.#shared && (await this.#alone(name, oid, () => this.#bring(oid, path))) ? path : undefined;
  }

  /** Its copy here is whole, or there is none and the pack store has it. A damaged copy is fetched again. */
  async isWhole(name: RepositoryName, oid: LargeFileId): Promise<boolean> {
    const path = largeFilePath(this.directoryOf(name), oid);
    const shared = this.#shared;
    if (await isWhole(path, oid)) return true;
    if (!shared) return false;
    const isCopied = (await sizeOfFile(path)) !== undefined;
    await removeFile(path);
    return isCopied ? await this.#alone(name, oid, () => this.#bring(oid, path)) : await shared.has(oid);
  }

  /** False: it cannot be had. */
  async #bring(oid: LargeFileId, path: string): Promise<boolean> {
    if ((await sizeOfFile(path)) !== undefined) return true;
    return (await this.#shared?.fetch(oid, path)) ?? false;
  }

  /** Into the pack store, before a row says that it is here. */
  async #share(oid: LargeFileId, file: string): Promise<MayBeNamed> {
    return (await this.#shared?.put(oid, file)) ?? (async () => true);
  }

  async open(): Promise<void> {
    for (const row of await unclaimedFiles(this.purgatory.context.store)) this.#unclaimed.set(keyOf(row, row.oid), row);
  }

  directoryOf(name: RepositoryName): string {
    return this.purgatory.context.repositories.open(diskAddress(name)).directory;
  }

  /** For the budget that unclaimed pushes have as well. */
  *rows(): Iterable<{ readonly ip: string; readonly bytes: number; readonly entered: number; drop(): Promise<void> }> {
    for (const row of this.#unclaimed.values()) yield { ...row, drop: () => this.#drop(row) };
  }

  /** Undefined: nobody brought it, or something names it already. */
  unclaimedBytes(name: RepositoryName, oid: LargeFileId): number | undefined {
    return this.#unclaimed.get(keyOf(name, oid))?.bytes;
  }

  hasUnclaimed(name: RepositoryName): boolean {
    const key = repositoryKey(name);
    for (const row of this.#unclaimed.values()) if (repositoryKey(row) === key) return true;
    return false;
  }

  /** Into the repository's quotas: a maintainer's, one that a released pointer names, or one that was hunted for. */
  async take(name: RepositoryName, file: Pointer, next: NextChunk, contributor?: Pubkey, ledBy?: LedBy): Promise<void> {
    const directory = this.directoryOf(name);
    await receiveFile(directory, file, next, (beside) =>
      this.#alone(name, file.oid, async () => {
        const mayBeNamed = await this.#share(file.oid, beside);
        await moveFile(beside, largeFilePath(directory, file.oid));
        await this.#isHere(name, file, contributor, { mayBeNamed, ledBy });
      }),
    );
  }

  /** From another repository of this server. False: that does not have it. */
  async copy(
    name: RepositoryName,
    from: RepositoryName,
    file: Pointer,
    contributor?: Pubkey,
    ledBy?: LedBy,
  ): Promise<boolean> {
    const [there, here] = [this.directoryOf(from), this.directoryOf(name)];
    return await this.#alone(name, file.oid, async () => {
      if (this.#shared && !(await this.#bring(file.oid, largeFilePath(there, file.oid)))) return false;
      if (!(await linkFile(largeFilePath(there, file.oid), largeFilePath(here, file.oid)))) return false;
      const mayBeNamed: MayBeNamed = async (tx) => (await this.#shared?.mayBeNamed(tx, file.oid)) ?? true;
      await this.#isHere(name, file, contributor, { mayBeNamed, ledBy });
      return true;
    });
  }

  /** By somebody this server does not know. */
  async takeAside(name: RepositoryName, file: Pointer, next: NextChunk, ip: string): Promise<void> {
    const directory = this.directoryOf(name);
    await receiveFile(directory, file, next, (beside) =>
      this.#alone(name, file.oid, () => this.#putAside(name, file, beside, ip)),
    );
    await this.purgatory.placeholders.makeRoom();
  }

  async #putAside(name: RepositoryName, file: Pointer, beside: string, ip: string): Promise<void> {
    const { store, live } = this.purgatory.context;
    const known = await largeFile(store, name, file.oid);
    // Another brought it meanwhile.
    if (this.unclaimedBytes(name, file.oid) !== undefined || known?.isHere) return;
    const mayBeNamed = await this.#share(file.oid, beside);
    if (known?.isNamed) {
      await moveFile(beside, largeFilePath(this.directoryOf(name), file.oid));
      return await this.#isHere(name, file, known.contributor, { mayBeNamed });
    }
    const path = unclaimedPath(this.directoryOf(name), file.oid);
    await moveFile(beside, path);
    const entered = unixSeconds(this.#clock);
    const { placeholderExpirySecs, placeholderPrsExpirySecs } = live.current;
    const expires = entered + (name.area === "prs" ? placeholderPrsExpirySecs : placeholderExpirySecs);
    const { owner, identifier } = name;
    const row = { owner, identifier, area: name.area ?? "main", oid: file.oid, bytes: file.size, ip, entered, expires };
    try {
      await store.transact(async (tx) => {
        const repository = await rowForData(tx, name, entered);
        if (!(await mayBeNamed(tx))) throw new Overtaken("the file is being removed from the pack store");
        if (repository) setCatalogueRow(tx, repository);
        setUnclaimedFile(tx, row);
      });
    } catch (error) {
      await removeFile(path);
      throw error;
    }
    this.#unclaimed.set(keyOf(name, file.oid), row);
  }

  /** What somebody brought becomes the repository's. False: there is nothing. */
  claim(name: RepositoryName, oid: LargeFileId, contributor?: Pubkey, isNamed = false): Promise<boolean> {
    return this.#alone(name, oid, () => this.#claim(name, oid, contributor, isNamed));
  }

  async #claim(
    name: RepositoryName,
    oid: LargeFileId,
    contributor: Pubkey | undefined,
    isNamed: boolean,
  ): Promise<boolean> {
    const row = this.#unclaimed.get(keyOf(name, oid));
    if (!row) return false;
    const directory = this.directoryOf(name);
    const path = largeFilePath(directory, oid);
    if (!(await moveFile(unclaimedPath(directory, oid), path)) && !(await this.#bring(oid, path))) return false;
    const also = (tx: Transaction): void => deleteUnclaimedFile(tx, name, oid);
    await this.#isHere(name, { oid, size: row.bytes }, contributor, { isNamed, also });
    this.#unclaimed.delete(keyOf(name, oid));
    return true;
  }

  /** A released pointer names it: what was brought for it becomes the repository's; otherwise it is missing. */
  async name(name: RepositoryName, { oid, size }: Pointer, contributor?: Pubkey): Promise<"here" | "missing"> {
    const { store } = this.purgatory.context;
    const before = await largeFile(store, name, oid);
    if (!before?.isHere && (await this.claim(name, oid, contributor, true))) return "here";
    const isSame = before?.isNamed && (before.isHere || before.size === size);
    if (isSame) return before.isHere ? "here" : "missing";
    return await store.transact(async (tx) => {
      const row = await largeFile(tx, name, oid);
      const since = row ? row.since : unixSeconds(this.#clock);
      const named: LargeFileRow = row?.isHere
        ? { ...row, isNamed: true }
        : { size, isHere: false, isNamed: true, since, ...(contributor === undefined ? {} : { contributor }) };
      await setLargeFile(tx, name, oid, named);
      return named.isHere ? "here" : "missing";
    });
  }

  /** No released pointer names it any more: a missing one is forgotten, one that is here goes after the grace. */
  async unname(name: RepositoryName, oid: LargeFileId): Promise<void> {
    await this.purgatory.context.store.transact(async (tx) => {
      const row = await largeFile(tx, name, oid);
      if (!row?.isNamed) return;
      const since = unixSeconds(this.#clock);
      await setLargeFile(tx, name, oid, row.isHere ? { ...row, isNamed: false, since } : undefined);
    });
  }

  /** Its file is damaged or lost: looked for elsewhere if a pointer names it. */
  async lost(name: RepositoryName, oid: LargeFileId): Promise<void> {
    await this.#alone(name, oid, async () => {
      await this.#change(name, oid, (row) =>
        row.isNamed ? { ...row, isHere: false, since: unixSeconds(this.#clock) } : undefined,
      );
      await removeFile(largeFilePath(this.directoryOf(name), oid));
    });
  }

  /** Nothing has named it for as long as unreachable objects are kept. */
  async remove(name: RepositoryName, oid: LargeFileId): Promise<void> {
    await this.#alone(name, oid, async () => {
      await this.#change(name, oid, (row) => (row.isNamed ? row : undefined));
      if (await largeFile(this.purgatory.context.store, name, oid)) return;
      await removeFile(largeFilePath(this.directoryOf(name), oid));
    });
  }

  /** False: a row speaks of it by now. A file is in place a moment before its row says so, so that both are asked alone. */
  removeUnrecorded(name: RepositoryName, oid: LargeFileId, where: "here" | "unclaimed" = "here"): Promise<boolean> {
    return this.#alone(name, oid, async () => {
      const isUnclaimed = where === "unclaimed";
      const row = isUnclaimed ? undefined : await largeFile(this.purgatory.context.store, name, oid);
      if (isUnclaimed ? this.unclaimedBytes(name, oid) !== undefined : row?.isHere) return false;
      await removeFile((isUnclaimed ? unclaimedPath : largeFilePath)(this.directoryOf(name), oid));
      return true;
    });
  }

  async expire(nowSeconds: number, isBusy: (name: RepositoryName) => boolean): Promise<number> {
    const due = [...this.#unclaimed.values()].filter((row) => row.expires <= nowSeconds && !isBusy(row));
    for (const row of due) await this.#drop(row);
    return due.length;
  }

  /** A wall clock that jumped takes the deadlines along. */
  async shift(seconds: number, isOlder: (enteredSeconds: number) => boolean): Promise<void> {
    const moved = [...this.#unclaimed.values()]
      .filter(({ entered }) => isOlder(entered))
      .map((row) => ({ ...row, entered: row.entered + seconds, expires: row.expires + seconds }));
    await this.purgatory.context.store.transact(async (tx) => {
      for (const row of moved) setUnclaimedFile(tx, row);
    });
    for (const row of moved) this.#unclaimed.set(keyOf(row, row.oid), row);
  }

  /** Its directory took the files along. */
  repositoryGone(name: RepositoryName): void {
    const key = repositoryKey(name);
    for (const [at, row] of this.#unclaimed) if (repositoryKey(row) === key) this.#unclaimed.delete(at);
  }

  async #drop(row: UnclaimedFileRow): Promise<void> {
    await this.#alone(row, row.oid, async () => {
      if (!this.#unclaimed.delete(keyOf(row, row.oid))) return;
      await this.purgatory.context.store.transact(async (tx) => deleteUnclaimedFile(tx, row, row.oid));
      await removeFile(unclaimedPath(this.directoryOf(row), row.oid));
    });
    await this.purgatory.contributors.tidy(row);
  }

  #alone<T>(name: RepositoryName, oid: LargeFileId, work: () => Promise<T>): Promise<T> {
    return this.#locks.run(keyOf(name, oid), work);
  }

  async #isHere(
    name: RepositoryName,
    { oid, size }: Pointer,
    contributor: Pubkey | undefined,
    { isNamed = false, also, mayBeNamed, ledBy }: HereOptions,
  ): Promise<void> {
    const since = unixSeconds(this.#clock);
    await this.purgatory.context.store.transact(async (tx) => {
      if (mayBeNamed && !(await mayBeNamed(tx))) throw new Overtaken("the file is being removed from the pack store");
      also?.(tx);
      const before = await largeFile(tx, name, oid);
      if (before?.isHere) return;
      const whose = contributor ?? before?.contributor;
      const row = { size, isHere: true, isNamed: isNamed || before?.isNamed === true, since };
      await setLargeFile(tx, name, oid, whose === undefined ? row : { ...row, contributor: whose });
      await this.#book(tx, name, whose, size);
    }, ledBy);
  }

  async #change(
    name: RepositoryName,
    oid: LargeFileId,
    change: (row: LargeFileRow) => LargeFileRow | undefined,
  ): Promise<void> {
    await this.purgatory.context.store.transact(async (tx) => {
      const row = await largeFile(tx, name, oid);
      if (!row?.isHere) return;
      const after = change(row);
      if (after === row) return;
      await setLargeFile(tx, name, oid, after);
      await this.#book(tx, name, row.contributor, -row.size);
    });
  }

  async #book(tx: Transaction, name: RepositoryName, contributor: Pubkey | undefined, bytes: number): Promise<void> {
    const row = await rowForData(tx, name, unixSeconds(this.#clock));
    if (!row) return;
    if (contributor === undefined) bookOwners(tx, row, bytes);
    else await bookContributors(tx, row, contributor, bytes);
  }
}

type MayBeNamed = (tx: Transaction) => Promise<boolean>;

interface HereOptions {
  readonly isNamed?: boolean;
  readonly also?: (tx: Transaction) => void;
  /** Where files are shared: asked in the transaction. */
  readonly mayBeNamed?: MayBeNamed;
  readonly ledBy?: LedBy | undefined;
}

const keyOf = (name: RepositoryName, oid: LargeFileId): string => `${repositoryKey(name)} ${oid}`;
