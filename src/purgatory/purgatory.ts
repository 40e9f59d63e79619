// The waiting room as one thing: what main builds, what intake and the git server call.
// Owns no rule: admission decides who may wait, settle.ts what is released, expiry.ts what ends.

import { type CatalogueRow, catalogueRow, catalogueRows, setCatalogueRow, withStatus } from "../admission/catalogue.js";
import { hourlyCounter } from "../admission/counters.js";
import { restarted } from "../admission/deadlines.js";
import { type RepositoryName, repositoryKey, repositoryNamed } from "../admission/names.js";
import type { Verdict } from "../admission/policy.js";
import { type WaitingEntry, waitingAnnouncement, waitingEntry, waitingTotals } from "../admission/waiting.js";
import { putWaiting } from "../admission/waiting-writes.js";
import { type Clock, unixSeconds } from "../base/clock.js";
import type { RepositoryAddress } from "../git/address.js";
import type { JournalEntry, PushAuthority, PushCommand, PushOutcome, RepositoryStore } from "../git/types.js";
import { compareNewestFirst, type VerifiedEvent } from "../nostr/event.js";
import { type EventId, isEventId } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import type { Store } from "../store/port.js";
import type { Expiry } from "./expiry.js";
import type { Released } from "./finish.js";
import { Journal, partialPushes, startPartial } from "./journal.js";
import { Placeholders } from "./placeholders.js";
import { PromiseKeeper } from "./promise-keeper.js";
import { pushAuthority } from "./push-authority.js";
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
  readonly #sweep: Sweep;
  /** Promises of pushes that are being written, by repository. */
  readonly #promised = new Map<string, string[]>();
  readonly #pushing = new Map<string, number>();
  readonly #partialTimers = new Set<() => void>();
  readonly #watchers = new Set<(change: WaitingChange) => void>();
  #mayExpire: (entry: WaitingEntry) => boolean = () => true;

  constructor(parts: PurgatoryParts) {
    const { store, repositories, clock, settings, observer } = parts;
    this.#parts = parts;
    this.#journal = new Journal(store);
    this.#keeper = new PromiseKeeper(repositories, this.#journal, clock, (error) =>
      observer.failed("syncing refs", error),
    );
    this.placeholders = new Placeholders(store, repositories, settings, hourlyCounter());
    this.#settling = new Settling({
      store,
      repositories,
      journal: this.#journal,
      keeper: this.#keeper,
      clock,
      partialGraceSeconds: () => settings().partialGraceSeconds,
      maxRepositoriesPerState: () => settings().caps.repositoriesPerState,
      mayCopyInto: async (name) => (await this.#quotaLeft(name)).maxBytes > 0,
      released: (released) => {
        for (const item of released) observer.released(item);
        this.#changed([], released);
      },
      problem: (name, what) => observer.problem(name, what),
    });
    this.#sweep = new Sweep({
      store,
      repositories,
      placeholders: this.placeholders,
      clock,
      settings,
      isBusy: (name) => this.#pushing.has(repositoryKey(name)),
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
      if (row.status === "waiting" || row.status === "served" || row.status === "archived") unsettled.push(row);
    }
    for (const name of unsettled) {
      if (await this.#hasWaiting(name)) await this.#settling.settle([name], "present");
    }
    for (const { owner, identifier, since } of await partialPushes(store)) {
      this.#schedulePartial({ owner, identifier }, since);
    }
  }

  async #hasWaiting(name: RepositoryName): Promise<boolean> {
    for await (const _ of this.#parts.store.rows("purgatory", { prefix: `r:${repositoryKey(name)}:`, limit: 1 }))
      return true;
    return false;
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
      this.#changed([...changed, ...this.#concernedBy(event, verdict), ...held.flatMap(repositoriesOf)], unheld);
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
    const names = this.#concernedBy(event, verdict);
    if (names.length === 0) return false;
    if (verdict.action === "hold" && verdict.entry.kind === "pull-request")
      await this.placeholders.claim(verdict.entry);
    const released = await this.#settling.settle(names, "present");
    return released.some(({ id }) => id === event.id);
  }

  #concernedBy(event: VerifiedEvent, verdict: Verdict & { readonly ok: true }): RepositoryName[] {
    if (verdict.action === "hold") return verdict.entry.repositories.flatMap((text) => repositoryNamed(text) ?? []);
    // A new version of a served announcement may add a maintainer whose state is here already.
    if (verdict.action === "store" && event.kind === kinds.announcement) {
      const identifier = event.tags.find((tag) => tag[0] === "d")?.[1] ?? "";
      return [{ owner: event.pubkey, identifier }];
    }
    return [];
  }

  /** The catalogue's word on a repository, for the git server: only these are served. */
  async lookUp(name: RepositoryName): Promise<CatalogueRow | undefined> {
    const row = await catalogueRow(this.#parts.store, name);
    return row && row.status !== "soft" && row.status !== "deleted" ? row : undefined;
  }

  async authority(address: RepositoryAddress, commands: readonly PushCommand[], ip: string): Promise<PushAuthority> {
    const { store, settings, clock, diskShareUsed } = this.#parts;
    const { pushStrict, archiveReadOnly, pushesUntilDiskShare } = settings();
    const unknown = await this.#unknownEvents(commands);
    return pushAuthority(store, address, commands, {
      strict: pushStrict,
      archiveReadOnly,
      unclaimed: this.placeholders.allowance(ip, unknown, unixSeconds(clock)),
      quota: await this.#quotaLeft(address),
      closedReason:
        (await diskShareUsed()) >= pushesUntilDiskShare
          ? "the server's disk is nearly full: try again later"
          : undefined,
    });
  }

  async #unknownEvents(commands: readonly PushCommand[]): Promise<EventId[]> {
    const ids = commands.map(({ ref }) => (ref.startsWith("refs/nostr/") ? ref.slice("refs/nostr/".length) : ""));
    const unknown: EventId[] = [];
    for (const id of ids.filter(isEventId)) {
      const known = (await this.#parts.store.has(id)) || (await waitingEntry(this.#parts.store, id)) !== undefined;
      if (!known) unknown.push(id);
    }
    return unknown;
  }

  async #quotaLeft(name: RepositoryName): Promise<{ readonly maxBytes: number; readonly reason: string }> {
    const { quotas } = this.#parts.settings();
    let owned = 0;
    let own = 0;
    for await (const row of catalogueRows(this.#parts.store, name.owner)) {
      owned += row.counters.bytes;
      if (row.identifier === name.identifier) own = row.counters.bytes;
    }
    const left = Math.min(quotas.repositoryBytes - own, quotas.ownerBytes - owned);
    return { maxBytes: Math.max(0, left), reason: "the quota of this repository or its owner is used up" };
  }

  /** Between prepare and commit of a push: the wanted values and the mark are on disk before the refs are. */
  async journal(entry: JournalEntry): Promise<void> {
    const { owner, identifier } = entry.address;
    const updates = entry.updates.map(({ ref, to }) => ({ ref, to: to ?? null }));
    const key = await this.#parts.store.transact(async (tx) => {
      const row = await catalogueRow(tx, entry.address);
      const { candidate } = entry;
      if (row && candidate && (!row.mark || compareNewestFirst(candidate, row.mark) < 0)) {
        setCatalogueRow(tx, { ...row, mark: { id: candidate.id, created_at: candidate.created_at } });
      }
      return this.#journal.promise(tx, { owner, identifier, area: entry.address.area, updates, head: null });
    });
    const waiting = this.#promised.get(entry.address.key) ?? [];
    this.#promised.set(entry.address.key, [...waiting, key]);
  }

  pushBegins(name: RepositoryName): () => void {
    const key = repositoryKey(name);
    this.#pushing.set(key, (this.#pushing.get(key) ?? 0) + 1);
    return () => {
      const left = (this.#pushing.get(key) ?? 1) - 1;
      if (left > 0) this.#pushing.set(key, left);
      else this.#pushing.delete(key);
    };
  }

  /** After the refs of a push are written, before its report is sent. The lines go to the pusher's terminal. */
  async pushed(outcome: PushOutcome): Promise<string[]> {
    const { address, decision, updates } = outcome;
    const name: RepositoryName = { owner: address.owner, identifier: address.identifier };
    for (const key of this.#promised.get(address.key) ?? []) this.#keeper.add(name, key);
    this.#promised.delete(address.key);
    await this.placeholders.pushed(name, outcome);
    const now = unixSeconds(this.#parts.clock);
    const moved = decision.moves && updates.length > 0;
    await this.#parts.store.transact(async (tx) => {
      const row = await catalogueRow(tx, name);
      if (!row) return;
      const { counters } = row;
      const bytes = counters.bytes + outcome.packBytes;
      setCatalogueRow(tx, { ...row, counters: { ...counters, pushes: counters.pushes + 1, bytes } });
      const { candidate } = decision;
      if (!moved || !candidate) return;
      if (await waitingEntry(tx, candidate.id)) await startPartial(tx, name, candidate.id, now);
      const announcement = await waitingAnnouncement(tx, name);
      if (announcement) await putWaiting(tx, restarted(announcement, now, this.#parts.settings().caps));
    });
    const released = await this.#settling.settle([name], "push");
    this.#changed([name], []);
    if (moved && decision.candidate) await this.#afterPartialPush(name, decision.candidate.id, now);
    return this.#linesFor(name, released, decision.candidate?.id);
  }

  async #afterPartialPush(name: RepositoryName, state: EventId, now: number): Promise<void> {
    if (await waitingEntry(this.#parts.store, state)) this.#schedulePartial(name, now);
  }

  #schedulePartial(name: RepositoryName, since: number): void {
    const { clock, settings, observer } = this.#parts;
    const due = since + settings().partialGraceSeconds;
    const delayMs = Math.max(0, due * 1000 - clock.nowMs()) + 1_000;
    const cancel = clock.after(delayMs, () => {
      this.#partialTimers.delete(cancel);
      this.#settling.settle([name], "partial").catch((error) => observer.failed("releasing a partial state", error));
    });
    this.#partialTimers.add(cancel);
  }

  async #linesFor(name: RepositoryName, released: readonly Released[], state: EventId | undefined): Promise<string[]> {
    const lines: string[] = [];
    if (released.some(({ kind }) => kind === "announcement")) lines.push("the repository is served from now on");
    if (released.some(({ kind }) => kind === "state")) lines.push("the state event is served from now on");
    if (released.some(({ kind }) => kind === "pull-request")) lines.push("the pull request is served from now on");
    const row = await catalogueRow(this.#parts.store, name);
    const missing = row?.partial?.missingRefs.length ?? 0;
    if (missing > 0) lines.push(`${missing} refs of the state are still missing: push them too`);
    else if (state && (await waitingEntry(this.#parts.store, state))) {
      lines.push("other refs of the state are still missing: push them too");
    }
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
    for (const cancel of this.#partialTimers) cancel();
    this.#partialTimers.clear();
    await this.#keeper.flush();
  }
}
