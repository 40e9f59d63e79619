// Who the bytes on disk are booked to (git-http.md, "Budgets"): the owner for branches and tags, the contributor and the
// repository's share for pull requests, so that strangers cannot use up what is the owner's (threats.md row 19).
// Housekeeping counts anew what is on disk, so that an account shrinks. An owner's bytes are counters of the repository's
// row; what contributors have is in table "meta":
//   pull-request-bytes:<author>:<repository> → bytes in that repository
//   prs-bytes:<owner>:<identifier>           → bytes under `/prs/`, until that repository goes

import type { Pubkey } from "../nostr/ids.js";
import type { TableReader, Transaction } from "../store/port.js";
import {
  type CatalogueRow,
  catalogueRows,
  type RepositoryName,
  repositoryKey,
  setCatalogueRow,
} from "./repositories.js";

interface Contribution extends RepositoryName {
  readonly bytes: number;
}

const prefix = "prs-bytes:";
const keyOf = ({ owner, identifier }: RepositoryName): string => `${prefix}${repositoryKey({ owner, identifier })}`;

export async function bookContribution(tx: Transaction, name: RepositoryName, bytes: number): Promise<void> {
  const { owner, identifier } = name;
  const before = (await tx.row<Contribution>("meta", keyOf(name)))?.bytes ?? 0;
  tx.setRow<Contribution>("meta", keyOf(name), { owner, identifier, bytes: before + bytes });
}

export const forgetContribution = (tx: Transaction, name: RepositoryName): void => tx.deleteRow("meta", keyOf(name));

/** All of them, or one author's. */
export async function contributionsUnderPrs(reader: TableReader, author?: Pubkey): Promise<Contribution[]> {
  const range = { prefix: author === undefined ? prefix : `${prefix}${author}:` };
  const found: Contribution[] = [];
  for await (const [, row] of reader.rows<Contribution>("meta", range)) found.push(row);
  return found;
}

/** The first one behind this repository, in the order of their keys. */
export async function contributionAfter(
  reader: TableReader,
  repositoryKey: string | undefined,
): Promise<Contribution | undefined> {
  const after = repositoryKey === undefined ? {} : { after: `${prefix}${repositoryKey}` };
  for await (const [, row] of reader.rows<Contribution>("meta", { prefix, limit: 1, ...after })) return row;
  return undefined;
}

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
