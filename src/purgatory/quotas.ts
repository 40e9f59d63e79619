// How much more data a repository may take, and who a push's bytes are booked to (git-http.md, "Budgets"): the owner's
// for branches and tags, the contributor's own and the repository's share for pull requests, so that strangers cannot
// use up what is the owner's (threats.md row 19).

import { type CatalogueRow, catalogueRow, catalogueRows, setCatalogueRow } from "../admission/catalogue.js";
import type { RepositoryName } from "../admission/names.js";
import type { Pubkey } from "../nostr/ids.js";
import type { TableReader, Transaction } from "../store/port.js";
import type { PurgatorySettings } from "./settings.js";

export interface QuotaLeft {
  readonly maxBytes: number;
  readonly reason: string;
}

const contributorKey = (author: Pubkey): string => `pull-request-bytes:${author}`;

export async function ownersQuotaLeft(
  reader: TableReader,
  name: RepositoryName,
  { quotas }: PurgatorySettings,
): Promise<QuotaLeft> {
  let owned = 0;
  let own = 0;
  for await (const row of catalogueRows(reader, name.owner)) {
    owned += row.counters.bytes;
    if (row.identifier === name.identifier) own = row.counters.bytes;
  }
  const left = Math.min(quotas.repositoryBytes - own, quotas.ownerBytes - owned);
  return { maxBytes: Math.max(0, left), reason: "the quota of this repository or its owner is used up" };
}

/** `authors`: of the pull requests that are pushed, as far as they are known. */
export async function contributorsQuotaLeft(
  reader: TableReader,
  name: RepositoryName,
  authors: readonly Pubkey[],
  { quotas }: PurgatorySettings,
): Promise<QuotaLeft> {
  const row = await catalogueRow(reader, name);
  let left = quotas.pullRequestRepositoryBytes - (row?.counters.pullRequestBytes ?? 0);
  for (const author of authors) {
    const used = (await reader.row<number>("meta", contributorKey(author))) ?? 0;
    left = Math.min(left, quotas.pullRequestAuthorBytes - used);
  }
  return { maxBytes: Math.max(0, left), reason: "the quota for pull requests of this author or repository is used up" };
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
  const used = (await tx.row<number>("meta", contributorKey(author))) ?? 0;
  tx.setRow("meta", contributorKey(author), used + bytes);
  return changed;
}
