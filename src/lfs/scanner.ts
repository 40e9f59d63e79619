// Finds the pointers to large files in what was released (git-http.md, "Large files"): after each change of a repository's
// refs the small blobs of what is new are read, at once where somebody brought files that wait to be named, otherwise when
// the repository has been quiet for a moment. Everything is searched again now and then: what nothing names any more is
// only seen so. One repository at a time; what waits is one entry a repository.

import { Turns } from "../base/budget/turns.js";
import { type Clock, unixSeconds } from "../base/clock.js";
import { sharedAbort } from "../base/shared-abort.js";
import {
  isSearched,
  type LargeFileId,
  largeFiles,
  largeFileTotals,
  scanOf,
  setScan,
  setSearched,
} from "../catalogue/large-files.js";
import { refsVersion } from "../catalogue/refs.js";
import { catalogueRow, isReleased, type RepositoryName } from "../catalogue/repositories.js";
import type { RepositoryAddress } from "../git/address.js";
import { nostrRefEventId } from "../git/decide-push.js";
import type { RefTable } from "../git/ref-tables.js";
import type { Repositories } from "../git/repositories.js";
import type { GitRepository } from "../git/repository.js";
import { smallBlobs } from "../git/small-blobs.js";
import type { EventId, Pubkey } from "../nostr/event.js";
import type { Oid } from "../nostr/nip34.js";
import type { Store } from "../store/port.js";
import type { Holdings } from "./holdings.js";
import { pointerBytes, pointerIn } from "./pointer.js";

interface ScannerParts {
  readonly store: Store;
  readonly repositories: Repositories;
  readonly clock: Clock;
  readonly holdings: Holdings;
  /** Released pointers name files that are not here. */
  readonly missing: (name: RepositoryName) => void;
  readonly failed: (name: RepositoryName, error: unknown) => void;
}

const quietMs = 5_000;
/** Rows are kept for each: a repository of pointers and nothing else must not fill the store. */
const maxFilesARepository = 50_000;
/** The branch HEAD names holds nearly everything the others do. */
const maxTipsKept = 32;

interface Tips {
  /** HEAD's branch first. */
  readonly owners: readonly Oid[];
  readonly pullRequests: ReadonlyMap<EventId, Oid>;
}

export class Scanner {
  readonly #waiting = new Map<string, { readonly cancel: () => void }>();
  readonly #stop = sharedAbort();
  readonly #turns = new Turns(() => ({ total: 2, perRepository: 1, perIp: 2, maxQueued: 64 }));
  readonly #running = new Set<Promise<void>>();
  #stopListening: () => void = () => undefined;

  constructor(private readonly parts: ScannerParts) {}

  open(): void {
    this.#stopListening = this.parts.repositories.onChange((address) => this.note(address));
  }

  /** It changed, or may have while nobody looked. */
  note(address: RepositoryAddress): void {
    const { clock, holdings } = this.parts;
    if (this.#stop.signal.aborted) return;
    const waitMs = holdings.hasUnclaimed(address) ? 0 : quietMs;
    const earlier = this.#waiting.get(address.key);
    if (earlier && waitMs > 0) return;
    earlier?.cancel();
    const cancel = clock.after(waitMs, () => void this.caughtUp(address));
    this.#waiting.set(address.key, { cancel });
  }

  /** Resolves when what is released now was searched; whoever downloads right after a push waits for it. */
  async caughtUp(address: RepositoryAddress, ip = "our own"): Promise<void> {
    this.#waiting.get(address.key)?.cancel();
    this.#waiting.delete(address.key);
    await this.#inTurn(address, false, ip);
  }

  /** Searches everything, and finds what is not named any more. */
  searchAgain(address: RepositoryAddress): Promise<void> {
    return this.#inTurn(address, true, "our own");
  }

  async #inTurn(address: RepositoryAddress, isFull: boolean, ip: string): Promise<void> {
    const { signal } = this.#stop;
    try {
      if (!isFull && (await this.#isUpToDate(address))) return;
      const release = await this.#turns.acquire({ repository: address.key, ip }, signal);
      // Too many want a search: it is made up for when the repository is quiet.
      if (!release) return this.note(address);
      const scanning = this.#scan(address, isFull).finally(release);
      const ended = scanning.catch(() => undefined).then(() => void this.#running.delete(ended));
      this.#running.add(ended);
      await scanning;
    } catch (error) {
      if (!signal.aborted) this.parts.failed(address, error);
    }
  }

  async #isUpToDate(address: RepositoryAddress): Promise<boolean> {
    const { store } = this.parts;
    return (await scanOf(store, address))?.version === (await refsVersion(store, address));
  }

  async #scan(address: RepositoryAddress, isFull: boolean): Promise<void> {
    const { store, repositories } = this.parts;
    if (this.#stop.signal.aborted || !(await repositories.exists(address))) return;
    const row = await catalogueRow(store, address);
    if (!row || !(isReleased(row) || row.status === "leaving")) return;
    const repository = repositories.open(address);
    const table = await repository.refs();
    const before = await scanOf(store, address);
    if (before?.version === table.version && !isFull) return;
    await repository.bringInLine();
    const tips = tipsOf(table);
    const named = new Set<LargeFileId>();
    const isAll = isFull || !before;
    await this.#search(repository, tips.owners, isAll ? [] : before.tips, undefined, named);
    const mostOwners = tips.owners.slice(0, maxTipsKept);
    const searched: EventId[] = [];
    for (const [id, tip] of tips.pullRequests) {
      if (await isSearched(store, address, id)) continue;
      await this.#search(repository, [tip], mostOwners, await this.#authorOf(address, id), named);
      searched.push(id);
    }
    if (isFull) {
      await this.#search(repository, [...tips.pullRequests.values()], mostOwners, undefined, named);
      await this.#forgetOthers(address, named);
    }
    const { owner, identifier, area } = address;
    const fullAt = isAll ? unixSeconds(this.parts.clock) : before.fullAt;
    await store.transact(async (tx) => {
      setScan(tx, { owner, identifier, area, version: table.version, tips: mostOwners, fullAt });
      for (const id of searched) setSearched(tx, address, id);
    });
    if ((await largeFileTotals(store, address)).missing > 0) this.parts.missing(address);
  }

  async #search(
    repository: GitRepository,
    tips: readonly Oid[],
    without: readonly Oid[],
    contributor: Pubkey | undefined,
    named: Set<LargeFileId>,
  ): Promise<void> {
    const { holdings, store } = this.parts;
    const { address } = repository;
    const { here, missing } = await largeFileTotals(store, address);
    const most = maxFilesARepository - (without.length === 0 ? 0 : here + missing);
    for await (const blob of smallBlobs(repository, tips, without, pointerBytes, this.#stop.signal)) {
      const pointer = pointerIn(blob);
      if (!pointer || named.has(pointer.oid)) continue;
      if (named.size >= most) {
        const error = new Error(`it names more than ${maxFilesARepository} large files: the rest is not looked for`);
        return this.parts.failed(address, error);
      }
      named.add(pointer.oid);
      await holdings.name(address, pointer, contributor);
    }
  }

  /** Of what lies under `/prs/` the signer is the owner. */
  async #authorOf(address: RepositoryAddress, id: EventId): Promise<Pubkey | undefined> {
    if (address.area === "prs") return undefined;
    const author = (await this.parts.store.event(id))?.event.pubkey;
    return author === address.owner ? undefined : author;
  }

  async #forgetOthers(address: RepositoryAddress, named: ReadonlySet<LargeFileId>): Promise<void> {
    const gone: LargeFileId[] = [];
    for await (const [oid, row] of largeFiles(this.parts.store, address)) {
      if (row.isNamed && !named.has(oid)) gone.push(oid);
    }
    for (const oid of gone) await this.parts.holdings.unname(address, oid);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#stopListening();
    for (const { cancel } of this.#waiting.values()) cancel();
    await Promise.all(this.#running);
  }
}

function tipsOf({ refs, head }: RefTable): Tips {
  const owners = new Set<Oid>();
  const headOid = refs.get(head)?.oid;
  if (headOid) owners.add(headOid);
  const pullRequests = new Map<EventId, Oid>();
  for (const [ref, { oid }] of refs) {
    const id = nostrRefEventId(ref);
    if (id) pullRequests.set(id, oid);
    else owners.add(oid);
  }
  return { owners: [...owners], pullRequests };
}
