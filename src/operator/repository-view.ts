// `repos list` and `repos show`: what the catalogue says, what is on disk, and whether the two agree with what was
// signed. Reads only.

import { type DecisionRecord, decisionsAbout } from "../catalogue/decisions.js";
import { maintainersOf } from "../catalogue/maintainers.js";
import {
  type CatalogueRow,
  catalogueRow,
  catalogueRows,
  type RepositoryName,
  type RepositoryStatus,
  repositoryKey,
} from "../catalogue/repositories.js";
import { diskAddress } from "../git/address.js";
import type { EventId, Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import { npubOf } from "../nostr/nip19.js";
import { stateOf } from "../nostr/nip34.js";
import type { Reader } from "../store/port.js";
import { repositoryText } from "./naming.js";
import { done, type Outcome, refusal } from "./outcome.js";
import type { AdminParts } from "./parts.js";
import { type RefDifference, refDifferences } from "./refs-compare.js";

export interface RepositoryLine {
  readonly repository: string;
  readonly status: RepositoryStatus;
  readonly since: number;
  readonly mark: CatalogueRow["mark"];
  readonly governing: EventId | null;
  readonly partial: CatalogueRow["partial"];
  readonly isArchive: boolean;
  readonly pushes: number;
  /** Received by pushes and hunts; `repos show` looks at the disk. */
  readonly receivedBytes: number;
}

export interface RepositoryQuestion {
  readonly status?: RepositoryStatus;
  readonly owner?: Pubkey;
  readonly limit: number;
}

const lineOf = (row: CatalogueRow): RepositoryLine => ({
  repository: repositoryText(row),
  status: row.status,
  since: row.since,
  mark: row.mark,
  governing: row.governing,
  partial: row.partial,
  isArchive: row.archive !== null,
  pushes: row.counters.pushes,
  receivedBytes: row.counters.bytes,
});

export interface RepositoryLines {
  readonly repositories: readonly RepositoryLine[];
  /** More match than were asked for. */
  readonly more: boolean;
}

export async function listRepositories(
  { store }: AdminParts,
  { status, owner, limit }: RepositoryQuestion,
): Promise<RepositoryLines> {
  const found: RepositoryLine[] = [];
  for await (const row of catalogueRows(store, owner)) {
    if (status !== undefined && row.status !== status) continue;
    if (found.length === limit) return { repositories: found, more: true };
    found.push(lineOf(row));
  }
  return { repositories: found, more: false };
}

export interface RepositoryDetails extends RepositoryLine {
  readonly announcement: EventId | null;
  readonly maintainers: readonly string[];
  readonly waitingEvents: number;
  readonly disk: {
    readonly bytes: number;
    readonly refs: number;
    readonly head: string;
    readonly unclaimedPushes: number;
  } | null;
  /** What the counters are held against. */
  readonly quota: {
    readonly repositoryBytes: number;
    readonly ownerUsedBytes: number;
    readonly ownerBytes: number;
  };
  /** Where refs and the governing state disagree; null when there is nothing to compare. */
  readonly differences: readonly RefDifference[] | null;
  readonly latestDecisions: readonly DecisionRecord[];
}

const decisionsShown = 5;

export async function showRepository(parts: AdminParts, name: RepositoryName): Promise<Outcome<RepositoryDetails>> {
  const { store } = parts;
  await parts.running?.decisionsWritten();
  const row = await catalogueRow(store, name);
  if (!row) return refusal("unknown", `no repository ${repositoryText(name)} is known here`);
  const announcement = await store.latest({
    kind: kinds.announcement,
    pubkey: name.owner,
    identifier: name.identifier,
  });
  const repositories = await parts.repositories();
  const address = diskAddress(name);
  const repository = (await repositories.exists(address)) ? repositories.open(address) : undefined;
  const table = await repository?.refs();
  const state = row.governing === null ? undefined : await governingState(store, row.governing);
  return done({
    ...lineOf(row),
    announcement: announcement?.event.id ?? null,
    maintainers: [...(await maintainersOf(store, name))].map(npubOf),
    waitingEvents: await waitingAbout(store, name),
    disk:
      repository && table
        ? {
            bytes: await repository.sizeBytes(),
            refs: table.refs.size,
            head: table.head,
            unclaimedPushes: (await repository.unclaimed()).length,
          }
        : null,
    quota: {
      repositoryBytes: parts.config().repositoryMaxBytes,
      ownerUsedBytes: await receivedBytesOf(store, name.owner),
      ownerBytes: parts.config().npubMaxBytes,
    },
    differences: table && state ? refDifferences(table, state, row.partial) : null,
    latestDecisions: await decisionsAbout(store, name, decisionsShown),
  });
}

/** What pushes and hunts brought for all repositories of one key. */
async function receivedBytesOf(reader: Reader, owner: Pubkey): Promise<number> {
  let bytes = 0;
  for await (const row of catalogueRows(reader, owner)) bytes += row.counters.bytes;
  return bytes;
}

export async function governingState(reader: Reader, id: EventId): Promise<ReturnType<typeof stateOf>> {
  const stored = await reader.event(id);
  return stored && stateOf(stored.event);
}

export async function waitingAbout(reader: Reader, name: RepositoryName): Promise<number> {
  let count = 0;
  for await (const _ of reader.rows("purgatory", { prefix: `r:${repositoryKey(name)}:` })) count++;
  return count;
}
