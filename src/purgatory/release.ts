// The release routine, for pushes, hunts and events that find their data here (purgatory.md, "Release").
//   1. which repositories are concerned: those asked for, and those the waiting states' authors decide in
//   2. under the locks of all of them: plan each, copy the objects that are missing
//   3. one transaction writes the refs of all of them and stores everything that was waiting for them. What was planned on is
//      asked for again in it; if that has changed, nothing is written and the release is planned again
// A crash before 3 leaves objects and waiting entries: the next start comes to the same end.

import { unixSeconds } from "../base/clock.js";
import { releasedSiblings, repositoriesTrusting, storedAuthority } from "../catalogue/maintainers.js";
import {
  catalogueRow,
  isReleased,
  type RepositoryName,
  repositoryKey,
  type StateStamp,
  setCatalogueRow,
  takesStates,
} from "../catalogue/repositories.js";
import {
  endUnfinished,
  markUnfinished,
  unfinishedReleases,
  waitingEntries,
  waitingKeys,
} from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import { clashOf, Overtaken, RefChanges } from "../git/change-refs.js";
import type { Placed } from "../git/quarantine.js";
import type { RefTable } from "../git/ref-tables.js";
import type { GitRepository } from "../git/repository.js";
import type { RefUpdate } from "../git/repository-refs.js";
import type { EventId, Pubkey } from "../nostr/event.js";
import { formatName, type Oid } from "../nostr/nip34.js";
import { type LedBy, SharedLogError, type Transaction } from "../store/port.js";
import type { PurgatoryContext, Released, Via } from "./context.js";
import { isQuiet, oidsIn, otherFormat, type PlanParts, planFor, type RepositoryPlan } from "./plan.js";
import type { PullRequestPlan, PullRequestRefs } from "./pull-requests.js";
import { type ArchiveBudget, accountsOf, quotaLeft } from "./quotas.js";
import { storeReleased } from "./store-released.js";

const maxWaitingStatesLookedAt = 200;
const maxSiblings = 20;
const maxRounds = 3;

interface ReleaseWish extends ReleaseOptions {
  readonly via: Via;
  readonly push?: PushedRefs;
}

interface ReleaseOptions {
  /** States of which what is here may be released. */
  readonly partial?: ReadonlySet<EventId>;
  /** Pull requests that are looked at however many others wait there. */
  readonly asked?: readonly EventId[];
  /** Where one machine does it for all of a cluster. */
  readonly ledBy?: LedBy;
}

/** A push whose objects are in place: its refs are written with what they release. */
export interface PushedRefs {
  readonly repository: GitRepository;
  readonly updates: readonly RefUpdate[];
  readonly candidate: StateStamp | undefined;
  readonly placed: Placed | undefined;
  /** Rows of its own. Throws Overtaken when what the push was decided by is gone. */
  readonly write: (tx: Transaction) => Promise<void>;
}

/** What was written. */
export interface ReleaseDone {
  readonly released: readonly Released[];
  /** Repositories that are served from now on. */
  readonly served: readonly RepositoryName[];
  readonly placed: readonly PullRequestPlan[];
}

export class Releaser {
  /** Where a release failed half way (a full disk, a killed git), on any machine: at most the repositories there are. */
  readonly #unfinished = new Map<string, RepositoryName>();

  constructor(
    private readonly parts: PurgatoryContext & {
      readonly pullRequests: PullRequestRefs;
      readonly archiveBudget: ArchiveBudget;
      readonly released: (released: readonly Released[]) => void;
      /** It was made anew in another format: data that nobody claimed is gone. */
      readonly madeAnew: (name: RepositoryName) => Promise<void>;
    },
  ) {}

  /** Releases what can be released around these repositories; resolves when it is done and stored. */
  async release(
    names: readonly RepositoryName[],
    via: Via,
    { partial, asked, ledBy }: ReleaseOptions = {},
  ): Promise<readonly Released[]> {
    const wish: ReleaseWish = { via, ...(partial && { partial }), ...(asked && { asked }), ...(ledBy && { ledBy }) };
    const released: Released[] = [];
    const done = new Set<string>();
    // One after the other: a pull request may name twenty repositories, whose locks are nobody's to take together.
    for (const name of names) {
      if (done.has(repositoryKey(name))) continue;
      released.push(...(await this.releaseAround(name, wish, done)));
    }
    return released;
  }

  private async releaseAround(
    name: RepositoryName,
    wish: ReleaseWish,
    done: Set<string>,
  ): Promise<readonly Released[]> {
    const concerned = await this.concerned(name);
    for (const one of concerned) {
      done.add(repositoryKey(one));
      await this.settleFormat(one);
    }
    if (concerned.length === 0) return [];
    const addresses = concerned.map((one) => diskAddress(one));
    try {
      const written = await this.parts.repositories.withLocks(addresses, () => this.releaseLocked(concerned, wish));
      await this.follow(written);
      return written.released;
    } catch (error) {
      this.markUnfinished([name]);
      throw error;
    }
  }

  /**
   * An announcement alone makes a SHA-1 repository. Until a state was released or pushed under, the newest that could decide
   * says how objects are named (git-http.md, "SHA-256 repositories"): a repository of the other format is made anew, empty.
   */
  private async settleFormat(name: RepositoryName): Promise<void> {
    const { store, repositories, madeAnew } = this.parts;
    if ((await otherFormat(store, name)) === undefined) return;
    await store.transact(async (tx) => {
      const format = await otherFormat(tx, name);
      const row = format && (await catalogueRow(tx, name));
      if (row) setCatalogueRow(tx, { ...row, format });
    });
    if (await repositories.remakeInFormat(diskAddress(name))) await madeAnew(name);
  }

  /** After a release, without its locks: pull requests get their refs in the other repositories they are for. */
  async follow({ served, placed }: ReleaseDone): Promise<void> {
    for (const one of served) await this.parts.pullRequests.copyInto(one);
    await this.parts.pullRequests.spread(placed);
  }

  /** What earlier runs, or other machines, could not end. */
  async readUnfinished(): Promise<void> {
    for (const name of await unfinishedReleases(this.parts.store)) this.#unfinished.set(repositoryKey(name), name);
  }

  /** The release could not be ended: what waits for it must not expire. Whoever leads tries again, also when we never return. */
  markUnfinished(names: readonly RepositoryName[]): void {
    for (const name of names) this.#unfinished.set(repositoryKey(name), name);
    const note = async (tx: Transaction): Promise<void> => {
      for (const name of names) if (this.isUnfinished(name)) markUnfinished(tx, name);
    };
    // A full disk, which most of them fail by, takes no row either: then this process alone knows, and the next start looks.
    this.parts.store.transact(note, { mayWait: true }).catch(() => undefined);
  }

  /** Another machine could not end that release; undefined: somebody did. */
  unfinishedElsewhere(key: string, name: RepositoryName | undefined): void {
    if (name) this.#unfinished.set(key, name);
    else this.#unfinished.delete(key);
  }

  isUnfinished(name: RepositoryName): boolean {
    return this.#unfinished.has(repositoryKey(name));
  }

  /** Tried again until it is done, not at the next start only. */
  async releaseUnfinished(failed: (error: unknown) => void, ledBy?: LedBy): Promise<void> {
    for (const [key, name] of [...this.#unfinished]) {
      this.#unfinished.delete(key);
      try {
        await this.release([name], "present", ledBy && { ledBy });
        if (!this.#unfinished.has(key)) await this.parts.store.transact(async (tx) => endUnfinished(tx, name), ledBy);
      } catch (error) {
        // One that fails again owes again, and keeps no other from being made good.
        failed(error);
      }
    }
  }

  private open = (name: RepositoryName): GitRepository => this.parts.repositories.open(diskAddress(name));

  /** It, and the repositories that the authors of what waits for it decide in. */
  async concerned(name: RepositoryName): Promise<RepositoryName[]> {
    const { store } = this.parts;
    const found = new Map([[repositoryKey(name), name]]);
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
    const onDisk: RepositoryName[] = [];
    for (const one of found.values()) {
      if (await this.parts.repositories.exists(diskAddress(one))) onDisk.push(one);
    }
    return onDisk;
  }

  /** Repositories here whose own directed set contains the author, mutually listed ones first, up to the cap. */
  private decidesIn(author: Pubkey, identifier: string): Promise<readonly RepositoryName[]> {
    const max = this.parts.live.current.releaseMaxRepositories;
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

  /** Under the locks of these. Every step may be done twice: a git that was killed is most likely not killed again. */
  async releaseLocked(concerned: readonly RepositoryName[], wish: ReleaseWish): Promise<ReleaseDone> {
    let hasFailed = false;
    for (let round = 1; ; round++) {
      const copies: Placed[] = [];
      try {
        return await this.releaseOnce(concerned, wish, copies);
      } catch (error) {
        // If it was written after all, they are listed, and fetched again before they are needed.
        for (const copy of copies) await copy.takeBack();
        const isOvertaken = error instanceof Overtaken;
        // Nothing is done twice when nobody knows whether the first time counts.
        if (round === maxRounds || (hasFailed && !isOvertaken) || error instanceof SharedLogError) throw error;
        hasFailed ||= !isOvertaken;
      }
    }
  }

  private async releaseOnce(
    concerned: readonly RepositoryName[],
    { via, partial = new Set(), asked = [], push, ledBy }: ReleaseWish,
    copies: Placed[],
  ): Promise<ReleaseDone> {
    const { clock, repositories } = this.parts;
    const names: RepositoryName[] = [];
    // One under /prs/ may have gone, empty, before its lock was ours.
    for (const name of concerned) {
      if (name.area !== "prs" || (await repositories.exists(diskAddress(name)))) names.push(name);
    }
    // Before any object is looked at: what goes after this is noticed.
    const basis = await repositories.basisOf(names.map((name) => diskAddress(name)));
    const nowSeconds = unixSeconds(clock);
    const copied = new Map<string, number>();
    const hosted = names.filter(({ area }) => area !== "prs");
    const planning = this.planning(nowSeconds, partial, push);
    const plans = await this.planAll(hosted, planning, copied, copies);
    const refs = new RefChanges(basis, ledBy);
    if (push) refs.add(push.repository, push.updates).naming(push.placed ? [push.placed] : []);
    for (const { governing, repository } of plans) {
      if (governing) refs.add(repository, governing.alignment.updates, governing.alignment.head);
    }
    const pullRequests = await this.parts.pullRequests.place(names, plans, asked, planning, copies);
    refs.naming(copies);
    for (const { ref, tip, targets } of pullRequests) {
      for (const { repository } of targets) refs.add(repository, [{ ref, to: tip }]);
    }
    const finishing = { plans, pullRequests, copied, via, nowSeconds };
    const isQuietEverywhere = pullRequests.length === 0 && copied.size === 0 && plans.every(isQuiet);
    const isNothing = isQuietEverywhere && !push && (await refs.areAsWanted());
    const write = async (tx: Transaction): Promise<readonly Released[]> => {
      await push?.write(tx);
      return await storeReleased(tx, finishing);
    };
    const tell = (items: readonly Released[]): void => {
      if (items.length > 0) this.parts.released(items);
    };
    const released = isNothing ? [] : await repositories.changeRefs(refs, write, tell);
    const served = plans.filter(({ governing, row }) => governing && !isReleased(row)).map(({ name }) => name);
    return { released, served, placed: pullRequests };
  }

  /** A state that turns out to be released as partial in one repository decides in the others too: they are planned again. */
  private async planAll(
    names: readonly RepositoryName[],
    planning: PlanParts,
    copied: Map<string, number>,
    copies: Placed[],
  ): Promise<RepositoryPlan[]> {
    for (;;) {
      const plans: RepositoryPlan[] = [];
      const known = planning.servedPartly.size;
      for (const name of names) {
        const plan = await planFor(name, this.open(name), planning);
        if (!plan || !(await this.prepare(plan, planning, copied, copies))) continue;
        const { format } = await planning.refsOf(plan.repository);
        for (const { event } of plan.otherFormat) {
          const what = `state ${event.id} is not copied there: it does not name objects by ${formatName(format)}`;
          this.parts.observer.problem(name, what);
        }
        plans.push(plan);
        const { governing } = plan;
        if (governing && governing.alignment.missing.length > 0) planning.servedPartly.add(governing.state.event.id);
      }
      if (planning.servedPartly.size === known || names.length === 1) return plans;
    }
  }

  /**
   * Objects do not go while a release is at work, so what was found missing need not be asked for twice. A push is planned
   * with as if it were written.
   */
  private planning(nowSeconds: number, partial: ReadonlySet<EventId>, push: PushedRefs | undefined): PlanParts {
    const asked = new Map<string, Promise<ReadonlySet<Oid>>>();
    const tables = new Map<string, ReturnType<PlanParts["refsOf"]>>();
    const isPushed = (repository: GitRepository): boolean => push?.repository.address.key === repository.address.key;
    const refsOf: PlanParts["refsOf"] = (repository) => {
      const { key } = repository.address;
      const known = tables.get(key) ?? repository.refs().then((table) => (isPushed(repository) ? after(table) : table));
      tables.set(key, known);
      return known;
    };
    const after = ({ refs, ...rest }: RefTable): RefTable => {
      const pushed = new Map(refs);
      for (const { ref, to } of push?.updates ?? []) {
        if (to === undefined) pushed.delete(ref);
        else pushed.set(ref, { oid: to, peeled: undefined });
      }
      return { ...rest, refs: pushed };
    };
    const missingOf: PlanParts["missingOf"] = async (repository, oids) => {
      // What a ref names was complete when the ref was written; what was pushed is.
      const named = oidsIn(await refsOf(repository));
      return await repository.missingObjects(oids.filter((oid) => !named.has(oid)));
    };
    return {
      reader: this.parts.store,
      nowSeconds,
      partialGraceSeconds: this.parts.live.current.partialStateGraceSecs,
      partial,
      servedPartly: new Set(),
      refsOf,
      missingOf,
      pushedUnder: (repository) => (isPushed(repository) ? push?.candidate : undefined),
      missingIn: (repository, state) => {
        const key = `${state.event.id} ${repository.address.key}`;
        const known = asked.get(key) ?? missingOf(repository, [...new Set(state.refs.values())]);
        asked.set(key, known);
        return known;
      },
      sourcesFor: (name, state) => this.sourcesFor(name, state.event.pubkey),
    };
  }

  private async isFull(name: RepositoryName): Promise<boolean> {
    const { store, live, archiveBudget } = this.parts;
    return quotaLeft(await accountsOf(store, name, undefined, live.current, archiveBudget)).isUsedUp;
  }

  /** Copies what a plan needs. False: it cannot be carried out; nothing of it may be written. */
  private async prepare(
    { governing, repository, name }: RepositoryPlan,
    { refsOf }: PlanParts,
    copied: Map<string, number>,
    copies: Placed[],
  ): Promise<boolean> {
    if (!governing) return true;
    const { observer } = this.parts;
    const { alignment, copy } = governing;
    const clash = clashOf(await refsOf(repository), alignment.updates);
    if (clash) {
      observer.problem(name, `its refs could not be written: git cannot keep ${clash[0]} beside ${clash[1]}`);
      return false;
    }
    if (!copy) return true;
    if (await this.isFull(name)) {
      observer.problem(name, "its quota is full: objects of its maintainers' repositories were not copied");
      return false;
    }
    const placed = await repository.copyObjectsFrom(copy.from, copy.oids);
    if (!placed) return false;
    copies.push(placed);
    copied.set(repositoryKey(name), (copied.get(repositoryKey(name)) ?? 0) + placed.bytes);
    return true;
  }
}
