// Repositories: how keys of the store's tables name them, and table "catalogue", one row per repository, the only thing
// that says whether a repository is served (git-http.md, "Repositories on disk"), and to whom its bytes are booked.
// Announced repositories come first, in the order of their keys, those under `/prs/` last; between them the table holds the
// listings index under `lister:` and `listing:` (maintainers.ts).

import { createHash } from "node:crypto";
import {
  type Address,
  addressText,
  type EventId,
  isPubkey,
  kinds,
  type NostrEvent,
  type Pubkey,
  parseAddress,
  tagValues,
} from "../nostr/event.js";
import type { ObjectFormat } from "../nostr/nip34.js";
import type { TableReader, Transaction } from "../store/port.js";

/** `main`: announced, at `/<npub>/<identifier>.git`. `prs`: what contributors push, at `/prs/<npub>/<identifier>.git` (GRASP-06). */
export type RepositoryArea = "main" | "prs";

/** A repository: one owner, one identifier and, unless it is an announced one, its area. The same name under `/prs/` is another repository. */
export interface RepositoryName {
  readonly owner: Pubkey;
  readonly identifier: string;
  readonly area?: RepositoryArea;
}

export const underPrs = ({ owner, identifier }: RepositoryName): RepositoryName => ({ owner, identifier, area: "prs" });

// Identifiers are any text (NIP-34), keys are at most 1,000 bytes and use `:` to separate: two identifiers must never
// share a key, and the key of one must never be the prefix of another's (threats.md row 3).
const maxPlainKeyBytes = 256;

/**
 * An identifier inside a key: percent-encoded (usual names stay as they are), hashed when that gets long.
 * `%sha256` is never the result of percent-encoding, so the two cannot meet.
 */
export function identifierKey(identifier: string): string {
  if (identifier.length <= maxPlainKeyBytes) {
    const encoded = encodeURIComponent(identifier);
    if (encoded.length <= maxPlainKeyBytes) return encoded;
  }
  return `%sha256${createHash("sha256").update(identifier).digest("hex")}`;
}

const prsPrefix = "prs:";

/** `<owner hex>:<identifier>`, under `/prs/` behind `prs:`: equal for the same repository, in memory and in tables. */
export const repositoryKey = ({ owner, identifier, area }: RepositoryName): string =>
  `${area === "prs" ? prsPrefix : ""}${owner}:${identifierKey(identifier)}`;

/** Undefined: the key has only the hash of its identifier. */
export function repositoryOfKey(key: string): RepositoryName | undefined {
  const isUnderPrs = key.startsWith(prsPrefix);
  const [owner = "", identifier = ""] = key.slice(isUnderPrs ? prsPrefix.length : 0).split(":");
  if (!isPubkey(owner) || identifier.startsWith("%sha256")) return undefined;
  const name = { owner, identifier: decodeURIComponent(identifier) };
  return isUnderPrs ? underPrs(name) : name;
}

/** `30617:<owner hex>:<identifier>`, as events write it; under `/prs/`, which no event announces, `prs:<owner hex>:<identifier>`. */
export const repositoryAddress = ({ owner, identifier, area }: RepositoryName): string =>
  area === "prs"
    ? `${prsPrefix}${owner}:${identifier}`
    : addressText({ kind: kinds.announcement, pubkey: owner, identifier });

export function repositoryNamed(address: string): RepositoryName | undefined {
  const isUnderPrs = address.startsWith(prsPrefix);
  const parsed = parseAddress(isUnderPrs ? `${kinds.announcement}:${address.slice(prsPrefix.length)}` : address);
  if (parsed?.kind !== kinds.announcement) return undefined;
  const name = { owner: parsed.pubkey, identifier: parsed.identifier };
  return isUnderPrs ? underPrs(name) : name;
}

/** An address of any kind inside a key. */
export const addressKey = (address: Address): string =>
  `${address.kind}:${address.pubkey}:${identifierKey(address.identifier)}`;

/**
 * waiting: announced, no data yet, on disk, may be pushed to. soft: waited too long, not on disk, URL is 404.
 * served: released, or under `/prs/`. archived: released, held as a mirror. leaving: its newest announcement dropped us, read-only.
 * deleted: deleted or vanished, 404, data kept for the grace period.
 */
export type RepositoryStatus = "waiting" | "soft" | "served" | "archived" | "leaving" | "deleted";

export interface StateStamp {
  readonly created_at: number;
  readonly id: EventId;
}

interface PartialState {
  readonly state: EventId;
  /** Refs the governing state names whose objects are not here. */
  readonly missingRefs: readonly string[];
  readonly since: number;
}

export interface CatalogueRow {
  /** As `repositoryAddress` writes it. */
  readonly address: string;
  readonly owner: Pubkey;
  readonly identifier: string;
  readonly area?: RepositoryArea;
  readonly status: RepositoryStatus;
  /** Absent: SHA-1. May change as long as no state was used here (`fixedFormat`). */
  readonly format?: ObjectFormat;
  /** Second at which the status began. */
  readonly since: number;
  /** Newest state that ever governed or under which a push was accepted; it only rises. */
  readonly mark: StateStamp | null;
  readonly governing: EventId | null;
  readonly partial: PartialState | null;
  /** Held as a mirror (GRASP-05): only these clone URLs are hunted. Becomes `archived`, not `served`, at release. */
  readonly archive: { readonly cloneUrls: readonly string[] } | null;
  /** Deleted: second of its announcement by the public compliance tool, whose data has no grace period. */
  readonly checkedAt?: number | null;
  readonly counters: {
    readonly pushes: number;
    readonly bytes: number;
    readonly pullRequestBytes: number;
  };
}

export function newRepositoryRow(
  name: RepositoryName,
  nowSeconds: number,
  archive: CatalogueRow["archive"] = null,
): CatalogueRow {
  return {
    address: repositoryAddress(name),
    owner: name.owner,
    identifier: name.identifier,
    ...(name.area === "prs" ? { area: name.area, status: "served" } : { status: "waiting" }),
    since: nowSeconds,
    mark: null,
    governing: null,
    partial: null,
    archive,
    counters: { pushes: 0, bytes: 0, pullRequestBytes: 0 },
  };
}

/** The format its data has for good; undefined while no state was ever released or pushed under. */
export const fixedFormat = (row: CatalogueRow): ObjectFormat | undefined =>
  row.mark === null && row.governing === null ? undefined : (row.format ?? "sha1");

export const withStatus = (row: CatalogueRow, status: RepositoryStatus, nowSeconds: number): CatalogueRow =>
  row.status === status ? row : { ...row, status, since: nowSeconds };

export const complianceTag = "grasp-audit-test-event";

/** Events of the public compliance tool, and their repositories, are kept for 2 h (purgatory.md, "Waiting room"). */
export const isOfComplianceTool = (event: NostrEvent): boolean => tagValues(event, "t").includes(complianceTag);

export const deletedRow = (row: CatalogueRow, announcement: NostrEvent, nowSeconds: number): CatalogueRow => ({
  ...withStatus(row, "deleted", nowSeconds),
  checkedAt: isOfComplianceTool(announcement) ? announcement.created_at : null,
});

/** Has data and is served here in full: what a maintainer exception may lean on. */
export const isReleased = (row: CatalogueRow | undefined): boolean =>
  row?.status === "served" || row?.status === "archived";

/** Its announcement decides who may write states. A leaving repository is read-only: no new state is for it. */
export const takesStates = (row: CatalogueRow | undefined): boolean =>
  isReleased(row) || row?.status === "waiting" || row?.status === "soft";

export const catalogueRow = (reader: TableReader, name: RepositoryName): Promise<CatalogueRow | undefined> =>
  reader.row<CatalogueRow>("catalogue", repositoryKey(name));

export const setCatalogueRow = (tx: Transaction, row: CatalogueRow): void =>
  tx.setRow("catalogue", repositoryKey(row), row);

/** Its row, or the one that a repository under `/prs/`, which nothing announces, gets with its first data. */
export const rowForData = async (
  reader: TableReader,
  name: RepositoryName,
  nowSeconds: number,
): Promise<CatalogueRow | undefined> =>
  (await catalogueRow(reader, name)) ?? (name.area === "prs" ? newRepositoryRow(name, nowSeconds) : undefined);

export const deleteCatalogueRow = (tx: Transaction, name: RepositoryName): void =>
  tx.deleteRow("catalogue", repositoryKey(name));

/** After the keys of announced repositories, which begin with a hex digit, and before all others. */
const firstKeyAfterAnnounced = "g";

/** Between so many rows others get their turn: a hundred thousand in one go hold up everybody for half a second. */
const rowsAtOnce = 200;

async function* rowsIn(
  reader: TableReader,
  prefix: string,
  after: string | undefined,
  isEnd: (key: string) => boolean,
): AsyncIterable<CatalogueRow> {
  let last = after;
  for (;;) {
    const range = { prefix, limit: rowsAtOnce, ...(last === undefined ? {} : { after: last }) };
    // Read before they are handed out: whoever walks through them may change the table.
    const page: (readonly [string, CatalogueRow])[] = [];
    for await (const row of reader.rows<CatalogueRow>("catalogue", range)) page.push(row);
    for (const [key, row] of page) {
      if (isEnd(key)) return;
      last = key;
      yield row;
    }
    if (page.length < rowsAtOnce) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

// All in key order; with `after` only those behind that key. Not inside a transaction.

/** Announced repositories, or those of one owner. */
export const catalogueRows = (reader: TableReader, owner?: Pubkey, after?: string): AsyncIterable<CatalogueRow> =>
  rowsIn(reader, owner === undefined ? "" : `${owner}:`, after, (key) => key >= firstKeyAfterAnnounced);

/** Repositories under `/prs/`, or those of one contributor. */
export const contributedRows = (reader: TableReader, owner?: Pubkey, after?: string): AsyncIterable<CatalogueRow> =>
  rowsIn(reader, owner === undefined ? prsPrefix : `${prsPrefix}${owner}:`, after, () => false);

/** Announced repositories, then those under `/prs/`. */
export async function* everyRow(reader: TableReader, after?: string): AsyncIterable<CatalogueRow> {
  const isBehindAnnounced = after?.startsWith(prsPrefix) ?? false;
  if (!isBehindAnnounced) yield* catalogueRows(reader, undefined, after);
  yield* contributedRows(reader, undefined, isBehindAnnounced ? after : undefined);
}

// Who the bytes on disk are booked to (git-http.md, "Budgets"): the owner for branches and tags, the contributor and the
// repository's share for pull requests, so that strangers cannot use up what is the owner's (threats.md row 19).
// Housekeeping counts anew what is on disk, so that an account shrinks. An owner's bytes are counters of the repository's
// row, and a contributor is the owner of what lies in a `/prs/` repository; what contributors have in repositories of others
// is in table "meta", `pull-request-bytes:<author>:<repository>`; `pull-request-authors:<repository> <author>` beside it says
// whose accounts are concerned when a repository shrinks.

const contributorPrefix = "pull-request-bytes:";
const authorsMark = (name: RepositoryName): string => `pull-request-authors:${repositoryKey(name)}`;
const authorKey = (name: RepositoryName, author: string): string => `${authorsMark(name)} ${author}`;

/** Contributors from before there was such a list are looked for once. */
async function listContributors(tx: Transaction, row: CatalogueRow): Promise<void> {
  if ((await tx.row("meta", authorsMark(row))) !== undefined) return;
  tx.setRow("meta", authorsMark(row), 1);
  if (row.counters.pullRequestBytes === 0) return;
  const end = `:${repositoryKey(row)}`;
  const found: string[] = [];
  for await (const [key] of tx.rows("meta", { prefix: contributorPrefix })) {
    if (key.endsWith(end)) found.push(key.slice(contributorPrefix.length, -end.length));
  }
  // The same name under `/prs/` is another repository.
  for (const author of found.filter(isPubkey)) tx.setRow("meta", authorKey(row, author), 1);
}

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
  await listContributors(tx, row);
  tx.setRow("meta", authorKey(row, author), 1);
  const key = contributorKey(author, row);
  tx.setRow("meta", key, ((await tx.row<number>("meta", key)) ?? 0) + bytes);
  return changed;
}

/** Copies are the receiving repository's share for pull requests: their author's they were when they came. */
export async function bookCopies(tx: Transaction, name: RepositoryName, bytes: number): Promise<void> {
  const row = await catalogueRow(tx, name);
  if (!row || bytes === 0) return;
  const counters = { ...row.counters, pullRequestBytes: row.counters.pullRequestBytes + bytes };
  setCatalogueRow(tx, { ...row, counters });
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
  await listContributors(tx, row);
  const prefix = authorKey(row, "");
  const authors: Pubkey[] = [];
  for await (const [key] of tx.rows("meta", { prefix })) authors.push(key.slice(prefix.length) as Pubkey);
  for (const author of authors) {
    const key = contributorKey(author, row);
    const used = (await tx.row<number>("meta", key)) ?? 0;
    tx.setRow("meta", key, Math.floor((used * pullRequestBytes) / booked));
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
