// `repos delete` and `repos restore`. Deleting un-hosts: the URL is 404 and the announcement is not served from that
// moment; the data stays for the grace period (NGIT_UNHOST_GRACE_DAYS). The removed announcement and older ones do not
// bring it back when somebody replays them; a newer one by its owner does (to keep it out: ban the repository).

import { unixSeconds } from "../base/clock.js";
import { type BanRow, bannedAuthorKey, bannedEventKey, repositoryList } from "../catalogue/bans-and-lists.js";
import { forgetLeft, rememberLeft } from "../catalogue/remembered.js";
import type { RepositoryName } from "../catalogue/repositories.js";
import { type CatalogueRow, catalogueRow, setCatalogueRow, withStatus } from "../catalogue/repositories.js";
import { refreshListings } from "../catalogue/trusting-repositories.js";
import { waitingAnnouncement } from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import { eventFromStoredText } from "../nostr/event.js";
import type { EventId } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import type { RemovalCause, Transaction } from "../store/port.js";
import { type Caller, noteChange } from "./audit.js";
import { repositoryText } from "./naming.js";
import { done, type Outcome, refusal } from "./outcome.js";
import type { AdminParts } from "./parts.js";
import { asideKey, followInGit, forgetOldAsides, type PutAside, type Withdrawn, withdraw } from "./withdrawing.js";

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
): Promise<Withdrawn> {
  const now = unixSeconds(parts.clock);
  const { owner, identifier } = row;
  const stored = await tx.latest({ kind: kinds.announcement, pubkey: owner, identifier });
  const waiting = await waitingAnnouncement(tx, row);
  const going = { stored: stored ? [stored.event] : [], waiting: waiting ? [waiting] : [] };
  const withdrawn = await withdraw(parts, tx, going, cause);
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
