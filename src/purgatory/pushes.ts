// What a push means for the waiting room: who may push, what is promised before the refs are written, what is
// released after, and the clock of a state of which only a part has come (git-http.md, "Push" 3 to 7).

import { catalogueRow, setCatalogueRow } from "../admission/catalogue.js";
import { restarted } from "../admission/deadlines.js";
import { type RepositoryName, repositoryKey } from "../admission/names.js";
import { waitingAnnouncement, waitingEntry } from "../admission/waiting.js";
import { putWaiting } from "../admission/waiting-writes.js";
import { type Clock, unixSeconds } from "../base/clock.js";
import type { RepositoryAddress } from "../git/address.js";
import type { JournalEntry, PushAuthority, PushCommand, PushOutcome } from "../git/types.js";
import { compareNewestFirst, type NostrEvent } from "../nostr/event.js";
import { type EventId, isEventId } from "../nostr/ids.js";
import type { Store, Transaction } from "../store/port.js";
import type { Released } from "./finish.js";
import { endPartial, type Journal, startPartial } from "./journal.js";
import type { PartialClock } from "./partial-clock.js";
import type { Placeholders } from "./placeholders.js";
import type { PromiseKeeper } from "./promise-keeper.js";
import { knownPullRequest } from "./pull-requests.js";
import { pushAuthority } from "./push-authority.js";
import {
  type Account,
  bookContributors,
  bookOwners,
  contributorsAccounts,
  ownersAccounts,
  quotaLeft,
  quotaRemarks,
} from "./quotas.js";
import type { PurgatorySettings } from "./settings.js";
import type { Settling } from "./settle.js";

export interface PushesParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: () => PurgatorySettings;
  readonly diskShareUsed: () => Promise<number>;
  readonly journal: Journal;
  readonly keeper: PromiseKeeper;
  readonly placeholders: Placeholders;
  readonly settling: Settling;
  readonly partials: PartialClock;
}

/** What one journal entry changed, so that it can be taken back. */
interface Promised {
  readonly key: string;
  readonly undo: (tx: Transaction) => Promise<void>;
}

const nostrIds = (refs: readonly { readonly ref: string }[]): EventId[] =>
  refs.map(({ ref }) => (ref.startsWith("refs/nostr/") ? ref.slice("refs/nostr/".length) : "")).filter(isEventId);

export class Pushes {
  readonly #promised = new Map<JournalEntry, Promised>();
  readonly #atWork = new Map<string, number>();

  constructor(private readonly parts: PushesParts) {}

  begins(name: RepositoryName): () => void {
    const key = repositoryKey(name);
    this.#atWork.set(key, (this.#atWork.get(key) ?? 0) + 1);
    return () => {
      const left = (this.#atWork.get(key) ?? 1) - 1;
      if (left > 0) this.#atWork.set(key, left);
      else this.#atWork.delete(key);
    };
  }

  isAtWork(name: RepositoryName): boolean {
    return this.#atWork.has(repositoryKey(name));
  }

  async authority(address: RepositoryAddress, commands: readonly PushCommand[], ip: string): Promise<PushAuthority> {
    const { store, settings, clock, diskShareUsed, placeholders } = this.parts;
    const { pushStrict, archiveReadOnly, pushesUntilDiskShare } = settings();
    const ids = nostrIds(commands);
    const events = new Map<EventId, NostrEvent>();
    for (const id of ids) {
      const known = await knownPullRequest(store, id);
      if (known) events.set(id, known.event);
    }
    const unknown = ids.filter((id) => !events.has(id));
    const isFull = (await diskShareUsed()) >= pushesUntilDiskShare;
    return pushAuthority(store, address, commands, {
      strict: pushStrict,
      archiveReadOnly,
      unclaimed: placeholders.allowance(ip, unknown, unixSeconds(clock)),
      quota: quotaLeft(await this.#accounts(address, ids.length === commands.length, [...events.values()])),
      closedReason: isFull ? "the server's disk is nearly full, it takes no pushes now: try again later" : undefined,
    });
  }

  #accounts(
    name: RepositoryName,
    isForPullRequests: boolean,
    events: readonly NostrEvent[],
  ): Promise<readonly Account[]> {
    const { store, settings } = this.parts;
    const isOwners = events.length > 0 && events.every(({ pubkey }) => pubkey === name.owner);
    if (!isForPullRequests || isOwners) return ownersAccounts(store, name, settings());
    const authors = [...new Set(events.map(({ pubkey }) => pubkey))].filter((author) => author !== name.owner);
    return contributorsAccounts(store, name, authors, settings());
  }

  /** What the pusher should know of the accounts this push was booked to. */
  async #remarks(name: RepositoryName, { updates }: PushOutcome): Promise<string[]> {
    const ids = nostrIds(updates);
    const known = await Promise.all(ids.map((id) => knownPullRequest(this.parts.store, id)));
    const events = known.flatMap((one) => one?.event ?? []);
    return quotaRemarks(await this.#accounts(name, ids.length === updates.length, events));
  }

  /** Between prepare and commit: the wanted values, the mark and a partial state's clock are on disk before the refs. */
  async journal(entry: JournalEntry): Promise<void> {
    const { address, candidate } = entry;
    const { owner, identifier, area } = address;
    const now = unixSeconds(this.parts.clock);
    const updates = entry.updates.map(({ ref, to }) => ({ ref, to: to ?? null }));
    const promised = await this.parts.store.transact(async (tx): Promise<Promised> => {
      const row = await catalogueRow(tx, address);
      const key = this.parts.journal.promise(tx, { owner, identifier, area, updates, head: null });
      if (!row || !candidate) return { key, undo: async () => undefined };
      const mark = { id: candidate.id, created_at: candidate.created_at };
      const rises = !row.mark || compareNewestFirst(mark, row.mark) < 0;
      if (rises) setCatalogueRow(tx, { ...row, mark });
      const isFirst =
        (await waitingEntry(tx, candidate.id)) !== undefined && (await startPartial(tx, address, candidate.id, now));
      const undo = async (later: Transaction): Promise<void> => {
        const current = await catalogueRow(later, address);
        if (rises && current?.mark?.id === mark.id) setCatalogueRow(later, { ...current, mark: row.mark });
        if (isFirst) endPartial(later, address, candidate.id);
      };
      return { key, undo };
    });
    this.#promised.set(entry, promised);
  }

  /** The refs were not written after all: the next start must not write them. */
  async abandoned(entry: JournalEntry): Promise<void> {
    const promised = this.#promised.get(entry);
    this.#promised.delete(entry);
    if (!promised) return;
    await this.parts.store.transact(async (tx) => {
      tx.deleteRow("journal", promised.key);
      await promised.undo(tx);
    });
  }

  /** After the refs are written, before the report is sent. The lines go to the pusher's terminal. */
  async pushed(outcome: PushOutcome): Promise<string[]> {
    const { address, decision, updates } = outcome;
    const { store, clock, settings, keeper, placeholders, settling, partials } = this.parts;
    const name: RepositoryName = { owner: address.owner, identifier: address.identifier };
    for (const [entry, { key }] of this.#promised) {
      if (entry.address.key !== address.key) continue;
      keeper.add(name, key);
      this.#promised.delete(entry);
    }
    await placeholders.pushed(name, outcome);
    const now = unixSeconds(clock);
    const state = updates.length > 0 ? decision.candidate : undefined;
    await store.transact(async (tx) => {
      await this.#book(tx, name, outcome);
      const announcement = state && (await waitingAnnouncement(tx, name));
      if (announcement) await putWaiting(tx, restarted(announcement, now, settings().caps));
    });
    // An event that came while its data was on its way found none.
    for (const { eventId } of outcome.placeholders) {
      const known = await knownPullRequest(store, eventId);
      if (known) await placeholders.claim(known);
    }
    const released = await settling.settle([name], "push");
    if (state) await partials.watch(name, state.id);
    return [...(await this.#linesFor(name, released, state?.id)), ...(await this.#remarks(name, outcome))];
  }

  async #book(tx: Transaction, name: RepositoryName, { updates, packBytes }: PushOutcome): Promise<void> {
    const row = await catalogueRow(tx, name);
    if (!row) return;
    const counted = { ...row, counters: { ...row.counters, pushes: row.counters.pushes + 1 } };
    setCatalogueRow(tx, counted);
    const ids = nostrIds(updates);
    if (updates.length > ids.length) bookOwners(tx, counted, packBytes);
    else if (ids[0] !== undefined) {
      const known = await knownPullRequest(tx, ids[0]);
      await bookContributors(tx, counted, known?.event.pubkey ?? row.owner, packBytes);
    }
  }

  async #linesFor(name: RepositoryName, released: readonly Released[], state: EventId | undefined): Promise<string[]> {
    const lines: string[] = [];
    if (released.some(({ kind }) => kind === "announcement")) lines.push("the repository is served from now on");
    if (released.some(({ kind }) => kind === "state")) lines.push("the state event is served from now on");
    if (released.some(({ kind }) => kind === "pull-request")) lines.push("the pull request is served from now on");
    const row = await catalogueRow(this.parts.store, name);
    const missing = row?.partial?.missingRefs.length ?? 0;
    if (missing > 0) lines.push(`${missing} refs of the state are still missing: push them too`);
    else if (state && (await waitingEntry(this.parts.store, state))) {
      lines.push("other refs of the state are still missing: push them too");
    }
    return lines;
  }
}
