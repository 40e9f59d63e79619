// Keeps hosted repositories sound: at start refs are compared with the governing states; then, day by day and spread
// out, each repository's connectivity is checked. What drifted is realigned by purgatory, what is missing is hunted.
// Also for `repos fsck`. purgatory.md "Repair".

import type { Clock } from "../base/clock.js";
import { stateDecides } from "../catalogue/maintainers.js";
import {
  type CatalogueRow,
  catalogueRow,
  catalogueRows,
  everyRow,
  isReleased,
  type RepositoryName,
  repositoryKey,
} from "../catalogue/repositories.js";
import type { Logger } from "../config/logging.js";
import { diskAddress } from "../git/address.js";
import { nostrRefEventId } from "../git/decide-push.js";
import type { Repositories } from "../git/repositories.js";
import type { GitRepository } from "../git/repository.js";
import { type EventId, kinds } from "../nostr/event.js";
import { isOid, type Oid, pullRequestOf, type RefName, stateOf } from "../nostr/nip34.js";
import { alignmentOf, wantedRefs } from "../purgatory/plan.js";
import type { Purgatory } from "../purgatory/purgatory.js";
import type { Reader, Store } from "../store/port.js";
import type { Found } from "./wants.js";

interface RepairParts {
  readonly store: Store;
  readonly repositories: Repositories;
  readonly purgatory: Pick<Purgatory, "fetched" | "restorePullRequests" | "dropOrphanedPullRequests">;
  readonly clock: Clock;
  /** Time in which every repository is checked once. */
  readonly intervalMs: () => number;
  readonly found: (name: RepositoryName, found: Found) => void;
  readonly logger: Pick<Logger, "info" | "warn">;
  readonly onFault: (error: unknown) => void;
}

interface RepositoryReport {
  readonly adrift: readonly RefName[];
  readonly found: Found;
}

const cursorKey = "repair:after";
const shortestPauseMs = 1_000;
const pauseAfterFaultMs = 60_000;

export class Repair {
  readonly #parts: RepairParts;
  #cancel: () => void = () => undefined;
  #working: Promise<void> = Promise.resolve();
  #closed = false;
  /** Repositories with objects that cannot be read, until one fetch of everything has come. */
  readonly #damaged = new Set<string>();
  /** How many places there are to check, as of this round. */
  #count: number | undefined;

  constructor(parts: RepairParts) {
    this.#parts = parts;
  }

  /** Compares refs, which starts no git process, then begins the daily rounds. */
  open(): void {
    this.#working = this.#compareAll()
      .catch(this.#parts.onFault)
      .then(() => this.#plan());
  }

  /** Resolves when the comparison at start, or the check under way, has ended. */
  settled(): Promise<void> {
    return this.#working;
  }

  async #compareAll(): Promise<void> {
    const { store } = this.#parts;
    for await (const row of catalogueRows(store)) {
      if (this.#closed) return;
      // One that is broken must not keep the others from being looked at.
      if (isReleased(row)) await this.realign(row).catch(this.#parts.onFault);
    }
  }

  /** Brings refs back to what the governing state says. Answers those that were not. */
  async realign(row: CatalogueRow): Promise<readonly RefName[]> {
    const { store, repositories, purgatory, logger } = this.#parts;
    const address = diskAddress(row);
    if (!(await repositories.exists(address))) {
      // Its directory is gone: an empty one is filled from the listed servers.
      await repositories.create(address);
    }
    const repository = repositories.open(address);
    const mended = await repository.mendFiles();
    if (mended.length > 0 && !repository.isStuck)
      logger.warn({ repo: row.address, refs: mended.slice(0, 20) }, "refs changed from outside, mended");
    const orphans = await purgatory.dropOrphanedPullRequests(row);
    if (orphans > 0) logger.warn({ repo: row.address, refs: orphans }, "refs of deleted pull requests, removed");
    if (row.governing !== null && !(await stateDecides(store, row, row.governing))) {
      // A crash, or another rule about maintainers: the state's author left, and nothing was released here since.
      await purgatory.fetched(row);
      return [];
    }
    const adrift = await refsAdrift(store, repository, row);
    if (adrift.length === 0) return adrift;
    logger.warn({ repo: row.address, refs: adrift.slice(0, 20) }, "refs adrift, realigning");
    await purgatory.fetched(row);
    return adrift;
  }

  /** `repos fsck` found objects that cannot be read: all of it is fetched again, once, and the damaged packs go. */
  async damaged(name: RepositoryName): Promise<void> {
    const row = await this.#kept(name);
    if (!row) return;
    const repository = this.#parts.repositories.open(diskAddress(row));
    if (await repository.dropDamagedPacks()) {
      // It is whole again without us: the hunt is to hear of it.
      if (this.#damaged.delete(row.address) && !this.#closed) await this.check(name);
      return;
    }
    this.#damaged.add(row.address);
    const missing = [...new Set([...(await repository.refs()).refs.values()].map(({ oid }) => oid))];
    const pullRequests = row.area === "prs" ? await pullRequestsAt(this.#parts.store, repository, missing) : [];
    this.#parts.found(row, { missing, pullRequests });
  }

  /** Its row, if its data is kept whole: released, or under `/prs/` and there. */
  async #kept(name: RepositoryName): Promise<CatalogueRow | undefined> {
    const { store, repositories } = this.#parts;
    const row = await catalogueRow(store, name);
    if (!row || !isReleased(row)) return undefined;
    return row.area !== "prs" || (await repositories.exists(diskAddress(row))) ? row : undefined;
  }

  /** Everything about one repository, realigned and hunted as far as needed. */
  async check(name: RepositoryName): Promise<RepositoryReport | undefined> {
    const { store, repositories, logger } = this.#parts;
    const row = await this.#kept(name);
    if (!row) return undefined;
    // Under `/prs/` no state governs, and each pull request is there or it is not one.
    const isUnderPrs = row.area === "prs";
    const adrift = isUnderPrs ? [] : await this.realign(row);
    const repository = repositories.open(diskAddress(row));
    if (this.#damaged.delete(row.address)) await repository.dropDamagedPacks();
    const missing = await brokenTips(repository);
    if (missing.length > 0) logger.warn({ repo: row.address, tips: missing.slice(0, 20) }, "objects are missing");
    const pullRequests = isUnderPrs
      ? await pullRequestsAt(store, repository, missing)
      : await this.#placeThoseHere(row, await lostPullRequests(store, repository, row));
    const found: Found = { missing, pullRequests };
    this.#parts.found(row, found);
    return { adrift, found };
  }

  /** Pull requests whose commit is here after all get their ref back; the others are answered. */
  async #placeThoseHere(row: CatalogueRow, lost: readonly LostPullRequest[]): Promise<LostPullRequest[]> {
    if (lost.length === 0) return [];
    const repository = this.#parts.repositories.open(diskAddress(row));
    const missing = await repository.missingObjects(lost.map(({ tip }) => tip));
    const here = lost.filter(({ tip }) => !missing.has(tip));
    const types = await repository.objectTypes(here.map(({ tip }) => tip));
    const tips = new Map(here.filter(({ tip }) => types.get(tip) === "commit").map(({ event, tip }) => [event, tip]));
    if (tips.size > 0) await this.#parts.purgatory.restorePullRequests(row, tips);
    return lost.filter(({ tip }) => missing.has(tip));
  }

  #plan(pauseMs?: number): void {
    if (this.#closed) return;
    this.#cancel = this.#parts.clock.after(pauseMs ?? shortestPauseMs, () => {
      this.#working = this.#checkNext()
        .catch((error: unknown) => {
          this.#parts.onFault(error);
          return pauseAfterFaultMs;
        })
        .then((nextMs) => this.#plan(nextMs));
    });
  }

  /** One repository; answers how long to wait for the next, so that all together take the interval. */
  async #checkNext(): Promise<number> {
    const { store, intervalMs } = this.#parts;
    const after = await store.row<string>("meta", cursorKey);
    const next = await this.#placeAfter(after);
    if (next === undefined) this.#count = undefined;
    const chosen = next ?? (await this.#placeAfter(undefined));
    if (!chosen) return intervalMs();
    // First: a repository that cannot be checked must not be chosen for ever.
    await store.transact(async (tx) => tx.setRow("meta", cursorKey, repositoryKey(chosen)), { isLocal: true });
    await this.check(chosen);
    this.#count ??= await this.#countPlaces();
    return Math.max(shortestPauseMs, intervalMs() / Math.max(1, this.#count));
  }

  /** In the order of their keys; reads no more than what lies between. */
  async #placeAfter(key: string | undefined): Promise<RepositoryName | undefined> {
    for await (const row of everyRow(this.#parts.store, key)) if (isReleased(row)) return row;
    return undefined;
  }

  /** Once a round. */
  async #countPlaces(): Promise<number> {
    let count = 0;
    for await (const row of everyRow(this.#parts.store)) if (isReleased(row)) count++;
    return count;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#working;
  }
}

/** Refs that are not what the governing state says, recorded missing ones of a partial state left out. */
async function refsAdrift(reader: Reader, repository: GitRepository, row: CatalogueRow): Promise<RefName[]> {
  const stored = row.governing === null ? undefined : await reader.event(row.governing);
  const state = stored && stateOf(stored.event);
  if (!state) return [];
  const { refs, wellFormed } = wantedRefs(state);
  if (!wellFormed || refs.size === 0) return [];
  const table = await repository.refs();
  const { updates, head } = alignmentOf(refs, state.headBranch, table.refs, () => true);
  const known = new Set<string>(row.partial?.state === row.governing ? row.partial.missingRefs : []);
  const adrift = updates.map(({ ref }) => ref).filter((ref) => !known.has(ref));
  const isHeadAdrift = head !== undefined && table.head !== head && !known.has(head);
  return isHeadAdrift && !adrift.includes(head) ? [...adrift, head] : adrift;
}

/** Values of its refs that do not have everything they reach. Starts git. */
async function brokenTips(repository: GitRepository): Promise<Oid[]> {
  const { refs } = await repository.refs();
  const tips = [...new Set([...refs.values()].map(({ oid }) => oid))];
  return [...(await repository.missingObjects(tips, { deep: true }))];
}

interface LostPullRequest {
  readonly event: EventId;
  readonly tip: Oid;
  readonly clone: readonly string[];
}

/** Served pull requests of a repository under `/prs/` whose tip is one of these. */
async function pullRequestsAt(
  reader: Reader,
  repository: GitRepository,
  tips: readonly Oid[],
): Promise<LostPullRequest[]> {
  const found: LostPullRequest[] = [];
  const lost = new Set(tips);
  for (const [ref, { oid: tip }] of (await repository.refs()).refs) {
    const event = lost.has(tip) ? nostrRefEventId(ref) : undefined;
    const stored = event && (await reader.event(event));
    const clone = stored && pullRequestOf(stored.event)?.clone;
    if (clone) found.push({ event, tip, clone });
  }
  return found;
}

const maxPullRequests = 10_000;

/** Served pull requests of a repository that have no ref there. */
async function lostPullRequests(
  reader: Reader,
  repository: GitRepository,
  row: CatalogueRow,
): Promise<LostPullRequest[]> {
  const { refs } = await repository.refs();
  const filter = {
    kinds: [kinds.pullRequest, kinds.pullRequestUpdate],
    tags: new Map([["a", [row.address]]]),
  };
  const lost: LostPullRequest[] = [];
  for await (const page of reader.query([filter], { limit: maxPullRequests })) {
    for (const { id, event } of page) {
      const pullRequest = refs.has(`refs/nostr/${id}` as RefName) ? undefined : pullRequestOf(event);
      if (pullRequest && isOid(pullRequest.tip)) {
        lost.push({ event: id, tip: pullRequest.tip, clone: pullRequest.clone });
      }
    }
  }
  return lost;
}
