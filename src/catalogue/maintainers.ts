// Maintainer sets (maintainer-set.ts) over the announcements that are here, and what they mean for git: who decides in a
// repository, and from which repositories here it may be filled (git-http.md "Push" 3, purgatory.md).
//
// Who names whom: an index over the announcements that are here (served or waiting), in table "catalogue".
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

import { setImmediate as nextTurn } from "node:timers/promises";
import { compareNewestFirst, type EventId, kinds, type NostrEvent, type Pubkey } from "../nostr/event.js";
import type { Reader, TableReader, Transaction } from "../store/port.js";
import { type MaintainerSet, maintainerWalk, maxMaintainerDepth, namedBy, rolesOf } from "./maintainer-set.js";
import {
  type CatalogueRow,
  catalogueRow,
  identifierKey,
  isReleased,
  type RepositoryName,
  repositoryKey,
} from "./repositories.js";
import { waitingAnnouncement, waitingEntry, waitingEvent } from "./waiting.js";

export const newestOf = (events: readonly NostrEvent[]): NostrEvent | undefined =>
  [...events].sort(compareNewestFirst)[0];

/** What authority is decided on: the store as it is, or as it would be after a change. */
export interface AuthorityView {
  /** All announcements by an author for an identifier that count: the served one and the waiting one. */
  announcementsOf(owner: Pubkey, identifier: string): Promise<readonly NostrEvent[]>;
  /** Whether keys that a `maintainers` tag lists have to answer too. */
  mutual(): Promise<boolean>;
  rowOf(name: RepositoryName): Promise<CatalogueRow | undefined>;
  listersOf(identifier: string, listed: Pubkey, limit: number): Promise<readonly Pubkey[]>;
}

export const storedAuthority = (reader: Reader): AuthorityView => ({
  announcementsOf: (owner, identifier) => countingAnnouncements(reader, owner, identifier),
  mutual: () => asksForAnswers(reader),
  rowOf: (name) => catalogueRow(reader, name),
  listersOf: (identifier, listed, limit) => listersOf(reader, identifier, listed, limit),
});

const mutualKey = "maintainers-mutual";

/**
 * The setting is a row, so that everybody who asks who decides, also in a transaction and in a command without a server,
 * gets one answer. Without a row nothing was ever decided by another rule than the listed one.
 */
export const asksForAnswers = async (reader: TableReader): Promise<boolean> =>
  (await reader.row<boolean>("meta", mutualKey)) === true;

export const setAsksForAnswers = (tx: Transaction, mutual: boolean): void => tx.setRow("meta", mutualKey, mutual);

/** The directed maintainer set of one repository, and why each key is in it or not. */
export async function maintainerSet(
  view: Pick<AuthorityView, "announcementsOf" | "mutual">,
  { owner, identifier }: RepositoryName,
): Promise<MaintainerSet> {
  const walk = maintainerWalk(owner, await view.mutual());
  let step = walk.next();
  while (!step.done) {
    const newest = newestOf(await view.announcementsOf(step.value, identifier));
    step = walk.next(newest && rolesOf(newest));
  }
  return step.value;
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

export const maintainersOf = async (reader: Reader, name: RepositoryName): Promise<ReadonlySet<Pubkey>> =>
  (await maintainerSet(storedAuthority(reader), name)).members;

/** Whether a state is here, stored or waiting, and its author decides in the repository at this moment. */
export async function stateDecides(reader: Reader, name: RepositoryName, id: EventId): Promise<boolean> {
  // The waiting one first, as above.
  const author = (await waitingEntry(reader, id))?.pubkey ?? (await reader.event(id))?.event.pubkey;
  return author !== undefined && (await maintainersOf(reader, name)).has(author);
}

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
  for (const event of announcements) {
    for (const listed of namedBy(rolesOf(event))) after[listed] = before[listed] ?? nowSeconds;
  }
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

export interface AuthorityChange {
  readonly name: RepositoryName;
  readonly announcements: readonly NostrEvent[];
  readonly row: CatalogueRow | undefined;
}

/** The view after some repositories' announcements and rows have changed. */
export function changedAuthority(view: AuthorityView, changes: readonly AuthorityChange[]): AuthorityView {
  const byKey = new Map(changes.map((change) => [repositoryKey(change.name), change]));
  return {
    ...view,
    announcementsOf: async (owner, identifier) =>
      byKey.get(repositoryKey({ owner, identifier }))?.announcements ?? view.announcementsOf(owner, identifier),
    rowOf: async (name) => {
      const change = byKey.get(repositoryKey(name));
      return change ? change.row : view.rowOf(name);
    },
  };
}

/** Members of a key's own set from which the key is reached again: they trust each other. */
function mutual(key: Pubkey, { names }: MaintainerSet): Pubkey[] {
  const reaching = new Set<Pubkey>([key]);
  for (let grown = true; grown; ) {
    grown = false;
    for (const [member, listed] of names) {
      if (!reaching.has(member) && listed.some((other) => reaching.has(other))) {
        reaching.add(member);
        grown = true;
      }
    }
  }
  reaching.delete(key);
  return [...reaching];
}

/** Whose sets may reach a key: keys that name it, keys that name those, and so on, longest listed first. */
export async function listersUpwards(view: AuthorityView, key: Pubkey, identifier: string): Promise<Pubkey[]> {
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
        if (!current || !namedBy(rolesOf(current)).includes(listed)) continue;
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

/** Sets that are looked at before others get their turn: an attacker's may name hundreds of keys each. */
const setsATurn = 10;

/**
 * Repositories for `identifier` whose own maintainer set contains `key` and whose row is `wanted`, at most `max`. With
 * `holds` another question is asked of their sets.
 */
export async function repositoriesTrusting(
  view: AuthorityView,
  key: Pubkey,
  identifier: string,
  max: number,
  wanted: (row: CatalogueRow) => boolean,
  holds: (set: MaintainerSet) => boolean = ({ members }) => members.has(key),
): Promise<TrustingRepository[]> {
  const own = await maintainerSet(view, { owner: key, identifier });
  const near = [key, ...mutual(key, own)];
  const chosen = await repositoriesOf(view, near, identifier, wanted);
  const known = new Set(near);
  const far = (await listersUpwards(view, key, identifier)).filter((owner) => !known.has(owner));
  const strangers = await repositoriesOf(view, far, identifier, wanted);
  chosen.push(...strangers.filter(({ row }) => isReleased(row)), ...strangers.filter(({ row }) => !isReleased(row)));

  const trusting: TrustingRepository[] = [];
  for (const [index, candidate] of chosen.slice(0, maxVerified).entries()) {
    if (trusting.length >= max) break;
    if (index % setsATurn === setsATurn - 1) await nextTurn();
    // The bounds of a set (100 keys, 10 steps) are the owner's: only walking from the owner tells who is inside.
    if (holds(candidate.owner === key ? own : await maintainerSet(view, candidate))) trusting.push(candidate);
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
