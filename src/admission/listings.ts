// Who lists whom: an index over the announcements that are here (served or waiting), in table "catalogue".
//   lister:<identifier>:<lister>                            → ListerRow
//   listing:<identifier>:<listed>:<since, 12 digits>:<lister> → 1
// Maintainer sets are walked forward from an owner without it. It exists for the opposite question, "whose sets may
// this key be in", so that it is answered without looking at every stranger's announcement of the same identifier.
// Rows are hints: whoever uses one reads the lister's announcement again. Oldest listings come first, so that a later
// flood of strangers who list a key does not hide the repositories that listed it before.

import type { Pubkey } from "../nostr/ids.js";
import type { TableReader, Transaction } from "../store/port.js";
import { countingAnnouncements } from "./announcements.js";
import { listedMaintainers } from "./maintainers.js";
import { identifierKey, type RepositoryName } from "./names.js";

interface ListerRow {
  /** Listed key → second since which it is listed without a break. */
  readonly since: Readonly<Record<string, number>>;
}

const listerKey = (name: RepositoryName): string => `lister:${identifierKey(name.identifier)}:${name.owner}`;
const listingPrefix = (identifier: string, listed: Pubkey): string => `listing:${identifierKey(identifier)}:${listed}:`;
const listingKey = (name: RepositoryName, listed: Pubkey, since: number): string =>
  `${listingPrefix(name.identifier, listed)}${String(since).padStart(12, "0")}:${name.owner}`;

/** To be called in the same transaction after an announcement was stored, held, removed or deleted. */
export async function refreshListings(tx: Transaction, name: RepositoryName, nowSeconds: number): Promise<void> {
  const announcements = await countingAnnouncements(tx, name.owner, name.identifier);
  const before = (await tx.row<ListerRow>("catalogue", listerKey(name)))?.since ?? {};
  const after: Record<string, number> = {};
  for (const listed of announcements.flatMap(listedMaintainers)) after[listed] = before[listed] ?? nowSeconds;
  for (const [listed, since] of Object.entries(before)) {
    if (after[listed] === undefined) tx.deleteRow("catalogue", listingKey(name, listed as Pubkey, since));
  }
  for (const [listed, since] of Object.entries(after)) {
    if (before[listed] === undefined) tx.setRow("catalogue", listingKey(name, listed as Pubkey, since), 1);
  }
  if (announcements.length > 0) tx.setRow<ListerRow>("catalogue", listerKey(name), { since: after });
  else tx.deleteRow("catalogue", listerKey(name));
}

/** Keys whose announcements for the identifier list this key, longest first, at most `limit`. */
export async function listersOf(
  reader: TableReader,
  identifier: string,
  listed: Pubkey,
  limit: number,
): Promise<Pubkey[]> {
  const found: Pubkey[] = [];
  const range = { prefix: listingPrefix(identifier, listed), limit };
  for await (const [key] of reader.rows("catalogue", range)) found.push(key.slice(-64) as Pubkey);
  return found;
}

/** Owners of announcements for an identifier that are here, served or waiting, at most `limit`. */
export async function announcersOf(reader: TableReader, identifier: string, limit: number): Promise<Pubkey[]> {
  const found: Pubkey[] = [];
  const range = { prefix: `lister:${identifierKey(identifier)}:`, limit };
  for await (const [key] of reader.rows("catalogue", range)) found.push(key.slice(-64) as Pubkey);
  return found;
}
