// How much more data a repository may take, and who a push's bytes are booked to (git-http.md, "Budgets"): the owner's
// for branches and tags, the contributor's own and the repository's share for pull requests, so that strangers cannot
// use up what is the owner's (threats.md row 19). Housekeeping counts anew what is on disk, so that an account shrinks.
// Table "meta", `pull-request-bytes:<author>:<repository>`: what a contributor has there.

import { sizeText } from "../base/text.js";
import {
  type CatalogueRow,
  catalogueRow,
  catalogueRows,
  type RepositoryName,
  repositoryKey,
  setCatalogueRow,
} from "../catalogue/repositories.js";
import type { Pubkey } from "../nostr/ids.js";
import type { TableReader, Transaction } from "../store/port.js";
import type { ArchiveBudget } from "./archive-budget.js";
import { contributionsUnderPrs } from "./contribution-quotas.js";
import type { PurgatorySettings } from "./settings.js";

export interface QuotaLeft {
  /** Never less than a pack without objects has. */
  readonly maxBytes: number;
  readonly isUsedUp: boolean;
  /** For the pusher: limit, use, and what to do. */
  readonly reason: string;
}

/** One account a push is booked to. */
export interface Account {
  readonly whose: string;
  readonly used: number;
  readonly limit: number;
  readonly advice: string;
}

type Limits = Pick<PurgatorySettings, "quotas">;

/** A pack without objects, as git sends it for a tag on a commit that is here: it adds nothing. */
const emptyPackBytes = 32;
const remarkFromShare = 0.8;
const contributorPrefix = "pull-request-bytes:";
const contributorKey = (author: Pubkey, name: RepositoryName): string =>
  `${contributorPrefix}${author}:${repositoryKey(name)}`;

const useText = ({ whose, used, limit }: Account): string => `${whose} ${sizeText(used)} of ${sizeText(limit)}`;

/** By the account that has least left. */
export function quotaLeft(accounts: readonly Account[]): QuotaLeft {
  const left = ({ used, limit }: Account): number => limit - used;
  const account = accounts.reduce((a, b) => (left(b) < left(a) ? b : a));
  return {
    maxBytes: Math.max(emptyPackBytes, left(account)),
    isUsedUp: left(account) <= 0,
    reason: `${useText(account)}: ${account.advice}`,
  };
}

/** What a pusher should know before the next push is refused. */
export const quotaRemarks = (accounts: readonly Account[]): string[] =>
  accounts
    .filter(({ used, limit }) => used >= limit * remarkFromShare)
    .map((account) => `note: ${useText(account)}; from there on pushes are refused`);

const freeSome = "delete what is not needed and wait for housekeeping, or ask the operator of this server";

export async function ownersAccounts(
  reader: TableReader,
  name: RepositoryName,
  { quotas }: Limits,
  archiveBudget?: ArchiveBudget,
): Promise<readonly Account[]> {
  let owned = 0;
  let own = 0;
  let isArchive = false;
  for await (const row of catalogueRows(reader, name.owner)) {
    // Nobody pays for a mirror that the operator wanted.
    if (row.archive === null) owned += row.counters.bytes;
    if (row.identifier !== name.identifier) continue;
    own = row.counters.bytes;
    isArchive = row.archive !== null;
  }
  return [
    { whose: "this repository uses", used: own, limit: quotas.repositoryBytes, advice: freeSome },
    isArchive && archiveBudget
      ? { whose: "all mirrors of this server use", ...(await archiveBudget.use()), advice: askOperator }
      : { whose: "all repositories of its owner use", used: owned, limit: quotas.ownerBytes, advice: freeSome },
    ...(await instanceAccount(reader, quotas.instanceBytes)),
  ];
}

const askOperator = "only the operator of this server can make room";

/** Whoever pushes, and wherever to. None unless the operator has set a limit. */
async function instanceAccount(reader: TableReader, limit: number | undefined): Promise<Account[]> {
  if (limit === undefined) return [];
  let used = 0;
  for await (const { counters } of catalogueRows(reader)) used += counters.bytes + counters.pullRequestBytes;
  for (const { bytes } of await contributionsUnderPrs(reader)) used += bytes;
  return [{ whose: "all repositories of this server use", used, limit, advice: askOperator }];
}

/** `authors`: of the pull requests that are pushed, as far as they are known. */
export async function contributorsAccounts(
  reader: TableReader,
  name: RepositoryName,
  authors: readonly Pubkey[],
  { quotas }: Limits,
): Promise<readonly Account[]> {
  const row = await catalogueRow(reader, name);
  const used = row?.counters.pullRequestBytes ?? 0;
  const limit = quotas.pullRequestRepositoryBytes;
  return [
    { whose: "pull requests of this repository use", used, limit, advice: deleteSome },
    ...(await Promise.all(authors.map((author) => contributorAccount(reader, author, { quotas })))),
    ...(await instanceAccount(reader, quotas.instanceBytes)),
  ];
}

/** Of a push or hunt under `/prs/`. */
export const contributorsOwnAccounts = async (
  reader: TableReader,
  author: Pubkey,
  { quotas }: Limits,
): Promise<readonly Account[]> => [
  await contributorAccount(reader, author, { quotas }),
  ...(await instanceAccount(reader, quotas.instanceBytes)),
];

/** What a hunt may bring: the accounts are those of a push. `author`: of the pull request it is for. */
export async function huntLeft(
  reader: TableReader,
  name: RepositoryName,
  author: Pubkey | undefined,
  limits: Limits,
  archiveBudget: ArchiveBudget,
): Promise<number> {
  const isOwners = author === undefined || author === name.owner;
  const accounts = isOwners
    ? await ownersAccounts(reader, name, limits, archiveBudget)
    : await contributorsAccounts(reader, name, [author], limits);
  const left = quotaLeft(accounts);
  return left.isUsedUp ? 0 : left.maxBytes;
}

const deleteSome = "close or delete old ones, or push to a server of your own";

/** What one author has in other people's repositories and under `/prs/`, together. */
async function contributorAccount(reader: TableReader, author: Pubkey, { quotas }: Limits): Promise<Account> {
  let used = 0;
  for await (const { bytes } of contributions(reader, author)) used += bytes;
  for (const { bytes } of await contributionsUnderPrs(reader, author)) used += bytes;
  return { whose: "your pull requests use", used, limit: quotas.pullRequestAuthorBytes, advice: deleteSome };
}

/** Only where the repository is still here: with it the data went. */
async function* contributions(
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
