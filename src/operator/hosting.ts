// `repos delete` and `repos restore`. Deleting un-hosts: the URL is 404 and the announcement is not served from that
// moment; the data stays for the grace period (NGIT_UNHOST_GRACE_DAYS). The removed announcement and older ones do not
// bring it back when somebody replays them; a newer one by its owner does (to keep it out: ban the repository).
// `takeAway` is also what bans, `events delete` and `purgatory drop` take events away with.

import type { Withdrawal } from "../admission/withdrawal.js";
import { unixSeconds } from "../base/clock.js";
import { type BanRow, bannedAuthorKey, bannedEventKey, repositoryList } from "../catalogue/bans-and-lists.js";
import { forgetLeft, rememberLeft } from "../catalogue/decisions.js";
import { refreshListings } from "../catalogue/maintainers.js";
import {
  type CatalogueRow,
  catalogueRow,
  type RepositoryName,
  repositoryKey,
  setCatalogueRow,
  withStatus,
} from "../catalogue/repositories.js";
import { type WaitingEntry, waitingAnnouncement } from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import { withdraw } from "../intake/carry-out.js";
import { addressOf, type EventId, eventFromStoredText, kinds, type VerifiedEvent } from "../nostr/event.js";
import type { RemovalCause, Transaction } from "../store/port.js";
import { type AdminParts, type Caller, done, noteChange, type Outcome, refusal } from "./context.js";
import { repositoryText } from "./naming.js";

const secondsPerDay = 86_400;
const notKnown = (name: RepositoryName) => refusal("unknown", `no repository ${repositoryText(name)} is known here`);

export interface Unhosted {
  readonly repository: string;
  /** When its data goes; null when there was none. */
  readonly keptUntil: number | null;
}

export async function unhostRepository(
  parts: AdminParts,
  caller: Caller,
  name: RepositoryName,
  reason: string,
): Promise<Outcome<Unhosted>> {
  const answer = await parts.store.transact(async (tx) => {
    await forgetOldAsides(tx);
    const row = await catalogueRow(tx, name);
    if (!row) return notKnown(name);
    if (row.status === "deleted") return refusal("not-possible", `${repositoryText(name)} is deleted already`);
    await noteChange(tx, parts.clock, caller, { what: "unhost repository", target: repositoryText(name), reason });
    return done(await takeDown(parts, tx, row, "operator", reason));
  });
  if (!answer.ok) return answer;
  await parts.rules.refresh();
  await followInGit(parts, answer.result);
  const row = await catalogueRow(parts.store, name);
  const graceSeconds = parts.config().unhostGraceDays * secondsPerDay;
  return done({ repository: repositoryText(name), keptUntil: row ? row.since + graceSeconds : null });
}

/** Inside a transaction: the announcement goes, waiting or stored, and may not return; the row follows. */
export async function takeDown(
  parts: AdminParts,
  tx: Transaction,
  row: CatalogueRow,
  cause: RemovalCause,
  reason: string,
): Promise<TakenAway> {
  const now = unixSeconds(parts.clock);
  const { owner, identifier } = row;
  const stored = await tx.latest({ kind: kinds.announcement, pubkey: owner, identifier });
  const waiting = await waitingAnnouncement(tx, row);
  const going = { stored: stored ? [stored.event] : [], waiting: waiting ? [waiting] : [] };
  const withdrawn = await takeAway(parts, tx, going, cause);
  for (const { id, created_at } of [...going.stored, ...going.waiting]) {
    tx.setRow<BanRow>("bans", bannedEventKey(id), { since: now, reason: reason || "its repository was un-hosted" });
    const until = now + parts.config().unhostGraceDays * secondsPerDay;
    rememberLeft(tx, row, { created_at, id, until });
  }
  const left = await catalogueRow(tx, row);
  // A repository that was restored without an announcement has nothing that could take it along.
  if (left && left.status !== "deleted") setCatalogueRow(tx, withStatus(left, "deleted", now));
  return withdrawn;
}

export interface Restored {
  readonly repository: string;
  readonly status: CatalogueRow["status"];
  readonly note: string;
}

export async function restoreRepository(
  parts: AdminParts,
  caller: Caller,
  name: RepositoryName,
): Promise<Outcome<Restored>> {
  const blacklist = repositoryList(parts.rules.over(parts.config()).repositoryBlacklist);
  if (blacklist.has(name)) {
    return refusal("not-possible", `${repositoryText(name)} is on the repository blacklist: lift that first`);
  }
  const onDisk = await (await parts.repositories()).exists(diskAddress(name));
  const answer = await parts.store.transact(async (tx): Promise<Outcome<Restored>> => {
    const row = await catalogueRow(tx, name);
    if (!row) return notKnown(name);
    if (row.status !== "leaving" && row.status !== "deleted") {
      return refusal("not-possible", `${repositoryText(name)} is ${row.status}: there is nothing to restore`);
    }
    if (!onDisk) return refusal("not-possible", `the data of ${repositoryText(name)} is not on disk any more`);
    if ((await tx.row("bans", bannedAuthorKey(name.owner))) !== undefined) {
      return refusal("not-possible", "its owner's key is banned: lift that first");
    }
    const isAnnounced = await bringBackAnnouncement(tx, name);
    const now = unixSeconds(parts.clock);
    const status = isAnnounced ? (row.archive ? "archived" : "served") : "leaving";
    setCatalogueRow(tx, { ...row, status, since: now });
    await refreshListings(tx, name, now);
    await noteChange(tx, parts.clock, caller, { what: "restore repository", target: repositoryText(name) });
    const note = isAnnounced ? "" : "its owner deleted the announcement: read-only until the owner announces it again";
    return done({ repository: repositoryText(name), status, note });
  });
  await parts.rules.refresh();
  // Without a running server the next start does it.
  if (answer.ok && parts.running) await (await parts.carryOut()).followReturn(name);
  return answer;
}

/** Whether an announcement of it is served now. One its author deleted stays deleted. */
async function bringBackAnnouncement(tx: Transaction, name: RepositoryName): Promise<boolean> {
  const aside = await tx.row<PutAside>("meta", asideKey(name));
  if (aside) {
    tx.deleteRow("meta", asideKey(name));
    tx.deleteRow("bans", bannedEventKey(aside.id as EventId));
    forgetLeft(tx, name);
    await tx.put(eventFromStoredText(aside.raw));
  }
  return (await tx.latest({ kind: kinds.announcement, pubkey: name.owner, identifier: name.identifier })) !== undefined;
}

/** An announcement the operator removed, while its repository's data is kept. */
interface PutAside {
  readonly raw: string;
  readonly id: string;
  readonly at: number;
}

const asidePrefix = "unhosted:";
const asideKey = (name: RepositoryName): string => `${asidePrefix}${repositoryKey(name)}`;

/** What the operator took away, and what follows from it. */
export interface TakenAway extends Withdrawal {
  readonly events: readonly VerifiedEvent[];
  readonly ended: readonly WaitingEntry[];
}

/** Removes stored and waiting events and writes everything that follows; git follows with `followInGit`. */
export async function takeAway(
  parts: AdminParts,
  tx: Transaction,
  going: { readonly stored: readonly VerifiedEvent[]; readonly waiting: readonly WaitingEntry[] },
  cause: RemovalCause,
): Promise<TakenAway> {
  const now = unixSeconds(parts.clock);
  const blacklist = repositoryList(parts.rules.over(parts.config()).repositoryBlacklist);
  const withdrawal = await withdraw(tx, { ...going, cause }, now, (name) => blacklist.has(name));
  for (const event of going.stored) if (event.kind === kinds.announcement) putAside(tx, event, now);
  return { ...withdrawal, events: going.stored, ended: going.waiting };
}

function putAside(tx: Transaction, event: VerifiedEvent, at: number): void {
  const name = { owner: event.pubkey, identifier: addressOf(event)?.identifier ?? "" };
  tx.setRow<PutAside>("meta", asideKey(name), { raw: event.raw, id: event.id, at });
}

/** While no server runs, git is started only where something of it goes. */
export async function followInGit(parts: AdminParts, taken: TakenAway): Promise<void> {
  const isInGit =
    taken.repositories.some(({ to }) => to === "remove") ||
    taken.withdrawn.some(({ kind }) => kind === kinds.pullRequest || kind === kinds.pullRequestUpdate);
  if (isInGit || parts.running) await (await parts.carryOut()).followWithdrawal(taken, taken.ended);
}

/** Rows whose repository is gone for good, or came back by itself. */
async function forgetOldAsides(tx: Transaction): Promise<void> {
  const old: string[] = [];
  for await (const [key] of tx.rows<PutAside>("meta", { prefix: asidePrefix })) {
    const row = await tx.row<{ status: string }>("catalogue", key.slice(asidePrefix.length));
    if (row?.status !== "deleted") old.push(key);
  }
  for (const key of old) tx.deleteRow("meta", key);
}
