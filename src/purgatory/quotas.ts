// How much more data a repository may take (git-http.md, "Budgets"): each limit against what is booked to that account
// (catalogue/repositories.ts).

import type { Clock } from "../base/clock.js";
import { sizeText } from "../base/text.js";
import {
  archiveUse,
  type CatalogueRow,
  catalogueRow,
  catalogueRows,
  contributedRows,
  contributions,
  type RepositoryName,
} from "../catalogue/repositories.js";
import { RowTally } from "../catalogue/row-tally.js";
import type { Pubkey } from "../nostr/event.js";
import type { Store, TableReader } from "../store/port.js";
import type { PurgatoryConfig } from "./context.js";

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

type Limits = Pick<
  PurgatoryConfig,
  "repositoryMaxBytes" | "npubMaxBytes" | "instanceMaxBytes" | "prRepositoryMaxBytes" | "prAuthorMaxBytes"
>;

/** A pack without objects, as git sends it for a tag on a commit that is here: it adds nothing. */
const emptyPackBytes = 32;
const remarkFromShare = 0.8;

const useText = ({ whose, used, limit }: Account): string => `${whose} ${sizeText(used)} of ${sizeText(limit)}`;

/** By the account that has least left. */
export function quotaLeft(accounts: readonly Account[]): QuotaLeft {
  const left = ({ used, limit }: Account): number => limit - used;
  const account = accounts.reduce((a, b) => (left(b) < left(a) ? b : a));
  return {
    maxBytes: Math.max(emptyPackBytes, left(account)),
    isUsedUp: left(account) <= 0,
    get reason() {
      return `${useText(account)}: ${account.advice}`;
    },
  };
}

/** What a pusher should know before the next push is refused. */
export const quotaRemarks = (accounts: readonly Account[]): string[] =>
  accounts
    .filter(({ used, limit }) => used >= limit * remarkFromShare)
    .map((account) => `note: ${useText(account)}; from there on pushes are refused`);

const freeSome = "delete what is not needed and wait for housekeeping, or ask the operator of this server";

/**
 * What a push or a hunt is booked to. `authors`: of the pull requests, as far as they are known, when nothing else comes;
 * undefined when branches or tags come, or what a state names.
 */
export async function accountsOf(
  store: Store,
  name: RepositoryName,
  authors: readonly Pubkey[] | undefined,
  limits: Limits,
  archiveBudget?: ArchiveBudget,
): Promise<readonly Account[]> {
  const whole = await instanceAccount(store, limits.instanceMaxBytes);
  if (name.area === "prs") return [await contributorAccount(store, name.owner, limits), ...whole];
  const others = [...new Set(authors)].filter((author) => author !== name.owner);
  const isOwners = authors === undefined || (authors.length > 0 && others.length === 0);
  const accounts = isOwners
    ? await ownersAccounts(store, name, limits, archiveBudget)
    : await contributorsAccounts(store, name, others, limits);
  return [...accounts, ...whole];
}

async function ownersAccounts(
  reader: TableReader,
  name: RepositoryName,
  limits: Limits,
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
    { whose: "this repository uses", used: own, limit: limits.repositoryMaxBytes, advice: freeSome },
    isArchive && archiveBudget
      ? { whose: "all mirrors of this server use", ...(await archiveBudget.use()), advice: askOperator }
      : { whose: "all repositories of its owner use", used: owned, limit: limits.npubMaxBytes, advice: freeSome },
  ];
}

const askOperator = "only the operator of this server can make room";

const bytesOf = ({ counters }: CatalogueRow): number => counters.bytes + counters.pullRequestBytes;
/** Made when there is a limit, and kept with the store. */
const instanceTallies = new WeakMap<Store, RowTally>();

/** Whoever pushes, and wherever to. None unless the operator has set a limit. */
async function instanceAccount(store: Store, limit: number | undefined): Promise<Account[]> {
  if (limit === undefined) return [];
  const tally = instanceTallies.get(store) ?? new RowTally(store, bytesOf);
  instanceTallies.set(store, tally);
  const used = await tally.total();
  return [{ whose: "all repositories of this server use", used, limit, advice: askOperator }];
}

async function contributorsAccounts(
  reader: TableReader,
  name: RepositoryName,
  authors: readonly Pubkey[],
  limits: Limits,
): Promise<readonly Account[]> {
  const row = await catalogueRow(reader, name);
  const used = row?.counters.pullRequestBytes ?? 0;
  const limit = limits.prRepositoryMaxBytes;
  return [
    { whose: "pull requests of this repository use", used, limit, advice: deleteSome },
    ...(await Promise.all(authors.map((author) => contributorAccount(reader, author, limits)))),
  ];
}

const deleteSome = "close or delete old ones, or push to a server of your own";

/** What one author has in other people's repositories and under `/prs/`, together. */
async function contributorAccount(reader: TableReader, author: Pubkey, limits: Limits): Promise<Account> {
  let used = 0;
  for await (const { bytes } of contributions(reader, author)) used += bytes;
  for await (const { counters } of contributedRows(reader, author)) used += counters.bytes;
  return { whose: "your pull requests use", used, limit: limits.prAuthorMaxBytes, advice: deleteSome };
}

const countAgainMs = 60_000;

/**
 * How much disk mirrors (GRASP-05) may still take: one budget for all of them. Their use is added up from the catalogue now
 * and then; in between, what arrives is counted here.
 */
export class ArchiveBudget {
  #usedBytes = 0;
  #countedMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly reader: TableReader,
    private readonly clock: Clock,
    private readonly maxBytes: () => number,
  ) {}

  async use(): Promise<{ readonly used: number; readonly limit: number }> {
    if (this.clock.monotonicMs() - this.#countedMs >= countAgainMs) {
      this.#countedMs = this.clock.monotonicMs();
      this.#usedBytes = (await archiveUse(this.reader)).bytes;
    }
    return { used: this.#usedBytes, limit: this.maxBytes() };
  }

  async leftBytes(): Promise<number> {
    const { used, limit } = await this.use();
    return Math.max(0, limit - used);
  }

  /** Another machine changed the catalogue. */
  countAgain(): void {
    this.#countedMs = Number.NEGATIVE_INFINITY;
  }

  took(bytes: number): void {
    this.#usedBytes += bytes;
  }
}
