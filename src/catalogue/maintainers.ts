// Who may decide (grasp.md): the recursive maintainer set of one owner's repository, and what it means for git: who
// decides there, and from which repositories here it may be filled (git-http.md "Push" 3, purgatory.md).
// The set is directed: it starts at the owner and follows what members say; what others say about the owner is never
// asked. This includes the draft role tags; they will change, and nothing outside this file reads them.

import { compareNewestFirst, kinds, type NostrEvent, type Tag } from "../nostr/event.js";
import { isPubkey, type Pubkey } from "../nostr/ids.js";
import { announcementOf } from "../nostr/nip34.js";
import type { Reader } from "../store/port.js";
import { type CatalogueRow, catalogueRow, isReleased, type RepositoryName } from "./repositories.js";
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
