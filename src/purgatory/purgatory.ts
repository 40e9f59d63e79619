// The waiting room as one thing: what main builds, what intake and the git server call.
// Owns no rule: admission decides who may wait, settle.ts what is released, expiry.ts what ends.

import { repositoriesTrusting, storedAuthority } from "../admission/authority.js";
import {
  type CatalogueRow,
  catalogueRow,
  catalogueRows,
  setCatalogueRow,
  takesStates,
  withStatus,
} from "../admission/catalogue.js";
import { hourlyCounter } from "../admission/counters.js";
import { restarted } from "../admission/deadlines.js";
import { type RepositoryName, repositoryKey, repositoryNamed } from "../admission/names.js";
import type { Verdict, Withdrawn } from "../admission/policy.js";
import {
  contributorOf,
  type WaitingEntry,
  waitingAnnouncement,
  waitingContributions,
  waitingTotals,
} from "../admission/waiting.js";
import { putWaiting } from "../admission/waiting-writes.js";
import { type Clock, unixSeconds } from "../base/clock.js";
import type { RepositoryAddress } from "../git/address.js";
import { GitError } from "../git/run.js";
import type {
  JournalEntry,
  KeptAside,
  PushAuthority,
  PushCommand,
  PushOutcome,
  RepositoryStore,
} from "../git/types.js";
import { addressOf } from "../nostr/address.js";
import type { VerifiedEvent } from "../nostr/event.js";
import type { EventId, Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import type { Store } from "../store/port.js";
import { ArchiveBudget } from "./archive-budget.js";
import { bookContribution } from "./contribution-quotas.js";
import { type ContributorRules, Contributors } from "./contributors.js";
import type { Expiry } from "./expiry.js";
import type { Released } from "./finish.js";
import { Journal } from "./journal.js";
import { Mirroring } from "./mirroring.js";
import { PartialClock } from "./partial-clock.js";
import { Placeholders } from "./placeholders.js";
import { PromiseKeeper } from "./promise-keeper.js";
import { knownPullRequest, placesOf } from "./pull-requests.js";
import { Pushes } from "./pushes.js";
import { contributorAccount, ownersAccounts, quotaLeft } from "./quotas.js";
import { RefWriter } from "./ref-writer.js";
import { diskAddress, type PlacedName, placeKey, underPrs } from "./repository-address.js";
import { replayPromises } from "./resume.js";
import type { PurgatorySettings } from "./settings.js";
import { Settling } from "./settle.js";
import { Sweep } from "./sweep.js";

export interface PurgatoryObserver {
  released(released: Released): void;
  expired(entry: WaitingEntry, expiry: Expiry): void;
  problem(name: RepositoryName, what: string): void;
  failed(what: string, error: unknown): void;
}

/** What waits around these repositories, or under these ids, may have changed: whoever follows it looks again. */
export interface WaitingChange {
  readonly names: readonly PlacedName[];
  readonly ids: readonly EventId[];
}

export interface PurgatoryParts {
  readonly store: Store;
  readonly repositories: RepositoryStore;
  readonly clock: Clock;
  readonly settings: () => PurgatorySettings;
  /** Share of the git disk in use, 0 to 1. */
  readonly diskShareUsed: () => Promise<number>;
  readonly observer: PurgatoryObserver;
  /** GRASP-06, when it is on. */
  readonly contributors?: ContributorRules;
}

export class Purgatory {
  readonly placeholders: Placeholders;
  /** For the hunt, which fills mirrors. */
  readonly archiveBudget: ArchiveBudget;
  readonly #parts: PurgatoryParts;
  readonly #journal: Journal;
  readonly #keeper: PromiseKeeper;
  readonly #settling: Settling;
  readonly #partials: PartialClock;
  readonly #pushes: Pushes;
  readonly #sweep: Sweep;
  readonly #mirroring: Mirroring;
  readonly #contributors: Contributors;
  readonly #watchers = new Set<(change: WaitingChange) => void>();
  #mayExpire: (entry: WaitingEntry) => boolean = () => true;

  constructor(parts: PurgatoryParts) {
    const { store, repositories, clock, settings, observer } = parts;
    this.#parts = parts;
    const journal = new Journal(store);
    const keeper = new PromiseKeeper(repositories, journal, clock, (error) => observer.failed("syncing refs", error));
    const archiveBudget = new ArchiveBudget(store, clock, () => settings().quotas.archiveBytes);
    this.archiveBudget = archiveBudget;
    const emptied = (name: RepositoryName): Promise<void> => this.#contributors.tidy(name);
    const placeholders = new Placeholders(store, repositories, settings, hourlyCounter(), emptied);
    const problem = (name: RepositoryName, what: string): void => observer.problem(name, what);
    const writer = new RefWriter({ store, journal, keeper, problem });
    const mirroring = new Mirroring({ store, repositories, settings, writer, problem });
    const settling = new Settling({
      store,
      repositories,
      writer,
      mirroring,
      clock,
      partialGraceSeconds: () => settings().partialGraceSeconds,
      maxRepositoriesPerState: () => settings().caps.repositoriesPerState,
      mayCopyInto: async (name) => !quotaLeft(await ownersAccounts(store, name, settings(), archiveBudget)).isUsedUp,
      released: (released) => {
        for (const item of released) observer.released(item);
        this.#changed([], released);
      },
      problem,
    });
    const partials = new PartialClock({
      store,
      clock,
      graceSeconds: () => settings().partialGraceSeconds,
      isOver: (name) => settling.settle([name], "partial"),
      failed: (error) => observer.failed("releasing a partial state", error),
    });
    const { diskShareUsed } = parts;
    const pushes = new Pushes({
      store,
      clock,
      settings,
      diskShareUsed,
      archiveBudget,
      journal,
      keeper,
      placeholders,
      settling,
      partials,
      contributors: parts.contributors,
    });
    const isBusy = (name: PlacedName): boolean => pushes.isAtWork(name) || settling.isOwed(name);
    const contributors = new Contributors({
      store,
      repositories,
      isBusy,
      dropPullRequests: (ids, name) => settling.dropPullRequests(ids, name),
      mirrorInto: (name) => mirroring.into(name),
    });
    this.#contributors = contributors;
    this.#mirroring = mirroring;
    this.#journal = journal;
    this.#keeper = keeper;
    this.placeholders = placeholders;
    this.#settling = settling;
    this.#partials = partials;
    this.#pushes = pushes;
    this.#sweep = new Sweep({
      store,
      repositories,
      placeholders,
      clock,
      settings,
      contributors: parts.contributors && contributors,
      isBusy,
      mayExpire: (entry) => this.#mayExpire(entry),
      expired: (entry, expiry) => {
        observer.expired(entry, expiry);
        this.#changed(placesOf(entry), [entry]);
      },
    });
  }

  /** For the hunt: called after every change of what waits. The answer stops it. */
  watch(listener: (change: WaitingChange) => void): () => void {
    this.#watchers.add(listener);
    return () => this.#watchers.delete(listener);
  }

  /** After a start nothing that waited before it expires until it was hunted once: the hunt says when that is. */
  expireOnlyIf(mayExpire: (entry: WaitingEntry) => boolean): void {
    this.#mayExpire = mayExpire;
  }

  #changed(names: readonly PlacedName[], entries: readonly { readonly id: EventId }[]): void {
    for (const watcher of this.#watchers) watcher({ names, ids: entries.map(({ id }) => id) });
  }

  /** Ends what a crash interrupted: promised refs, repositories that should be on disk, releases that had begun. */
  async resume(): Promise<void> {
    const { store, repositories, observer } = this.#parts;
    await this.placeholders.open();
    // One repository that git cannot work with must not keep the server from starting.
    const unlessBroken = async (what: string, work: () => Promise<unknown>): Promise<boolean> => {
      try {
        await work();
        return true;
      } catch (error) {
        if (!(error instanceof GitError)) throw error;
        observer.failed(what, error);
        return false;
      }
    };
    await replayPromises(await this.#journal.open(), repositories, this.#journal, (work) =>
      unlessBroken("keeping a promise", work),
    );
    const unsettled: RepositoryName[] = [];
    for await (const row of catalogueRows(store)) {
      if (row.status === "waiting") await repositories.create(diskAddress(row));
      if (row.status === "soft" && row.governing === null) await repositories.delete(diskAddress(row));
      if (row.status === "waiting" || row.status === "served" || row.status === "archived") unsettled.push(row);
      await this.placeholders.dropUnknown(row);
    }
    for (const id of this.placeholders.ids) await unlessBroken("claiming", () => this.#claim(id));
    for (const name of unsettled) {
      if (!(await this.#hasWaiting(name))) continue;
      await unlessBroken("settling at start", () => this.#settling.settle([name], "present"));
    }
    if (this.#parts.contributors) await this.#resumeContributors();
    await this.#partials.open();
  }

  async #resumeContributors(): Promise<void> {
    const waiting = new Map<string, PlacedName>();
    for await (const entry of waitingContributions(this.#parts.store)) {
      for (const name of placesOf(entry)) if (name.area === "prs") waiting.set(placeKey(name), name);
    }
    for (const name of waiting.values()) await this.#settling.settle([name], "present");
    await this.#contributors.sweep();
  }

  async #hasWaiting(name: RepositoryName): Promise<boolean> {
    for await (const _ of this.#parts.store.rows("purgatory", { prefix: `r:${repositoryKey(name)}:`, limit: 1 }))
      return true;
    return false;
  }

  async #claim(id: EventId): Promise<void> {
    const known = await knownPullRequest(this.#parts.store, id, this.#parts.contributors?.services ?? []);
    if (known) await this.placeholders.claim(known);
  }

  /** After a verdict was written: makes git follow. Answers whether the event is served now. */
  async entered(event: VerifiedEvent, verdict: Verdict): Promise<boolean> {
    if (!verdict.ok) return false;
    try {
      return await this.#follow(event, verdict);
    } finally {
      const held = (verdict.changes ?? []).flatMap((change) => (change.type === "hold" ? [change.entry] : []));
      const unheld = (verdict.changes ?? []).flatMap((change) => (change.type === "unhold" ? [change] : []));
      const changed = (verdict.repositories ?? []).map(({ name }) => name);
      const concerned = await this.#concernedBy(event, verdict);
      this.#changed([...changed, ...concerned, ...held.flatMap(placesOf)], unheld);
    }
  }

  async #follow(event: VerifiedEvent, verdict: Verdict & { readonly ok: true }): Promise<boolean> {
    const { repositories } = this.#parts;
    for (const change of verdict.repositories ?? []) {
      if (change.to === "create" || change.to === "return") await repositories.create(diskAddress(change.name));
      if (change.to === "remove") {
        await repositories.delete(diskAddress(change.name));
        await this.placeholders.repositoryGone(change.name);
      }
    }
    if (verdict.action === "store" || verdict.action === "leave") {
      await this.#dropRefs(verdict.withdrawn ?? [], event.pubkey);
    }
    if (verdict.action === "known" && event.kind === kinds.announcement) await this.#ensureOnDisk(event);
    const names = await this.#concernedBy(event, verdict);
    if (names.length === 0) return false;
    const settle = async (): Promise<boolean> => {
      if (verdict.action === "hold" && verdict.entry.kind === "pull-request") await this.#claim(event.id);
      const released = await this.#settling.settle(names, "present");
      return released.some(({ id }) => id === event.id);
    };
    const contributor = verdict.action === "hold" ? contributorOf(verdict.entry) : undefined;
    const isServed = contributor
      ? // Between claim and release its data hangs on nothing.
        await repositories.whileUsed(diskAddress(underPrs(contributor)), settle)
      : await settle();
    if (contributor) await this.#contributors.tidy(contributor);
    for (const { name, to } of verdict.repositories ?? []) if (to === "return") await this.#mirroring.into(name);
    return isServed;
  }

  async #dropRefs(withdrawn: readonly Withdrawn[], author: Pubkey): Promise<void> {
    const pullRequests = withdrawn.filter(({ kind }) => kind === kinds.pullRequest || kind === kinds.pullRequestUpdate);
    for (const { id, repositories } of pullRequests) {
      for (const name of repositories.flatMap((text) => repositoryNamed(text) ?? [])) {
        await this.#settling.dropPullRequests([id], name);
        const own = { owner: author, identifier: name.identifier };
        await this.#settling.dropPullRequests([id], underPrs(own));
        await this.#contributors.tidy(own);
      }
    }
  }

  /** The first time git may have failed after the event was written; whoever sends it again may rely on the OK. */
  async #ensureOnDisk(event: VerifiedEvent): Promise<void> {
    const name = { owner: event.pubkey, identifier: addressOf(event)?.identifier ?? "" };
    const row = await catalogueRow(this.#parts.store, name);
    if (row?.status === "waiting") await this.#parts.repositories.create(diskAddress(name));
  }

  async #concernedBy(event: VerifiedEvent, verdict: Verdict & { readonly ok: true }): Promise<PlacedName[]> {
    if (verdict.action !== "hold" && verdict.action !== "store") return [];
    // A new version of an announcement may add a maintainer whose state is here already: to its own repository, and
    // to each one that trusts its author.
    if (event.kind === kinds.announcement) {
      const name = { owner: event.pubkey, identifier: addressOf(event)?.identifier ?? "" };
      const max = this.#parts.settings().caps.repositoriesPerState;
      const authority = storedAuthority(this.#parts.store);
      const trusting = await repositoriesTrusting(authority, event.pubkey, name.identifier, max, takesStates);
      return [name, ...trusting.map(({ owner, identifier }) => ({ owner, identifier }))];
    }
    if (verdict.action === "store") return [];
    return placesOf(verdict.entry);
  }

  /** The catalogue's word on a repository, for the git server: only these are served. */
  async lookUp(name: RepositoryName): Promise<CatalogueRow | undefined> {
    const row = await catalogueRow(this.#parts.store, name);
    return row && row.status !== "soft" && row.status !== "deleted" ? row : undefined;
  }

  authority(address: RepositoryAddress, commands: readonly PushCommand[], ip: string): Promise<PushAuthority> {
    return this.#pushes.authority(address, commands, ip);
  }

  /** A push or a fetch for it is at work until the returned function is called: nothing of it expires meanwhile. */
  pushBegins(name: PlacedName): () => void {
    return this.#pushes.begins(name);
  }

  journal(entry: JournalEntry): Promise<void> {
    return this.#pushes.journal(entry);
  }

  keptAside(kept: KeptAside): Promise<void> {
    return this.placeholders.keptAside(kept);
  }

  abandoned(entry: JournalEntry): Promise<void> {
    return this.#pushes.abandoned(entry);
  }

  async pushed(outcome: PushOutcome): Promise<string[]> {
    const lines = await this.#pushes.pushed(outcome);
    this.#changed([outcome.address], []);
    return lines;
  }

  /** After a hunt brought objects into a repository, or found its refs adrift. */
  fetched(name: RepositoryName): Promise<readonly Released[]> {
    return this.#settling.settle([name], "hunt");
  }

  /** How much more a hunt may bring for this author under `/prs/`. */
  async contributionLeft(author: Pubkey): Promise<number> {
    const { store, settings } = this.#parts;
    return quotaLeft([await contributorAccount(store, author, settings())]).maxBytes;
  }

  /** After a hunt for a `/prs/` repository; `bytes` is undefined when it was in vain. `done` ends its `pushBegins`. */
  async contributed(name: RepositoryName, bytes: number | undefined, done: () => void): Promise<void> {
    try {
      if (bytes === undefined) return;
      await this.#parts.store.transact((tx) => bookContribution(tx, name, bytes));
      await this.#settling.settle([underPrs(name)], "hunt");
    } finally {
      done();
      await this.#contributors.tidy(name);
    }
  }

  /** These soft states of it may be released with what is here: the rest is on no server that could be asked. */
  releasePartial(name: RepositoryName, states: ReadonlySet<EventId>): Promise<readonly Released[]> {
    return this.#settling.settle([name], "partial", states);
  }

  /** A hunt found data for a repository whose announcement had gone soft: it waits again, on disk. */
  async revive(name: RepositoryName): Promise<void> {
    const { store, repositories, clock, settings } = this.#parts;
    const now = unixSeconds(clock);
    await store.transact(async (tx) => {
      const row = await catalogueRow(tx, name);
      const entry = await waitingAnnouncement(tx, name);
      if (row?.status !== "soft" || !entry) return;
      await putWaiting(tx, restarted(entry, now, settings().caps));
      setCatalogueRow(tx, withStatus(row, "waiting", now));
    });
    await repositories.create(diskAddress(name));
  }

  async sweep(): Promise<void> {
    const { observer } = this.#parts;
    await this.#settling.settleUnfinished().catch((error: unknown) => observer.failed("ending a release", error));
    await this.#sweep.run();
  }

  totals(): ReturnType<typeof waitingTotals> {
    return waitingTotals(this.#parts.store);
  }

  async close(): Promise<void> {
    await this.#partials.close();
    await this.#keeper.flush();
  }
}
