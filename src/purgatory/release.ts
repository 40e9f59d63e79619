// The release routine, for pushes, hunts and events that find their data here (purgatory.md, "Release").
//   1. which repositories are concerned: those asked for, and those the waiting states' authors decide in
//   2. under the locks of all of them: plan each, copy what is missing, promise the refs (fsync), write the refs
//   3. one transaction stores everything that was waiting for it
//   4. in the background the refs are synced and the promises removed (RefFsync in journal.ts)
// A crash between 2 and 3 leaves promises and waiting entries: the next start writes the refs again and comes to the same end.

import { unixSeconds } from "../base/clock.js";
import { releasedSiblings } from "../catalogue/maintainers.js";
import {
  catalogueRow,
  isReleased,
  type RepositoryName,
  repositoryKey,
  takesStates,
} from "../catalogue/repositories.js";
import { repositoriesTrusting, storedAuthority } from "../catalogue/trusting-repositories.js";
import { waitingEntries, waitingKeys } from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import type { GitRepository } from "../git/repository.js";
import type { EventId, Oid, Pubkey } from "../nostr/ids.js";
import type { PurgatoryContext, Released, Via } from "./context.js";
import type { PullRequestCopies } from "./copy-pull-requests.js";
import type { RefWriter } from "./journal.js";
import { type PlanParts, planFor, type RepositoryPlan } from "./plan.js";
import type { PullRequestRefs } from "./pull-request-refs.js";
import type { PullRequestPlan } from "./pull-requests.js";
import { type ArchiveBudget, accountsOf, quotaLeft } from "./quotas.js";
import { storeReleased } from "./store-released.js";

const maxWaitingStatesLookedAt = 200;
const maxSiblings = 20;

export class Releaser {
  /** Where a release failed half way (a full disk, a killed git): at most the repositories there are. */
  readonly #unfinished = new Map<string, RepositoryName>();

  constructor(
    private readonly parts: PurgatoryContext & {
      readonly writer: RefWriter;
      readonly copies: PullRequestCopies;
      readonly pullRequests: PullRequestRefs;
      readonly archiveBudget: ArchiveBudget;
      readonly released: (released: readonly Released[]) => void;
    },
  ) {}

  /**
   * Releases what can be released around these repositories; resolves when it is done and stored. `asked`: pull requests
   * that are looked at however many others wait there.
   */
  async release(
    names: readonly RepositoryName[],
    via: Via,
    partial: ReadonlySet<EventId> = new Set(),
    asked: readonly EventId[] = [],
  ): Promise<readonly Released[]> {
    const released: Released[] = [];
    const done = new Set<string>();
    // One after the other: a pull request may name twenty repositories, whose locks are nobody's to take together.
    for (const name of names) {
      if (!done.has(repositoryKey(name))) released.push(...(await this.releaseAround(name, via, partial, asked, done)));
    }
    return released;
  }

  private async releaseAround(
    name: RepositoryName,
    via: Via,
    partial: ReadonlySet<EventId>,
    asked: readonly EventId[],
    done: Set<string>,
  ): Promise<readonly Released[]> {
    const concerned = await this.concerned(name);
    for (const one of concerned) done.add(repositoryKey(one));
    if (concerned.length === 0) return [];
    const addresses = concerned.map((one) => diskAddress(one));
    let served: RepositoryName[] = [];
    let placed: readonly PullRequestPlan[] = [];
    const attempt = (): Promise<readonly Released[]> => {
      served = [];
      return this.parts.repositories.withLocks(addresses, async () => {
        const done = await this.releaseLocked(concerned, via, partial, asked, served);
        placed = done.placed;
        return done.released;
      });
    };
    try {
      // Every step may be done twice. A git process that was killed is most likely not killed again.
      const released = await attempt().catch(attempt);
      for (const one of served) await this.parts.copies.copyInto(one);
      await this.parts.pullRequests.spread(placed);
      return released;
    } catch (error) {
      this.markUnfinished([name]);
      throw error;
    }
  }

  /** Their refs are written, or may be, and the release could not be ended: what waits for it must not expire. */
  markUnfinished(names: readonly RepositoryName[]): void {
    for (const name of names) this.#unfinished.set(repositoryKey(name), name);
  }

  isUnfinished(name: RepositoryName): boolean {
    return this.#unfinished.has(repositoryKey(name));
  }

  /** Refs may be written whose events still wait: tried again until it is done, not at the next start only. */
  async releaseUnfinished(failed: (error: unknown) => void): Promise<void> {
    for (const [key, name] of [...this.#unfinished]) {
      this.#unfinished.delete(key);
      // One that fails again owes again, and keeps no other from being made good.
      await this.release([name], "present").catch(failed);
    }
  }

  private open = (name: RepositoryName): GitRepository => this.parts.repositories.open(diskAddress(name));

  /** It, and the repositories that the authors of what waits for it decide in. */
  private async concerned(name: RepositoryName): Promise<RepositoryName[]> {
    const { store } = this.parts;
    const found = new Map([[repositoryKey(name), name]]);
    if (name.area !== "prs") {
      const prefix = waitingKeys.repositoryKind(name, "state");
      const authors = new Set((await waitingEntries(store, prefix, maxWaitingStatesLookedAt)).map((e) => e.pubkey));
      // What completes a partial state here completes it wherever it decides.
      const row = await catalogueRow(store, name);
      const partial = row?.partial && (await store.event(row.partial.state));
      if (partial) authors.add(partial.event.pubkey);
      for (const author of authors) {
        for (const { owner, identifier } of await this.decidesIn(author, name.identifier))
          found.set(repositoryKey({ owner, identifier }), { owner, identifier });
      }
    }
    const onDisk: RepositoryName[] = [];
    for (const one of found.values()) {
      if (await this.parts.repositories.exists(diskAddress(one))) onDisk.push(one);
    }
    return onDisk;
  }

  /** Repositories here whose own directed set contains the author, mutually listed ones first, up to the cap. */
  private decidesIn(author: Pubkey, identifier: string): Promise<readonly RepositoryName[]> {
    const max = this.parts.config().releaseMaxRepositories;
    return repositoriesTrusting(storedAuthority(this.parts.store), author, identifier, max, takesStates);
  }

  /** Never a stranger's: of members of the owner's own set, and those the state's author decides in. */
  private async sourcesFor(name: RepositoryName, author: Pubkey): Promise<GitRepository[]> {
    const { store, repositories } = this.parts;
    const found = new Map<string, RepositoryName>();
    for (const row of (await releasedSiblings(store, name)).slice(0, maxSiblings)) found.set(repositoryKey(row), row);
    for (const other of await this.decidesIn(author, name.identifier)) found.set(repositoryKey(other), other);
    found.delete(repositoryKey(name));
    const sources: GitRepository[] = [];
    for (const other of found.values()) {
      if (await repositories.exists(diskAddress(other))) sources.push(this.open(other));
    }
    return sources;
  }

  private async releaseLocked(
    concerned: readonly RepositoryName[],
    via: Via,
    partial: ReadonlySet<EventId>,
    asked: readonly EventId[],
    served: RepositoryName[],
  ): Promise<{ readonly released: readonly Released[]; readonly placed: readonly PullRequestPlan[] }> {
    const { store, clock, repositories } = this.parts;
    const names: RepositoryName[] = [];
    // One under /prs/ may have gone, empty, before its lock was ours.
    for (const name of concerned) {
      if (name.area !== "prs" || (await repositories.exists(diskAddress(name)))) names.push(name);
    }
    const nowSeconds = unixSeconds(clock);
    const copied = new Map<string, number>();
    const hosted = names.filter(({ area }) => area !== "prs");
    const plans = await this.planAndAlign(hosted, this.planning(nowSeconds, partial), copied);
    const pullRequests = await this.parts.pullRequests.place(names, plans, asked);
    const entries = pullRequests.map(({ entry }) => entry);
    const isQuietEverywhere = entries.length === 0 && copied.size === 0 && plans.every(isQuiet);
    const finishing = { plans, pullRequests: entries, copied, via, nowSeconds };
    const released = isQuietEverywhere ? [] : await store.transact((tx) => storeReleased(tx, finishing));
    served.push(...plans.filter(({ governing, row }) => governing && !isReleased(row)).map(({ name }) => name));
    // In the same turn as the commit: clients see the events and the refs they speak of at once. After a failure they
    // see neither until it is made good.
    this.publish(names);
    if (released.length > 0) this.parts.released(released);
    return { released, placed: pullRequests };
  }

  /** A state that turns out to be released as partial in one repository decides in the others too: they are planned again. */
  private async planAndAlign(
    names: readonly RepositoryName[],
    planning: PlanParts,
    copied: Map<string, number>,
  ): Promise<RepositoryPlan[]> {
    for (;;) {
      const plans: RepositoryPlan[] = [];
      const known = planning.servedPartly.size;
      for (const name of names) {
        const plan = await planFor(name, this.open(name), planning);
        if (!plan || !(await this.align(plan, copied))) continue;
        plans.push(plan);
        const { governing } = plan;
        if (governing && governing.alignment.missing.length > 0) planning.servedPartly.add(governing.state.event.id);
      }
      if (planning.servedPartly.size === known || names.length === 1) return plans;
    }
  }

  private publish(names: readonly RepositoryName[]): void {
    for (const name of names) this.open(name).publish();
  }

  /** Objects do not go while a release is at work, so what was found missing need not be asked for twice. */
  private planning(nowSeconds: number, partial: ReadonlySet<EventId>): PlanParts {
    const asked = new Map<string, Promise<ReadonlySet<Oid>>>();
    return {
      reader: this.parts.store,
      nowSeconds,
      partialGraceSeconds: this.parts.config().partialStateGraceSecs,
      partial,
      servedPartly: new Set(),
      missingIn: (repository, state) => {
        const key = `${state.event.id} ${repository.address.key}`;
        const known = asked.get(key) ?? repository.missingObjects([...new Set(state.refs.values())]);
        asked.set(key, known);
        return known;
      },
      sourcesFor: (name, state) => this.sourcesFor(name, state.event.pubkey),
    };
  }

  private async isFull(name: RepositoryName): Promise<boolean> {
    const { store, config, archiveBudget } = this.parts;
    return quotaLeft(await accountsOf(store, name, undefined, config(), archiveBudget)).isUsedUp;
  }

  /** Writes one repository's refs as its plan says. False: it could not be done; nothing of it may be stored. */
  private async align(plan: RepositoryPlan, copied: Map<string, number>): Promise<boolean> {
    const { governing, repository, name } = plan;
    if (!governing) return true;
    const { alignment, copy } = governing;
    if (copy) {
      if (await this.isFull(name)) {
        this.parts.observer.problem(
          name,
          "its quota is full: objects of its maintainers' repositories were not copied",
        );
        return false;
      }
      const before = await repository.sizeBytes();
      if (!(await repository.copyObjectsFrom(copy.from, copy.oids))) return false;
      const bytes = (await repository.sizeBytes()) - before;
      copied.set(repositoryKey(name), (copied.get(repositoryKey(name)) ?? 0) + bytes);
    }
    return this.parts.writer.write(repository, alignment.updates, alignment.head);
  }
}

/** Nothing to store or change: the state that governs already does. */
function isQuiet(plan: RepositoryPlan): boolean {
  const { governing, row, superseded } = plan;
  // A repository that was announced again has its state already and waits all the same.
  if (governing && !isReleased(row)) return false;
  if (superseded.some((state) => state.entry)) return false;
  if (!governing) return true;
  const partialNow = governing.alignment.missing.length > 0;
  return row.governing === governing.state.event.id && !governing.state.entry && partialNow === (row.partial !== null);
}
