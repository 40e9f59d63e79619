// Ends what has waited too long (purgatory.md, "Waiting room": expiry). Decisions are in expiry.ts; this applies them.

import { type CatalogueRow, catalogueRow, catalogueRows, setCatalogueRow, withStatus } from "../admission/catalogue.js";
import { refreshListings } from "../admission/listings.js";
import { type RepositoryName, repositoryKey, repositoryNamed } from "../admission/names.js";
import { rememberId } from "../admission/remembered.js";
import { dueEntries, type WaitingEntry, waitingEntry } from "../admission/waiting.js";
import { putWaiting, removeWaiting } from "../admission/waiting-writes.js";
import { type Clock, unixSeconds } from "../base/clock.js";
import type { RepositoryStore } from "../git/types.js";
import type { Filter } from "../nostr/filter.js";
import { kinds } from "../nostr/kinds.js";
import type { Store, Transaction } from "../store/port.js";
import { clockJumpSeconds, type Expiry, expiryOf } from "./expiry.js";
import type { Placeholders } from "./placeholders.js";
import { diskAddress } from "./repository-address.js";
import type { PurgatorySettings } from "./settings.js";

export interface SweepParts {
  readonly store: Store;
  readonly repositories: RepositoryStore;
  readonly placeholders: Placeholders;
  readonly clock: Clock;
  readonly settings: () => PurgatorySettings;
  /** A push or fetch for it is running: it is not taken away under it. */
  readonly isBusy: (name: RepositoryName) => boolean;
  readonly expired: (entry: WaitingEntry, expiry: Expiry) => void;
}

const maxExpiredAtOnce = 500;
const auditTag = "grasp-audit-test-event";

export class Sweep {
  #seen: { wallMs: number; monotonicMs: number };

  constructor(private readonly parts: SweepParts) {
    this.#seen = { wallMs: parts.clock.nowMs(), monotonicMs: parts.clock.monotonicMs() };
  }

  async run(): Promise<void> {
    await this.#followClock();
    const now = unixSeconds(this.parts.clock);
    for (const phase of ["waiting", "soft"] as const) {
      for (const entry of await dueEntries(this.parts.store, phase, now, maxExpiredAtOnce))
        await this.#expire(entry, now);
    }
    await this.parts.placeholders.expire(now);
    await this.#removeAuditEvents(now - this.parts.settings().auditSeconds);
    await this.#removeGoneRepositories(now);
  }

  /** A wall clock that jumps must not end every wait, nor stretch it by a year. */
  async #followClock(): Promise<void> {
    const now = { wallMs: this.parts.clock.nowMs(), monotonicMs: this.parts.clock.monotonicMs() };
    const jump = clockJumpSeconds(this.#seen, now);
    this.#seen = now;
    if (jump === 0) return;
    const { store } = this.parts;
    const keys: string[] = [];
    for await (const [key] of store.rows("purgatory", { prefix: "e:" })) keys.push(key);
    for (const key of keys) {
      await store.transact(async (tx) => {
        const entry = await tx.row<WaitingEntry>("purgatory", key);
        if (!entry) return;
        const { expires, entered, firstWaited } = entry;
        await putWaiting(tx, {
          ...entry,
          expires: expires + jump,
          entered: entered + jump,
          firstWaited: firstWaited + jump,
        });
      });
    }
  }

  async #expire(entry: WaitingEntry, now: number): Promise<void> {
    const { store, repositories, settings, isBusy, placeholders } = this.parts;
    const names = entry.repositories.flatMap((text) => repositoryNamed(text) ?? []);
    if (names.some(isBusy)) return;
    const expiry = expiryOf(entry, now, settings().caps);
    const own = entry.kind === "announcement" ? { owner: entry.pubkey, identifier: entry.identifier } : undefined;
    const dropped = await store.transact((tx) => applyExpiry(tx, entry, expiry, own, now));
    if (dropped === undefined) return;
    this.parts.expired(entry, expiry);
    if (dropped) {
      await repositories.delete(diskAddress(dropped));
      await placeholders.repositoryGone(dropped);
    }
  }

  /** Events of the public compliance tool, and their repositories, are not kept. */
  async #removeAuditEvents(untilSeconds: number): Promise<void> {
    const { store, repositories, placeholders } = this.parts;
    const filter: Filter = { tags: new Map([["t", [auditTag]]]), until: untilSeconds };
    const gone: RepositoryName[] = [];
    for await (const page of store.query([filter], { limit: maxExpiredAtOnce })) {
      for (const { event } of page) {
        await store.transact(async (tx) => {
          await tx.remove(event.id, "operator");
          if (event.kind !== kinds.announcement) return;
          const name = { owner: event.pubkey, identifier: event.tags.find((tag) => tag[0] === "d")?.[1] ?? "" };
          tx.deleteRow("catalogue", repositoryKey(name));
          await refreshListings(tx, name, unixSeconds(this.parts.clock));
          gone.push(name);
        });
      }
    }
    for (const name of gone) {
      await repositories.delete(diskAddress(name));
      await placeholders.repositoryGone(name);
    }
  }

  /** Repositories that left or were deleted, once their grace is over. */
  async #removeGoneRepositories(now: number): Promise<void> {
    const { store, repositories, settings, placeholders } = this.parts;
    const over: CatalogueRow[] = [];
    for await (const row of catalogueRows(store)) {
      const isGoing = row.status === "leaving" || row.status === "deleted";
      if (isGoing && row.since + settings().unhostGraceSeconds <= now) over.push(row);
    }
    for (const row of over) {
      await store.transact(async (tx) => tx.deleteRow("catalogue", repositoryKey(row)));
      await repositories.delete(diskAddress(row));
      await placeholders.repositoryGone(row);
    }
  }
}

/** The repository to delete, null when there is none, undefined when the entry was gone already. */
async function applyExpiry(
  tx: Transaction,
  entry: WaitingEntry,
  expiry: Expiry,
  own: RepositoryName | undefined,
  now: number,
): Promise<RepositoryName | null | undefined> {
  const current = await waitingEntry(tx, entry.id);
  if (!current || current.expires !== entry.expires || current.phase !== entry.phase) return undefined;
  if (expiry.to === "soft") await putWaiting(tx, { ...current, phase: "soft", expires: expiry.expires });
  else await removeWaiting(tx, entry.id);
  if (expiry.to === "gone" && expiry.rememberUntil !== undefined) {
    const { pubkey, eventKind: kind, source } = entry;
    const relay = source.type === "sync" ? source.relay : null;
    rememberId(tx, entry.id, { pubkey, kind, reason: "expired", relay, until: expiry.rememberUntil });
  }
  if (!own) return null;
  const row = await catalogueRow(tx, own);
  // A replacement of a repository that is served waits for nothing of its own.
  if (!row || (row.status !== "waiting" && row.status !== "soft")) return null;
  if (expiry.to === "soft") setCatalogueRow(tx, withStatus(row, "soft", now));
  else tx.deleteRow("catalogue", repositoryKey(own));
  await refreshListings(tx, own, now);
  return row.status === "waiting" ? own : null;
}
