// Who the bytes on disk are booked to (git-http.md, "Budgets"): the owner for branches and tags, the contributor and the
// repository's share for pull requests, so that strangers cannot use up what is the owner's (threats.md row 19).
// Housekeeping counts anew what is on disk, so that an account shrinks. An owner's bytes are counters of the repository's
// row, and a contributor is the owner of what lies in a `/prs/` repository; what contributors have in repositories of others
// is in table "meta", `pull-request-bytes:<author>:<repository>`.

import type { Pubkey } from "../nostr/event.js";
import type { TableReader, Transaction } from "../store/port.js";
import {
  type CatalogueRow,
  catalogueRows,
  type RepositoryName,
  repositoryKey,
  setCatalogueRow,
} from "./repositories.js";

const contributorPrefix = "pull-request-bytes:";

const contributorKey = (author: Pubkey, name: RepositoryName): string =>
  `${contributorPrefix}${author}:${repositoryKey(name)}`;

/** Only where the repository is still here: with it the data went. */
export async function* contributions(
  reader: TableReader,
  author: Pubkey,
): AsyncIterable<{ readonly key: string; readonly bytes: number }> {
  const prefix = `${contributorPrefix}${author}:`;
  for await (const [key, bytes] of reader.rows<number>("meta", { prefix })) {
    if ((await reader.row("catalogue", key.slice(prefix.length))) !== undefined) yield { key, bytes };
  }
}

export function bookOwners(tx: Transaction, row: CatalogueRow, bytes: number): CatalogueRow {
  const changed = { ...row, counters: { ...row.counters, bytes: row.counters.bytes + bytes } };
  setCatalogueRow(tx, changed);
  return changed;
}

/** An owner's own pull requests are his own data. */
export async function bookContributors(
  tx: Transaction,
  row: CatalogueRow,
  author: Pubkey,
  bytes: number,
): Promise<CatalogueRow> {
  if (author === row.owner) return bookOwners(tx, row, bytes);
  const { counters } = row;
  const changed = { ...row, counters: { ...counters, pullRequestBytes: counters.pullRequestBytes + bytes } };
  setCatalogueRow(tx, changed);
  const key = contributorKey(author, row);
  tx.setRow("meta", key, ((await tx.row<number>("meta", key)) ?? 0) + bytes);
  return changed;
}

/**
 * After housekeeping: what is on disk, and what of it only pull requests reach (merged ones are the owner's by now).
 * Contributors' accounts shrink in the same proportion; who freed what is not known.
 */
export async function recount(
  tx: Transaction,
  row: CatalogueRow,
  disk: { readonly bytes: number; readonly pullRequestBytes: number },
): Promise<void> {
  const booked = row.counters.pullRequestBytes;
  const pullRequestBytes = Math.min(booked, disk.pullRequestBytes);
  const bytes = Math.max(0, disk.bytes - pullRequestBytes);
  setCatalogueRow(tx, { ...row, counters: { ...row.counters, bytes, pullRequestBytes } });
  if (pullRequestBytes === booked) return;
  for await (const [key, used] of tx.rows<number>("meta", { prefix: contributorPrefix })) {
    if (key.endsWith(`:${repositoryKey(row)}`)) tx.setRow("meta", key, Math.floor((used * pullRequestBytes) / booked));
  }
}

export interface ArchiveUse {
  readonly repositories: number;
  readonly bytes: number;
}

/** Everything that is on disk as a mirror, those that are leaving included: their data is kept for the grace period. */
export async function archiveUse(reader: TableReader): Promise<ArchiveUse> {
  let repositories = 0;
  let bytes = 0;
  for await (const { archive, status, counters } of catalogueRows(reader)) {
    if (!archive) continue;
    if (status === "archived") repositories++;
    bytes += counters.bytes + counters.pullRequestBytes;
  }
  return { repositories, bytes };
}
