// What a repository's page says, read from the store and from git. Public facts only: what waits (announcements,
// states, people only a waiting announcement lists) is never read here (purgatory.md "Visible"; threats row 31).

import { othersFirst, sortedInTurns } from "../base/others-first.js";
import { type LargeFileTotals, largeFileTotals } from "../catalogue/large-files.js";
import type { Standing as MaintainerStanding } from "../catalogue/maintainer-set.js";
import {
  type CatalogueRow,
  catalogueRow,
  catalogueRows,
  type RepositoryName,
  repositoryAddress,
} from "../catalogue/repositories.js";
import { diskAddress } from "../git/address.js";
import type { RefTable } from "../git/ref-tables.js";
import type { Repositories } from "../git/repositories.js";
import type { GitRepository } from "../git/repository.js";
import { type EventId, kinds, type Pubkey } from "../nostr/event.js";
import {
  type Announcement,
  announcementOf,
  type ObjectFormat,
  type RepositoryState,
  type StateRef,
} from "../nostr/nip34.js";
import { governingState } from "../operator/repositories.js";
import type { Reader } from "../store/port.js";
import { type CiResults, ciResultsOf } from "./ci-results.js";
import { type Person, peopleOf } from "./people.js";
import type { StatusSources } from "./status-page.js";
import type { RepositoryThreads, ThreadIndex } from "./talk/thread-index.js";

export interface Maintainer extends Person {
  readonly standing: MaintainerStanding;
  /** Has a repository of this name on this server as well. */
  readonly isHostedHere: boolean;
}

/** A repository that may be shown: what all of its pages need. */
export interface FoundRepository {
  readonly name: RepositoryName;
  readonly row: CatalogueRow;
  readonly status: CatalogueRow["status"];
  readonly announcement: Announcement;
  readonly repository: GitRepository;
  /** Its refs at this moment. */
  readonly table: RefTable;
  /** What its pages say of its issues and pull requests, and who decides. */
  readonly talk?: {
    readonly openIssues: number;
    readonly openProposals: number;
    readonly maintainers: readonly Pubkey[];
  };
}

export interface RepositoryFacts extends FoundRepository {
  readonly format: ObjectFormat;
  /** No push is taken for it. */
  readonly isReadOnly: boolean;
  readonly maintainers: readonly Maintainer[];
  /** Named by maintainers, and none: invited, left, moderators. */
  readonly others: readonly Maintainer[];
  readonly people: ReadonlyMap<Pubkey, Person>;
  readonly state: RepositoryState | undefined;
  readonly comparison: Comparison;
  readonly partialSince: number | undefined;
  readonly storage: {
    /** Received by pushes and hunts, as budgets count it. */
    readonly usedBytes: number;
    readonly repositoryBytes: number;
    readonly ownerUsedBytes: number;
    readonly ownerBytes: number;
  };
  readonly largeFiles: LargeFileTotals;
  /** Of the newest commit. */
  readonly ci: CiResults;
}

export interface RepositorySources {
  readonly store: Reader;
  readonly repositories: Repositories;
  readonly threads: ThreadIndex;
  /** NGIT_ARCHIVE_READ_ONLY. */
  readonly archiveReadOnly: () => boolean;
  readonly quotas: () => { readonly repositoryBytes: number; readonly ownerBytes: number };
  readonly peersOf: StatusSources["peersOf"];
  readonly outboxOf: StatusSources["outboxOf"];
}

/** The catalogue decides what exists; a released repository whose announcement is gone is not shown either. */
export async function releasedRow(store: Reader, name: RepositoryName): Promise<CatalogueRow | "waiting" | undefined> {
  const row = await catalogueRow(store, name);
  if (!row || row.status === "soft" || row.status === "deleted") return undefined;
  return row.status === "waiting" ? "waiting" : row;
}

export async function findRepository(
  { store, repositories }: Pick<RepositorySources, "store" | "repositories">,
  name: RepositoryName,
): Promise<FoundRepository | "waiting" | "unknown"> {
  const row = await releasedRow(store, name);
  if (row === "waiting") return "waiting";
  const stored =
    row && (await store.latest({ kind: kinds.announcement, pubkey: name.owner, identifier: name.identifier }));
  const announcement = stored && announcementOf(stored.event);
  if (!row || !announcement) return "unknown";
  const repository = repositories.open(diskAddress(name));
  return { name, row, status: row.status, announcement, repository, table: await repository.refs() };
}

/** What its first page says beside its files. */
export async function factsOf(
  sources: RepositorySources,
  found: FoundRepository,
  { set: { members, standings } }: RepositoryThreads,
  signal: AbortSignal,
): Promise<RepositoryFacts> {
  const { store } = sources;
  const { name, row, table } = found;
  const state = await governingState(store, row);
  const tip = table.refs.get(table.head)?.oid;
  const outside = [...standings.keys()].filter((key) => !members.has(key)).slice(0, shownOthers);
  const ci = await ciResultsOf(
    store,
    {
      repositories: [repositoryAddress(name)],
      commits: tip ? [tip] : [],
      pullRequests: [],
      maintainers: members,
    },
    signal,
  );
  const people = await peopleOf(store, [...members, ...(state ? [state.author] : []), ...outside]);
  const maintainerOf = async (pubkey: Pubkey): Promise<Maintainer[]> => {
    const [person, standing] = [people.get(pubkey), standings.get(pubkey)];
    const sibling =
      pubkey === name.owner ? undefined : await releasedRow(store, { owner: pubkey, identifier: name.identifier });
    return person && standing
      ? [{ ...person, standing, isHostedHere: sibling !== undefined && sibling !== "waiting" }]
      : [];
  };
  const maintainers: Maintainer[] = [];
  for (const pubkey of members) maintainers.push(...(await maintainerOf(pubkey)));
  const others: Maintainer[] = [];
  for (const pubkey of outside) others.push(...(await maintainerOf(pubkey)));
  return {
    ...found,
    format: row.format ?? "sha1",
    isReadOnly: row.status === "leaving" || (row.status === "archived" && sources.archiveReadOnly()),
    maintainers,
    others,
    people,
    state,
    comparison: await comparisonOf(table, state),
    partialSince: row.partial?.since,
    largeFiles: await largeFileTotals(store, name),
    storage: {
      usedBytes: row.counters.bytes,
      ownerUsedBytes: await servedBytesOf(store, name.owner),
      ...sources.quotas(),
    },
    ci,
  };
}

/** Of released repositories alone: how much a waiting one was sent is not for strangers. */
async function servedBytesOf(store: Reader, owner: Pubkey): Promise<number> {
  let bytes = 0;
  for await (const { status, counters } of catalogueRows(store, owner)) {
    if (status === "served" || status === "archived" || status === "leaving") bytes += counters.bytes;
  }
  return bytes;
}

/** A table never changes in place: a repository with a hundred thousand refs is compared once, not for each reader. */
const comparisons = new WeakMap<
  RefTable,
  { readonly state: EventId | undefined; readonly comparison: Promise<Comparison> }
>();

export function comparisonOf(table: RefTable, state: RepositoryState | undefined): Promise<Comparison> {
  const kept = comparisons.get(table);
  if (kept && kept.state === state?.event.id) return kept.comparison;
  const comparison = compareRefs(state?.refs, table.refs, table.head);
  comparisons.set(table, { state: state?.event.id, comparison });
  return comparison;
}

const shownOthers = 10;

// The signed state beside what is held, ref by ref: pure. Only branches and tags are a state's to decide.

export type Standing =
  | "equal"
  /** Held at another commit than signed. */
  | "differs"
  /** Signed, not held. */
  | "missing"
  /** Held, not signed. */
  | "unsigned";

export interface ComparedRef {
  readonly name: string;
  readonly kind: "branch" | "tag";
  readonly signed: string | undefined;
  readonly held: string | undefined;
  readonly standing: Standing;
}

/** `none`: nothing has been signed yet. `partial`: what is held is as signed, but something signed is not here. */
export type OverallStanding = "complete" | "partial" | "differs" | "none";

export interface Comparison {
  readonly refs: readonly ComparedRef[];
  readonly overall: OverallStanding;
}

// Made once: a comparison of texts that makes its own takes a hundred times as long.
const byName = new Intl.Collator("en", { numeric: true });

const refsATime = 500;
const heads = "refs/heads/";
const tags = "refs/tags/";

function standingOf(signed: string | undefined, held: string | undefined): Standing {
  if (held === undefined) return "missing";
  if (signed === undefined) return "unsigned";
  return signed === held ? "equal" : "differs";
}

/** `signed` undefined: no state governs. Branches first, the head among them first, then by name. */
export async function compareRefs(
  signed: readonly StateRef[] | undefined,
  held: ReadonlyMap<string, { readonly oid: string }>,
  head: string,
): Promise<Comparison> {
  const wanted = new Map((signed ?? []).map(({ name, value }) => [name, value]));
  const names = new Set([...wanted.keys(), ...held.keys()]);
  const refs: ComparedRef[] = [];
  for (const name of names) {
    if (refs.length % refsATime === 0) await othersFirst();
    const kind = name.startsWith(heads) ? "branch" : name.startsWith(tags) ? "tag" : undefined;
    if (!kind) continue;
    const [signedOid, heldOid] = [wanted.get(name), held.get(name)?.oid];
    const short = name.slice(kind === "branch" ? heads.length : tags.length);
    refs.push({ name: short, kind, signed: signedOid, held: heldOid, standing: standingOf(signedOid, heldOid) });
  }
  const rank = ({ kind, name }: ComparedRef): number => (kind === "tag" ? 2 : `${heads}${name}` === head ? 0 : 1);
  const sorted = await sortedInTurns(refs, (a, b) => rank(a) - rank(b) || byName.compare(a.name, b.name));
  return { refs: sorted, overall: signed === undefined ? "none" : overallOf(sorted) };
}

function overallOf(refs: readonly ComparedRef[]): OverallStanding {
  if (refs.some(({ standing }) => standing === "differs" || standing === "unsigned")) return "differs";
  return refs.some(({ standing }) => standing === "missing") ? "partial" : "complete";
}
