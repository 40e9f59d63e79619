// Writing waiting entries: every derived row of the table is kept here, so that no caller can forget one.
// All calls of one transaction must be awaited one after the other: totals are read, changed and written back.

import { expirationOf } from "../nostr/event.js";
import type { EventId, Pubkey } from "../nostr/ids.js";
import type { Transaction } from "../store/port.js";
import { addressKey, repositoryNamed } from "./names.js";
import { targetsOf } from "./targets.js";
import {
  bytesHeldBy,
  contributorOf,
  type PlaceholderRow,
  type WaitingEntry,
  type WaitingHint,
  type WaitingTotals,
  waitingEntry,
  waitingEvent,
  waitingKeys,
  waitingTotals,
} from "./waiting.js";

const maxIndexedTargets = 100;

const addressOfEntry = (entry: WaitingEntry) => ({
  kind: entry.eventKind,
  pubkey: entry.pubkey,
  identifier: entry.identifier,
});

/** Keys of the rows that follow from an entry, except totals and holders. */
function derivedKeys(entry: WaitingEntry): { readonly hints: string[]; readonly marks: string[] } {
  const names = entry.repositories.flatMap((address) => repositoryNamed(address) ?? []);
  const contributor = contributorOf(entry);
  const targets = targetsOf(waitingEvent(entry), maxIndexedTargets);
  return {
    hints: [
      `${waitingKeys.address(addressOfEntry(entry))}${entry.id}`,
      ...names.map((name) => `${waitingKeys.repositoryKind(name, entry.kind)}${entry.id}`),
      ...(contributor ? [`${waitingKeys.contributor(contributor)}${entry.id}`] : []),
    ],
    marks: [
      ...targets.ids.map((id) => `${waitingKeys.tagsEvent(id)}${entry.id}`),
      ...targets.addresses.map((address) => `t:${addressKey(address)}:${entry.id}`),
      `${waitingKeys.due(entry.phase, entry.expires)}${entry.id}`,
    ],
  };
}

async function account(tx: Transaction, entry: WaitingEntry, sign: 1 | -1): Promise<void> {
  const totals = await waitingTotals(tx);
  const isAnnouncement = entry.kind === "announcement";
  const changed: WaitingTotals = {
    entries: totals.entries + sign,
    bytes: totals.bytes + sign * entry.bytes,
    waitingAnnouncements: totals.waitingAnnouncements + (isAnnouncement && entry.phase === "waiting" ? sign : 0),
    softAnnouncements: totals.softAnnouncements + (isAnnouncement && entry.phase === "soft" ? sign : 0),
  };
  tx.setRow("purgatory", waitingKeys.totals, changed);
  await accountHolder(tx, entry.pubkey, sign * entry.bytes);
}

async function accountHolder(tx: Transaction, pubkey: Pubkey, change: number): Promise<void> {
  const before = await bytesHeldBy(tx, pubkey);
  const after = before + change;
  if (before > 0) tx.deleteRow("purgatory", waitingKeys.holder(before, pubkey));
  if (after > 0) {
    tx.setRow("purgatory", waitingKeys.holder(after, pubkey), 1);
    tx.setRow("purgatory", waitingKeys.held(pubkey), after);
  } else {
    tx.deleteRow("purgatory", waitingKeys.held(pubkey));
  }
}

/** Writes an entry, or a changed version of it (phase, expiry, repositories). */
export async function putWaiting(tx: Transaction, given: WaitingEntry): Promise<void> {
  // Nobody waits longer than his own expiration (NIP-40) lets him be served.
  const expires = Math.min(given.expires, expirationOf(waitingEvent(given)) ?? given.expires);
  const entry = { ...given, expires };
  await removeWaiting(tx, entry.id);
  tx.setRow("purgatory", waitingKeys.entry(entry.id), entry);
  const hint: WaitingHint = {
    kind: entry.kind,
    phase: entry.phase,
    created_at: entry.created_at,
    bytes: entry.bytes,
  };
  const { hints, marks } = derivedKeys(entry);
  for (const key of hints) tx.setRow("purgatory", key, hint);
  for (const key of marks) tx.setRow("purgatory", key, 1);
  await account(tx, entry, 1);
}

/** Removes an entry and all that was derived from it; answers what it was. */
export async function removeWaiting(tx: Transaction, id: EventId): Promise<WaitingEntry | undefined> {
  const entry = await waitingEntry(tx, id);
  if (!entry) return undefined;
  tx.deleteRow("purgatory", waitingKeys.entry(id));
  const { hints, marks } = derivedKeys(entry);
  for (const key of [...hints, ...marks]) tx.deleteRow("purgatory", key);
  await account(tx, entry, -1);
  return entry;
}

export function putPlaceholder(tx: Transaction, row: PlaceholderRow): void {
  const name = repositoryNamed(row.repository);
  if (name) tx.setRow("purgatory", waitingKeys.placeholder(row.id, row.area, name), row);
}

export function removePlaceholder(tx: Transaction, row: PlaceholderRow): void {
  const name = repositoryNamed(row.repository);
  if (name) tx.deleteRow("purgatory", waitingKeys.placeholder(row.id, row.area, name));
}
