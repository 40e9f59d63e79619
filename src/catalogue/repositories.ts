// Repositories: how keys of the store's tables name them, and table "catalogue", one row per repository, the only thing
// that says whether a repository is served (git-http.md, "Repositories on disk").
// Beside these rows the table holds the listings index under `lister:` and `listing:` (trusting-repositories.ts); these
// prefixes sort after every hex digit, so `catalogueRows` stops there.

import { createHash } from "node:crypto";
import { type Address, addressText, kinds, type NostrEvent, parseAddress, tagValues } from "../nostr/event.js";
import type { EventId, Pubkey } from "../nostr/ids.js";
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

/** `<owner hex>:<identifier>`, under `/prs/` behind `prs:`: equal for the same repository, in memory and in tables. */
export const repositoryKey = ({ owner, identifier, area }: RepositoryName): string =>
  `${area === "prs" ? "prs:" : ""}${owner}:${identifierKey(identifier)}`;

/** `30617:<owner hex>:<identifier>`, as events write it; under `/prs/`, which no event announces, `prs:<owner hex>:<identifier>`. */
export const repositoryAddress = ({ owner, identifier, area }: RepositoryName): string =>
  area === "prs" ? `prs:${owner}:${identifier}` : addressText({ kind: kinds.announcement, pubkey: owner, identifier });

export function repositoryNamed(address: string): RepositoryName | undefined {
  const parsed = parseAddress(address);
  return parsed?.kind === kinds.announcement ? { owner: parsed.pubkey, identifier: parsed.identifier } : undefined;
}

/** An address of any kind inside a key. */
export const addressKey = (address: Address): string =>
  `${address.kind}:${address.pubkey}:${identifierKey(address.identifier)}`;

/**
 * waiting: announced, no data yet, on disk, may be pushed to. soft: waited too long, not on disk, URL is 404.
 * served: released. archived: released, held as a mirror. leaving: its newest announcement dropped us, read-only.
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
  /** `30617:<owner>:<identifier>` */
  readonly address: string;
  readonly owner: Pubkey;
  readonly identifier: string;
  readonly status: RepositoryStatus;
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
    status: "waiting",
    since: nowSeconds,
    mark: null,
    governing: null,
    partial: null,
    archive,
    counters: { pushes: 0, bytes: 0, pullRequestBytes: 0 },
  };
}

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

const firstKeyAfterRepositories = "g";

/** Between so many rows others get their turn: a hundred thousand in one go hold up everybody for half a second. */
const rowsAtOnce = 200;

/** All repositories, or those of one owner, in key order; with `after` only those behind that key. Not inside a transaction. */
export async function* catalogueRows(reader: TableReader, owner?: Pubkey, after?: string): AsyncIterable<CatalogueRow> {
  const prefix = owner === undefined ? {} : { prefix: `${owner}:` };
  let last = after;
  for (;;) {
    let count = 0;
    const range = { ...prefix, limit: rowsAtOnce, ...(last === undefined ? {} : { after: last }) };
    for await (const [key, row] of reader.rows<CatalogueRow>("catalogue", range)) {
      if (key >= firstKeyAfterRepositories) return;
      last = key;
      count += 1;
      yield row;
    }
    if (count < rowsAtOnce) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
