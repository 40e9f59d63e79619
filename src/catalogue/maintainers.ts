// Who may decide (grasp.md): the recursive maintainer set of one owner's repository, and what it means for git: who
// decides there, and from which repositories here it may be filled (git-http.md "Push" 3, purgatory.md).
// The set is directed: it starts at the owner and follows what members say; what others say about the owner is never
// asked. This includes the draft role tags; they will change, and nothing outside this file reads them.
//
// Who lists whom: an index over the announcements that are here (served or waiting), in table "catalogue".
//   lister:<identifier>:<lister>                            → ListerRow
//   listing:<identifier>:<listed>:<since, 12 digits>:<lister> → 1
// Maintainer sets are walked forward from an owner without it. It exists for the opposite question, "whose sets may
// this key be in", so that it is answered without looking at every stranger's announcement of the same identifier.
// Rows are hints: whoever uses one reads the lister's announcement again. Oldest listings come first, so that a later
// flood of strangers who list a key does not hide the repositories that listed it before.
//
// Whose repositories may this key decide in? The maintainer sets that contain it, found backwards, verified forwards.
//
// Sets are directed, so a thousand strangers who list a key really do put it into their sets (threats.md row 17):
// that must cost little and hide nothing. Order of the answer: the key's own repository, those it trusts itself and
// that trust it back, then released ones, then waiting ones; within each the oldest listing first. At most
// `maxListingsRead` index rows are read, `maxVerified` candidates checked; beyond that a stranger's repository is not
// found, which only means that a state is not spread to it by itself.

import { compareNewestFirst, isPubkey, kinds, type NostrEvent, type Pubkey, type Tag } from "../nostr/event.js";
import { announcementOf } from "../nostr/nip34.js";
import type { Reader, TableReader, Transaction } from "../store/port.js";
import {
  type CatalogueRow,
  catalogueRow,
  identifierKey,
  isReleased,
  type RepositoryName,
  repositoryKey,
} from "./repositories.js";
import { waitingAnnouncement, waitingEvent } from "./waiting.js";

export const maxMaintainers = 100;
export const maxMaintainerDepth = 10;

/** All announcements by an author for an identifier that count: the served one and the waiting one. */
type AnnouncementsOf = (author: Pubkey, identifier: string) => Promise<readonly NostrEvent[]>;

/** Names of the tags this file reads. */
export const maintainerTags: readonly string[] = ["M", "m", "o", "maintainers"];

interface Role {
  readonly decides: boolean;
  readonly pubkey: Pubkey;
  readonly active: boolean;
}

const boundary = /^\d{1,15}$/;

/** `["m", <key>, start, end, start, …]`. Anything else under these names (`["m","text/plain"]`) is not a role. */
function roleOf(tag: Tag): Role | undefined {
  const [name, pubkey, ...boundaries] = tag;
  if (name !== "M" && name !== "m" && name !== "o") return undefined;
  if (!isPubkey(pubkey) || !boundaries.every((item) => boundary.test(item))) return undefined;
  const active = boundaries.length === 0 || boundaries.length % 2 === 1;
  return { decides: name !== "o", pubkey, active };
}

/** The keys an announcement itself lists as deciding with its author; without the author, each once, at most 100. */
export function listedMaintainers(event: NostrEvent): readonly Pubkey[] {
  const roles = event.tags.flatMap((tag) => roleOf(tag) ?? []);
  const listed =
    roles.length > 0
      ? roles.filter((role) => role.decides && role.active).map((role) => role.pubkey)
      : (announcementOf(event)?.maintainers ?? []);
  return [...new Set(listed)].filter((key) => key !== event.pubkey).slice(0, maxMaintainers);
}

export const newestOf = (events: readonly NostrEvent[]): NostrEvent | undefined =>
  [...events].sort(compareNewestFirst)[0];

export interface MaintainerGraph {
  /** The set, in the order found: the owner first, then by distance. Empty without an announcement of the owner's. */
  readonly members: ReadonlySet<Pubkey>;
  /** What each member with an announcement lists. */
  readonly lists: ReadonlyMap<Pubkey, readonly Pubkey[]>;
}

export async function maintainerGraph(
  owner: Pubkey,
  identifier: string,
  announcementsOf: AnnouncementsOf,
): Promise<MaintainerGraph> {
  const members = new Set<Pubkey>();
  const lists = new Map<Pubkey, readonly Pubkey[]>();
  let level: Pubkey[] = [owner];
  for (let depth = 0; level.length > 0; depth++) {
    const next: Pubkey[] = [];
    for (const author of level) {
      const announcement = newestOf(await announcementsOf(author, identifier));
      if (author === owner) {
        // A chain of authority starts at the repository's own announcement.
        if (!announcement) return { members, lists };
        members.add(owner);
      }
      if (!announcement) continue;
      const listed = listedMaintainers(announcement);
      lists.set(author, listed);
      if (depth >= maxMaintainerDepth) continue;
      for (const key of listed) {
        if (members.has(key) || members.size >= maxMaintainers) continue;
        members.add(key);
        next.push(key);
      }
    }
    level = next;
  }
  return { members, lists };
}

/** The directed maintainer set of `owner`'s repository: at most 100 keys, at most 10 steps away; cycles end. */
export async function maintainerSet(
  owner: Pubkey,
  identifier: string,
  announcementsOf: AnnouncementsOf,
): Promise<ReadonlySet<Pubkey>> {
  return (await maintainerGraph(owner, identifier, announcementsOf)).members;
}

/** The announcements that count for authority: the stored version and the waiting one (grasp.md, "Who may decide"). */
export async function countingAnnouncements(
  reader: Reader,
  owner: Pubkey,
  identifier: string,
): Promise<readonly NostrEvent[]> {
  // Waiting ones first: one that is released between the two looks is then seen twice, not missed.
  const waiting = await waitingAnnouncement(reader, { owner, identifier });
  const stored = await reader.latest({ kind: kinds.announcement, pubkey: owner, identifier });
  return [...(stored ? [stored.event] : []), ...(waiting ? [waitingEvent(waiting)] : [])];
}

export const maintainersOf = (reader: Reader, name: RepositoryName): Promise<ReadonlySet<Pubkey>> =>
  maintainerSet(name.owner, name.identifier, (author, identifier) => countingAnnouncements(reader, author, identifier));

/** Released repositories of other members of the set: a new repository may be filled from them at once. */
export async function releasedSiblings(reader: Reader, name: RepositoryName): Promise<CatalogueRow[]> {
  const siblings: CatalogueRow[] = [];
  for (const owner of await maintainersOf(reader, name)) {
    const row = owner === name.owner ? undefined : await catalogueRow(reader, { owner, identifier: name.identifier });
    if (row && isReleased(row)) siblings.push(row);
  }
  return siblings;
}

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
async function listersOf(reader: TableReader, identifier: string, listed: Pubkey, limit: number): Promise<Pubkey[]> {
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

const maxListingsRead = 300;
const maxVerified = 60;

/** What authority is decided on: the store as it is, or as it would be after a change. */
export interface AuthorityView {
  announcementsOf(owner: Pubkey, identifier: string): Promise<readonly NostrEvent[]>;
  rowOf(name: RepositoryName): Promise<CatalogueRow | undefined>;
  listersOf(identifier: string, listed: Pubkey, limit: number): Promise<readonly Pubkey[]>;
}

export const storedAuthority = (reader: Reader): AuthorityView => ({
  announcementsOf: (owner, identifier) => countingAnnouncements(reader, owner, identifier),
  rowOf: (name) => catalogueRow(reader, name),
  listersOf: (identifier, listed, limit) => listersOf(reader, identifier, listed, limit),
});

export interface AuthorityChange {
  readonly name: RepositoryName;
  readonly announcements: readonly NostrEvent[];
  readonly row: CatalogueRow | undefined;
}

/** The view after some repositories' announcements and rows have changed. */
export function changedAuthority(view: AuthorityView, changes: readonly AuthorityChange[]): AuthorityView {
  const byKey = new Map(changes.map((change) => [repositoryKey(change.name), change]));
  return {
    announcementsOf: async (owner, identifier) =>
      byKey.get(repositoryKey({ owner, identifier }))?.announcements ?? view.announcementsOf(owner, identifier),
    rowOf: async (name) => {
      const change = byKey.get(repositoryKey(name));
      return change ? change.row : view.rowOf(name);
    },
    listersOf: (identifier, listed, limit) => view.listersOf(identifier, listed, limit),
  };
}

/** Members of a key's own set from which the key is reached again: they trust each other. */
function mutual(key: Pubkey, graph: MaintainerGraph): Pubkey[] {
  const reaching = new Set<Pubkey>([key]);
  for (let grown = true; grown; ) {
    grown = false;
    for (const [member, listed] of graph.lists) {
      if (!reaching.has(member) && listed.some((other) => reaching.has(other))) {
        reaching.add(member);
        grown = true;
      }
    }
  }
  reaching.delete(key);
  return [...reaching];
}

async function listersUpwards(view: AuthorityView, key: Pubkey, identifier: string): Promise<Pubkey[]> {
  const found = new Set<Pubkey>();
  let budget = maxListingsRead;
  let level: Pubkey[] = [key];
  for (let depth = 0; depth < maxMaintainerDepth && level.length > 0 && budget > 0; depth++) {
    const next: Pubkey[] = [];
    for (const listed of level) {
      if (budget <= 0) break;
      const listers = await view.listersOf(identifier, listed, budget);
      budget -= Math.max(1, listers.length);
      for (const lister of listers) {
        if (lister === key || found.has(lister)) continue;
        const current = newestOf(await view.announcementsOf(lister, identifier));
        if (!current || !listedMaintainers(current).includes(listed)) continue;
        found.add(lister);
        next.push(lister);
      }
    }
    level = next;
  }
  return [...found];
}

export interface TrustingRepository extends RepositoryName {
  readonly row: CatalogueRow;
}

/**
 * Repositories for `identifier` whose own maintainer set contains `key` and whose row is `wanted`, at most `max`.
 */
export async function repositoriesTrusting(
  view: AuthorityView,
  key: Pubkey,
  identifier: string,
  max: number,
  wanted: (row: CatalogueRow) => boolean,
): Promise<TrustingRepository[]> {
  const graph = await maintainerGraph(key, identifier, view.announcementsOf);
  const near = graph.members.has(key) ? [key, ...mutual(key, graph)] : [];
  const chosen = await repositoriesOf(view, near, identifier, wanted);
  const known = new Set(near);
  const far = (await listersUpwards(view, key, identifier)).filter((owner) => !known.has(owner));
  const strangers = await repositoriesOf(view, far, identifier, wanted);
  chosen.push(...strangers.filter(({ row }) => isReleased(row)), ...strangers.filter(({ row }) => !isReleased(row)));

  const trusting: TrustingRepository[] = [];
  for (const candidate of chosen.slice(0, maxVerified)) {
    if (trusting.length >= max) break;
    // The bounds of a set (100 keys, 10 steps) are the owner's: only walking from the owner tells who is inside.
    const set =
      candidate.owner === key ? undefined : await maintainerSet(candidate.owner, identifier, view.announcementsOf);
    if (set === undefined || set.has(key)) trusting.push(candidate);
  }
  return trusting;
}

async function repositoriesOf(
  view: AuthorityView,
  owners: readonly Pubkey[],
  identifier: string,
  wanted: (row: CatalogueRow) => boolean,
): Promise<TrustingRepository[]> {
  const found: TrustingRepository[] = [];
  for (const owner of owners) {
    const row = await view.rowOf({ owner, identifier });
    if (row && wanted(row)) found.push({ owner, identifier, row });
  }
  return found;
}
