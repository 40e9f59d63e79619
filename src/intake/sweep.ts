// Ends what has waited too long (purgatory.md, "Waiting room": expiry). The decisions are pure functions
// at the end of the file.

import { ownerNaming } from "../admission/maintainer-exception.js";
import type { Withdrawal } from "../admission/withdrawal.js";
import { unixSeconds } from "../base/clock.js";
import { rememberId } from "../catalogue/decisions.js";
import { storedAuthority } from "../catalogue/maintainers.js";
import { forgetOldRemoved } from "../catalogue/removed-by-ban.js";
import {
  type CatalogueRow,
  catalogueRow,
  catalogueRows,
  complianceTag,
  deleteCatalogueRow,
  isOfComplianceTool,
  type RepositoryName,
  setCatalogueRow,
  withStatus,
} from "../catalogue/repositories.js";
import {
  dueEntries,
  movePartial,
  partialPushes,
  placesOf,
  putWaiting,
  type WaitingEntry,
  waitingEntry,
  waitingEvent,
} from "../catalogue/waiting.js";
import { expirationOf, kinds } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import type { Expiry, PurgatoryConfig, PurgatoryContext } from "../purgatory/context.js";
import type { Purgatory } from "../purgatory/purgatory.js";
import type { LedBy, Store, Transaction } from "../store/port.js";
import { type CarryOut, withdraw } from "./carry-out.js";

const secondsPerDay = 86_400;
const maxAuditedAtOnce = 500;
/** Work that looks at every row is done this often; nothing it ends is in a hurry. */
const choresEverySeconds = 3_600;

export class Sweep {
  readonly #purgatory: Purgatory;
  private readonly parts: PurgatoryContext;
  #seen: ClockLook;
  readonly #startedMs: number;
  #choresAt = Number.NEGATIVE_INFINITY;

  /** `led`: the store as whoever leads uses it. */
  constructor(
    private readonly carryOut: CarryOut,
    private readonly led: { readonly store: Store; readonly ledBy?: LedBy } = carryOut.purgatory.context,
  ) {
    this.#purgatory = carryOut.purgatory;
    this.parts = { ...carryOut.purgatory.context, store: led.store };
    const { clock } = this.parts;
    this.#seen = { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
    this.#startedMs = this.#seen.monotonicMs;
  }

  async run(): Promise<void> {
    await this.#purgatory.releaseUnfinished(this.led.ledBy);
    await this.#followClock();
    // One moment for the whole turn: a clock that jumps during it is followed by the next.
    const now = Math.floor(this.#seen.wallMs / 1000);
    await this.#removeExpiredEvents(now);
    // While the server was down nothing could arrive: everybody gets a chance to bring it now.
    const upSeconds = (this.parts.clock.monotonicMs() - this.#startedMs) / 1000;
    if (upSeconds < this.parts.live.current.purgatoryStartGraceSecs) return;
    for (const phase of ["waiting", "soft"] as const) {
      for await (const entry of dueEntries(this.parts.store, phase, now)) await this.#expire(entry, now);
    }
    const placeholders = await this.#purgatory.placeholders.expire(this.#noLaterThan(now), this.#purgatory.isBusy);
    if (placeholders > 0) this.parts.observer.placeholdersExpired?.(placeholders);
    await this.#removeAuditEvents(now - this.parts.live.current.auditEventExpirySecs);
    if (now - this.#choresAt < choresEverySeconds) return;
    this.#choresAt = now;
    await this.#removeGoneRepositories(now);
    await forgetOldRemoved(this.parts.store, now - this.parts.live.current.unhostGraceDays * secondsPerDay);
    // What lies under `/prs/` is kept while GRASP-06 is off.
    if (this.parts.contributorRules) await this.#purgatory.contributors.sweep();
    await this.#forgetRemembered(now);
  }

  /** A clock that went back since this turn began has given what came meanwhile times from before it. */
  #noLaterThan(now: number): number {
    return Math.min(now, unixSeconds(this.parts.clock));
  }

  /** A wall clock that jumps must not end every wait, nor stretch it by a year. */
  async #followClock(): Promise<void> {
    const now = { wallMs: this.parts.clock.nowMs(), monotonicMs: this.parts.clock.monotonicMs() };
    const before = this.#seen;
    const jump = clockJumpSeconds(before, now, this.parts.live.current.purgatoryClockJumpSecs);
    this.#seen = now;
    if (jump === 0) return;
    const isOlder = takenBefore(jump, before, now);
    const { store } = this.parts;
    this.#choresAt = Number.NEGATIVE_INFINITY;
    // What was decided by the old clock and is being written is among the rows after this.
    await store.transact(async () => undefined);
    await this.#purgatory.placeholders.shift(jump, isOlder);
    const partials = await partialPushes(store);
    await store.transact(async (tx) => {
      for (const push of partials) if (isOlder(push.since)) movePartial(tx, push, jump);
    });
    const keys: string[] = [];
    for await (const [key] of store.rows("purgatory", { prefix: "e:" })) keys.push(key);
    for (const key of keys) {
      await store.transact(async (tx) => {
        const entry = await tx.row<WaitingEntry>("purgatory", key);
        if (entry) await putWaiting(tx, movedBy(entry, jump, isOlder));
      });
    }
  }

  async #expire(entry: WaitingEntry, now: number): Promise<void> {
    const { store, live, observer } = this.parts;
    const { isBusy } = this.#purgatory;
    if (entry.expires > this.#noLaterThan(now)) return;
    if (placesOf(entry).some(isBusy) || !this.#purgatory.mayExpire(entry)) return;
    for (const name of placesOf(entry)) if (await this.parts.repositories.isBusyElsewhere(name)) return;
    const expiry = asItsTagsSay(entry, expiryOf(entry, now, live.current), now, live.current.auditEventExpirySecs);
    // The transaction asks again whether a push is at work: a push may have begun while the transaction waited for its turn,
    // and the entry it was decided by must still be there when it ends.
    const end = await store.transact(async (tx) =>
      placesOf(entry).some(isBusy) ? undefined : applyExpiry(tx, entry, expiry, now),
    );
    if (!end) return;
    observer.expired(entry, expiry);
    await this.carryOut.followWithdrawal(end, [entry]);
  }

  /** Served events whose own time is over (NIP-40) go, with what git holds of them, as if their authors deleted them. */
  async #removeExpiredEvents(now: number): Promise<void> {
    const gone: Withdrawal[] = [];
    await this.parts.store.sweepExpired(now, async (tx, event) => {
      gone.push(await withdraw(tx, { stored: [event], waiting: [], cause: undefined }, now));
    });
    for (const withdrawal of gone) await this.carryOut.followWithdrawal(withdrawal);
  }

  /** Events of the public compliance tool, and their repositories, are not kept. */
  async #removeAuditEvents(untilSeconds: number): Promise<void> {
    const { store, clock } = this.parts;
    const filter: Filter = { tags: new Map([["t", [complianceTag]]]), until: untilSeconds };
    for await (const page of store.query([filter], { limit: maxAuditedAtOnce })) {
      for (const { event } of page) {
        const end = await store.transact(async (tx) => {
          const going = { stored: [event], waiting: [], cause: "operator" as const };
          const withdrawal = await withdraw(tx, going, unixSeconds(clock));
          const removed = withdrawal.repositories.map(({ name }) => ({ name, to: "remove" as const }));
          for (const { name } of removed) deleteCatalogueRow(tx, name);
          return { ...withdrawal, repositories: removed };
        });
        await this.carryOut.followWithdrawal(end);
      }
    }
  }

  async #forgetRemembered(now: number): Promise<void> {
    const { store } = this.parts;
    const over: string[] = [];
    for await (const [key, { until }] of store.rows<{ readonly until: number }>("remembered")) {
      if (until <= now) over.push(key);
    }
    await store.transact(async (tx) => {
      for (const key of over) tx.deleteRow("remembered", key);
    });
  }

  /** Repositories that left or were deleted, once their grace is over. */
  async #removeGoneRepositories(now: number): Promise<void> {
    const { store, live } = this.parts;
    const over: CatalogueRow[] = [];
    for await (const row of catalogueRows(store)) if (isGraceOver(row, now, live.current)) over.push(row);
    for (const row of over) {
      const end = await store.transact((tx) => forgetRepository(tx, row, now));
      if (end) await this.carryOut.followWithdrawal(end);
    }
    await this.carryOut.changeDirectories(over.map((name) => ({ name, to: "remove" })));
  }
}

/**
 * Whose own time is over (NIP-40) could not be served whatever comes. What the public compliance tool left behind is not
 * kept softly for longer than what of it is served.
 */
function asItsTagsSay(entry: WaitingEntry, expiry: Expiry, now: number, auditSeconds: number): Expiry {
  const event = waitingEvent(entry);
  const expiration = expirationOf(event);
  if (expiration !== undefined && expiration <= now) return { to: "gone", rememberUntil: undefined };
  if (expiry.to !== "soft" || !isOfComplianceTool(event)) return expiry;
  return { ...expiry, expires: Math.min(expiry.expires, entry.created_at + auditSeconds) };
}

/** Undefined when the entry was gone or prolonged meanwhile. */
async function applyExpiry(
  tx: Transaction,
  entry: WaitingEntry,
  expiry: Expiry,
  now: number,
): Promise<Withdrawal | undefined> {
  const current = await waitingEntry(tx, entry.id);
  if (!current || current.expires !== entry.expires || current.phase !== entry.phase) return undefined;
  if (expiry.to === "soft") {
    await putWaiting(tx, { ...current, phase: "soft", expires: expiry.expires, renewed: now });
    const name = { owner: entry.pubkey, identifier: entry.identifier };
    const dropped = expiry.dropRepository ? await softened(tx, name, now) : [];
    const repositories = dropped.map((one) => ({ name: one, to: "remove" as const }));
    return { changes: [], withdrawn: [], repositories, concerned: [] };
  }
  if (expiry.rememberUntil !== undefined) {
    const { pubkey, eventKind: kind, source } = entry;
    const relay = source.type === "sync" ? source.relay : null;
    rememberId(tx, entry.id, { pubkey, kind, reason: "expired", relay, until: expiry.rememberUntil });
  }
  return withdraw(tx, { stored: [], waiting: [current], cause: undefined }, now);
}

/** With its row goes the announcement that left us: only as somebody's maintainer may its author have one here. */
async function forgetRepository(tx: Transaction, row: CatalogueRow, now: number): Promise<Withdrawal | undefined> {
  const current = await catalogueRow(tx, row);
  // Announced again while this waited for its turn.
  if (current?.status !== row.status || current.since !== row.since) return undefined;
  deleteCatalogueRow(tx, row);
  const { owner, identifier } = row;
  const left =
    row.status === "leaving" ? await tx.latest({ kind: kinds.announcement, pubkey: owner, identifier }) : undefined;
  if (!left || (await ownerNaming(storedAuthority(tx), row, () => false)) !== undefined) return undefined;
  return withdraw(tx, { stored: [left.event], waiting: [], cause: "unhosted" }, now);
}

/** A replacement of a repository that is served waits for nothing of its own: then there is nothing to drop. */
async function softened(tx: Transaction, name: RepositoryName, now: number): Promise<RepositoryName[]> {
  const row = await catalogueRow(tx, name);
  if (row?.status !== "waiting") return [];
  setCatalogueRow(tx, withStatus(row, "soft", now));
  return [name];
}

// ---- when a wait or a grace is over, what happens then, and what a clock that jumped does to both: pure ------------

export function expiryOf(
  entry: WaitingEntry,
  nowSeconds: number,
  times: Pick<PurgatoryConfig, "purgatorySoftExpirySecs" | "purgatoryRememberSecs">,
): Expiry {
  const { purgatorySoftExpirySecs: softSeconds, purgatoryRememberSecs: rememberSeconds } = times;
  const gone = { to: "gone", rememberUntil: undefined } as const;
  switch (entry.kind) {
    case "related":
      return gone;
    case "announcement":
      return entry.phase === "waiting" ? { to: "soft", expires: nowSeconds + softSeconds, dropRepository: true } : gone;
    case "state":
    case "pull-request":
      // One that a client sent may be sent again at any time; one that sync or an import brought would be missed for ever.
      if (entry.source.type !== "sync" && entry.source.type !== "import") return gone;
      return entry.phase === "waiting"
        ? { to: "soft", expires: nowSeconds + rememberSeconds, dropRepository: false }
        : { to: "gone", rememberUntil: nowSeconds + rememberSeconds };
  }
}

/** What a deleted or leaving repository held goes then; what the public compliance tool deleted is not kept as long. */
export function isGraceOver(
  { status, since, checkedAt }: CatalogueRow,
  nowSeconds: number,
  { unhostGraceDays, auditEventExpirySecs }: Pick<PurgatoryConfig, "unhostGraceDays" | "auditEventExpirySecs">,
): boolean {
  if (status !== "deleted" && status !== "leaving") return false;
  if (since + unhostGraceDays * secondsPerDay <= nowSeconds) return true;
  return status === "deleted" && typeof checkedAt === "number" && checkedAt + auditEventExpirySecs <= nowSeconds;
}

/** Both clocks at one moment. */
interface ClockLook {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** How far the wall clock jumped since it was looked at last; jumps up to `toleratedSeconds` are lived with. */
export function clockJumpSeconds(before: ClockLook, after: ClockLook, toleratedSeconds: number): number {
  const driftMs = after.wallMs - before.wallMs - (after.monotonicMs - before.monotonicMs);
  return Math.abs(driftMs) > toleratedSeconds * 1000 ? Math.round(driftMs / 1000) : 0;
}

/** Whether a time was taken before a jump between these two looks: what came after it has its times from the new clock. */
export function takenBefore(jumpSeconds: number, before: ClockLook, after: ClockLook): (atSeconds: number) => boolean {
  const [first, last] = [Math.floor(before.wallMs / 1000) + jumpSeconds - 1, Math.ceil(after.wallMs / 1000)];
  return (atSeconds) => atSeconds < first || atSeconds > last;
}

/** Each of its times by the clock it was taken from: a wait may have been renewed after the jump. */
export function movedBy(entry: WaitingEntry, seconds: number, isOlder: (atSeconds: number) => boolean): WaitingEntry {
  const moved = (at: number): number => (isOlder(at) ? at + seconds : at);
  const { entered, firstWaited, renewed = entered } = entry;
  const expires = isOlder(renewed) ? entry.expires + seconds : entry.expires;
  return { ...entry, entered: moved(entered), firstWaited: moved(firstWaited), renewed: moved(renewed), expires };
}
