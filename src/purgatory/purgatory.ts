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
import { type WaitingEntry, waitingAnnouncement, waitingTotals } from "../admission/waiting.js";
import { putWaiting } from "../admission/waiting-writes.js";
import { type Clock, unixSeconds } from "../base/clock.js";
import type { RepositoryAddress } from "../git/address.js";
import type { JournalEntry, PushAuthority, PushCommand, PushOutcome, RepositoryStore } from "../git/types.js";
import { addressOf } from "../nostr/address.js";
import type { VerifiedEvent } from "../nostr/event.js";
import type { EventId } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import type { Store } from "../store/port.js";
import type { Expiry } from "./expiry.js";
import type { Released } from "./finish.js";
import { Journal } from "./journal.js";
import { PartialClock } from "./partial-clock.js";
import { Placeholders } from "./placeholders.js";
import { PromiseKeeper } from "./promise-keeper.js";
import { knownPullRequest } from "./pull-requests.js";
import { Pushes } from "./pushes.js";
import { ownersAccounts, quotaLeft } from "./quotas.js";
import { diskAddress } from "./repository-address.js";
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
  readonly names: readonly RepositoryName[];
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
}

const repositoriesOf = (entry: WaitingEntry): RepositoryName[] =>
  entry.repositories.flatMap((text) => repositoryNamed(text) ?? []);

export class Purgatory {
  readonly placeholders: Placeholders;
  readonly #parts: PurgatoryParts;
  readonly #journal: Journal;
  readonly #keeper: PromiseKeeper;
  readonly #settling: Settling;
  readonly #partials: PartialClock;
  readonly #pushes: Pushes;
  readonly #sweep: Sweep;
  readonly #watchers = new Set<(change: WaitingChange) => void>();
  #mayExpire: (entry: WaitingEntry) => boolean = () => true;

  constructor(parts: PurgatoryParts) {
    const { store, repositories, clock, settings, observer } = parts;
    this.#parts = parts;
    const journal = new Journal(store);
    const keeper = new PromiseKeeper(repositories, journal, clock, (error) => observer.failed("syncing refs", error));
    const placeholders = new Placeholders(store, repositories, settings, hourlyCounter());
    const settling = new Settling({
      store,
      repositories,
      journal,
      keeper,
      clock,
      partialGraceSeconds: () => settings().partialGraceSeconds,
      maxRepositoriesPerState: () => settings().caps.repositoriesPerState,
      mayCopyInto: async (name) => !quotaLeft(await ownersAccounts(store, name, settings())).isUsedUp,
      released: (released) => {
        for (const item of released) observer.released(item);
        this.#changed([], released);
      },
      problem: (name, what) => observer.problem(name, what),
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
      journal,
      keeper,
      placeholders,
      settling,
      partials,
    });
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
      isBusy: (name) => pushes.isAtWork(name),
      mayExpire: (entry) => this.#mayExpire(entry),
      expired: (entry, expiry) => {
        observer.expired(entry, expiry);
        this.#changed(repositoriesOf(entry), [entry]);
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

  #changed(names: readonly RepositoryName[], entries: readonly { readonly id: EventId }[]): void {
    for (const watcher of this.#watchers) watcher({ names, ids: entries.map(({ id }) => id) });
  }

  /** Ends what a crash interrupted: promised refs, repositories that should be on disk, releases that had begun. */
  async resume(): Promise<void> {
    const { store, repositories } = this.#parts;
    await this.placeholders.open();
    await replayPromises(await this.#journal.open(), repositories, this.#journal);
    const unsettled: RepositoryName[] = [];
    for await (const row of catalogueRows(store)) {
      if (row.status === "waiting") await repositories.create(diskAddress(row));
      if (row.status === "soft" && row.governing === null) await repositories.delete(diskAddress(row));
      if (row.status === "waiting" || row.status === "served" || row.status === "archived") unsettled.push(row);
    }
    for (const id of this.placeholders.ids) await this.#claim(id);
    for (const name of unsettled) {
      if (await this.#hasWaiting(name)) await this.#settling.settle([name], "present");
    }
    await this.#partials.open();
  }

  async #hasWaiting(name: RepositoryName): Promise<boolean> {
    for await (const _ of this.#parts.store.rows("purgatory", { prefix: `r:${repositoryKey(name)}:`, limit: 1 }))
      return true;
    return false;
  }

  async #claim(id: EventId): Promise<void> {
    const known = await knownPullRequest(this.#parts.store, id);
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
      this.#changed([...changed, ...concerned, ...held.flatMap(repositoriesOf)], unheld);
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
    if (verdict.action === "store" || verdict.action === "leave") await this.#dropRefs(verdict.withdrawn ?? []);
    if (verdict.action === "known" && event.kind === kinds.announcement) await this.#ensureOnDisk(event);
    const names = await this.#concernedBy(event, verdict);
    if (names.length === 0) return false;
    if (verdict.action === "hold" && verdict.entry.kind === "pull-request") await this.#claim(event.id);
    const released = await this.#settling.settle(names, "present");
    return released.some(({ id }) => id === event.id);
  }

  async #dropRefs(withdrawn: readonly Withdrawn[]): Promise<void> {
    const pullRequests = withdrawn.filter(({ kind }) => kind === kinds.pullRequest || kind === kinds.pullRequestUpdate);
    for (const { id, repositories } of pullRequests) {
      for (const name of repositories.flatMap((text) => repositoryNamed(text) ?? [])) {
        await this.#settling.dropPullRequests([id], name);
      }
    }
  }

  /** The first time git may have failed after the event was written; whoever sends it again may rely on the OK. */
  async #ensureOnDisk(event: VerifiedEvent): Promise<void> {
    const name = { owner: event.pubkey, identifier: addressOf(event)?.identifier ?? "" };
    const row = await catalogueRow(this.#parts.store, name);
    if (row?.status === "waiting") await this.#parts.repositories.create(diskAddress(name));
  }

  async #concernedBy(event: VerifiedEvent, verdict: Verdict & { readonly ok: true }): Promise<RepositoryName[]> {
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
    return verdict.entry.repositories.flatMap((text) => repositoryNamed(text) ?? []);
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
  pushBegins(name: RepositoryName): () => void {
    return this.#pushes.begins(name);
  }

  journal(entry: JournalEntry): Promise<void> {
    return this.#pushes.journal(entry);
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

  sweep(): Promise<void> {
    return this.#sweep.run();
  }

  totals(): ReturnType<typeof waitingTotals> {
    return waitingTotals(this.#parts.store);
  }

  async close(): Promise<void> {
    await this.#partials.close();
    await this.#keeper.flush();
  }
}
