// The waiting room as one thing: what main builds, what intake and the git server call.
// Owns no rule: admission decides who may wait, release.ts what is released, sweep.ts what ends.

import type { Verdict } from "../admission/verdict.js";
import { hourlyCounter } from "../base/budget/rates.js";
import type { Clock } from "../base/clock.js";
import { type CatalogueRow, catalogueRow, type RepositoryName } from "../catalogue/repositories.js";
import { bookContribution } from "../catalogue/used-bytes.js";
import type { WaitingEntry } from "../catalogue/waiting.js";
import { type PlacedName, type RepositoryAddress, underPrs } from "../git/address.js";
import type { JournalEntry, KeptAside, PushAuthority, PushCommand, PushOutcome } from "../git/push-types.js";
import type { Repositories } from "../git/repositories.js";
import type { VerifiedEvent } from "../nostr/event.js";
import type { EventId, Oid, Pubkey } from "../nostr/ids.js";
import type { Store } from "../store/port.js";
import { type ContributorRules, Contributors } from "./contributors.js";
import { PullRequestCopies } from "./copy-pull-requests.js";
import { Entering } from "./entering.js";
import { Journal, RefFsync, RefWriter } from "./journal.js";
import { PartialClock } from "./partial-clock.js";
import { Placeholders } from "./placeholders.js";
import { PullRequestRefs } from "./pull-request-refs.js";
import { placesOf } from "./pull-requests.js";
import { Pushes } from "./pushes.js";
import { ArchiveBudget, contributorsOwnAccounts, huntLeft, ownersAccounts, quotaLeft } from "./quotas.js";
import { Releaser } from "./release.js";
import { resume } from "./resume.js";
import type { PurgatorySettings } from "./settings.js";
import type { Released } from "./store-released.js";
import { type Expiry, Sweep } from "./sweep.js";

export interface PurgatoryObserver {
  released(released: Released): void;
  expired(entry: WaitingEntry, expiry: Expiry): void;
  /** Data whose event never came. */
  placeholdersExpired?(count: number): void;
  problem(name: RepositoryName, what: string): void;
  failed(what: string, error: unknown): void;
}

/** What waits around these repositories, or under these ids, may have changed: whoever follows it looks again. */
interface WaitingChange {
  readonly names: readonly PlacedName[];
  readonly ids: readonly EventId[];
}

interface PurgatoryParts {
  readonly store: Store;
  readonly repositories: Repositories;
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
  readonly #refFsync: RefFsync;
  readonly #releaser: Releaser;
  readonly #partials: PartialClock;
  readonly #pushes: Pushes;
  readonly #sweep: Sweep;
  readonly #entering: Entering;
  readonly #contributors: Contributors;
  readonly #pullRequests: PullRequestRefs;
  readonly #watchers = new Set<(change: WaitingChange) => void>();
  #mayExpire: (entry: WaitingEntry) => boolean = () => true;

  constructor(parts: PurgatoryParts) {
    const { store, repositories, clock, settings, observer } = parts;
    this.#parts = parts;
    const journal = new Journal(store);
    const refFsync = new RefFsync(repositories, journal, clock, (error) => observer.failed("syncing refs", error));
    const archiveBudget = new ArchiveBudget(store, clock, () => settings().quotas.archiveBytes);
    this.archiveBudget = archiveBudget;
    const emptied = (name: RepositoryName): Promise<void> => this.#contributors.tidy(name);
    const placeholders = new Placeholders(store, repositories, settings, hourlyCounter(), emptied);
    const problem = (name: RepositoryName, what: string): void => observer.problem(name, what);
    const writer = new RefWriter({ store, journal, refFsync, problem });
    const copies = new PullRequestCopies({ store, repositories, settings, writer, problem });
    const pullRequests = new PullRequestRefs({ store, repositories, writer, copies });
    const releaser = new Releaser({
      store,
      repositories,
      writer,
      copies,
      pullRequests,
      clock,
      partialGraceSeconds: () => settings().partialGraceSeconds,
      maxRepositoriesPerState: () => settings().caps.releaseMaxRepositories,
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
      isOver: (name) => releaser.release([name], "partial"),
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
      refFsync,
      placeholders,
      releaser,
      partials,
      contributors: parts.contributors,
    });
    const isBusy = (name: PlacedName): boolean => pushes.isAtWork(name) || releaser.isUnfinished(name);
    const contributors = new Contributors({
      store,
      repositories,
      isBusy,
      pullRequests,
      copyInto: (name) => copies.copyInto(name),
    });
    this.#contributors = contributors;
    this.#pullRequests = pullRequests;
    this.#entering = new Entering({
      store,
      repositories,
      clock,
      settings,
      placeholders,
      releaser,
      copies,
      pullRequests,
      contributors,
      services: parts.contributors?.services ?? [],
      changed: (names, entries) => this.#changed(names, entries),
    });
    this.#journal = journal;
    this.#refFsync = refFsync;
    this.placeholders = placeholders;
    this.#releaser = releaser;
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
      dropRefs: (withdrawn, author) => this.#entering.dropRefs(withdrawn, author),
      placeholdersExpired: (count) => observer.placeholdersExpired?.(count),
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
    await resume({
      store,
      repositories,
      journal: this.#journal,
      placeholders: this.placeholders,
      releaser: this.#releaser,
      contributors: this.#parts.contributors && this.#contributors,
      claim: (id) => this.#entering.claim(id),
      failed: (what, error) => observer.failed(what, error),
    });
    await this.#partials.open();
  }

  /** After a verdict was written: makes git follow. Answers whether the event is served now. */
  entered(event: VerifiedEvent, verdict: Verdict): Promise<boolean> {
    return this.#entering.entered(event, verdict);
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

  journal(entry: JournalEntry): Promise<boolean> {
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
  fetched(name: RepositoryName, pullRequest?: EventId): Promise<readonly Released[]> {
    return this.#releaser.release([name], "hunt", undefined, pullRequest === undefined ? [] : [pullRequest]);
  }

  /** Served pull requests whose commit is there and whose ref is not. */
  restorePullRequests(name: RepositoryName, tips: ReadonlyMap<EventId, Oid>): Promise<void> {
    return this.#pullRequests.restore(name, tips);
  }

  /** How much more a hunt may bring into a repository; `author`: of the pull request it hunts for. */
  async huntLeft(name: RepositoryName, author: Pubkey | undefined): Promise<number> {
    const { store, settings, diskShareUsed } = this.#parts;
    if ((await diskShareUsed()) >= settings().pushesUntilDiskShare) return 0;
    return huntLeft(store, name, author, settings(), this.archiveBudget);
  }

  /** How much more a hunt may bring for this author under `/prs/`. */
  async contributionLeft(author: Pubkey): Promise<number> {
    const { store, settings } = this.#parts;
    return quotaLeft(await contributorsOwnAccounts(store, author, settings())).maxBytes;
  }

  /** After a hunt for a `/prs/` repository; `bytes` is undefined when it was in vain. `done` ends its `pushBegins`. */
  async contributed(name: RepositoryName, bytes: number | undefined, done: () => void): Promise<void> {
    try {
      if (bytes === undefined) return;
      await this.#parts.store.transact((tx) => bookContribution(tx, name, bytes));
      await this.#releaser.release([underPrs(name)], "hunt");
    } finally {
      done();
      await this.#contributors.tidy(name);
    }
  }

  /** These soft states of it may be released with what is here: the rest is on no server that could be asked. */
  releasePartial(name: RepositoryName, states: ReadonlySet<EventId>): Promise<readonly Released[]> {
    return this.#releaser.release([name], "partial", states);
  }

  revive(name: RepositoryName): Promise<void> {
    return this.#entering.revive(name);
  }

  async sweep(): Promise<void> {
    const { observer } = this.#parts;
    await this.#releaser.releaseUnfinished((error) => observer.failed("ending a release", error));
    await this.#sweep.run();
  }

  async close(): Promise<void> {
    await this.#partials.close();
    await this.#refFsync.flush();
  }
}
