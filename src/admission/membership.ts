// What follows for others when announcements come, change or go: a maintainer set may be another one then, in the
// announcement's own repository and in each that reads it (an invitee answers, a maintainer leaves, a lead changes).
//   - announcements that were here by exception go when nobody names their authors any more
//   - repositories whose set changed are looked at again (purgatory/release.ts): a state that waits or is served may
//     decide there now, and one whose author no longer decides governs nothing; refs and the mark stay (git-http.md, "Push" 3)
// Reads and says; the verdict that asked writes it.

import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type AuthorityChange,
  type AuthorityView,
  changedAuthority,
  listersUpwards,
  maintainerSet,
  storedAuthority,
} from "../catalogue/maintainers.js";
import { isReleased, type RepositoryName, repositoryKey, takesStates } from "../catalogue/repositories.js";
import { addressOf, kinds, type NostrEvent, type Pubkey } from "../nostr/event.js";
import type { Reader } from "../store/port.js";
import { ownerNaming } from "./maintainer-exception.js";
import type { StoredReference } from "./verdict.js";

export interface MembershipChange {
  /** Stored announcements that were here by exception and are no longer. */
  readonly lapsed: readonly StoredReference[];
  /** Repositories in whose sets a changed announcement counts, or counted. */
  readonly concerned: readonly RepositoryName[];
}

/** A key that vanishes may have very many repositories. */
const setsATurn = 10;
/** Of one announcement: other owners whose sets may read it, and of those whose sets it counts in (threats.md row 17). */
const maxReaders = 60;
const maxConcernedEach = 20;

/** What follows once `changes` have happened. `going` counted until now, though the store may not show it any more (NIP-40). */
export async function membershipChange(
  reader: Reader,
  changes: readonly AuthorityChange[],
  isBlocked: (name: RepositoryName) => boolean,
  going: readonly NostrEvent[] = [],
): Promise<MembershipChange> {
  const before = withGoing(storedAuthority(reader), going);
  const after = changedAuthority(before, changes);
  const changed = new Set(changes.map(({ name }) => repositoryKey(name)));
  const seen = new Set<string>();
  const lapsed = new Map<string, StoredReference>();
  const concerned: RepositoryName[] = [];
  let looks = 0;
  for (const { name } of changes) {
    const { owner: key, identifier } = name;
    const readers = (await listersUpwards(before, key, identifier)).slice(0, maxReaders);
    const own = await maintainerSet(after, name);
    const found: { readonly repository: RepositoryName; readonly rank: number }[] = [];
    for (const owner of [key, ...readers]) {
      const repository = { owner, identifier };
      if (seen.has(repositoryKey(repository))) continue;
      seen.add(repositoryKey(repository));
      if (++looks % setsATurn === 0) await nextTurn();
      const [rowBefore, rowAfter] = [await before.rowOf(repository), await after.rowOf(repository)];
      if (!rowBefore && !rowAfter) continue;
      const old = await maintainerSet(before, repository);
      const next = owner === key ? own : await maintainerSet(after, repository);
      const counts = old.members.has(key) || next.members.has(key) || !areEqual(old.members, next.members);
      // Its own first, then those it trusts itself, then those that are served.
      const rank = owner === key ? 0 : own.members.has(owner) ? 1 : isReleased(rowAfter) ? 2 : 3;
      if (counts && takesStates(rowAfter)) found.push({ repository, rank });
      if (!isReleased(rowBefore)) continue;
      for (const member of old.named) {
        const memberName = { owner: member, identifier };
        if (changed.has(repositoryKey(memberName)) || (isReleased(rowAfter) && next.named.has(member))) continue;
        const lapse = await lapseOf(reader, after, memberName, isBlocked);
        if (lapse) lapsed.set(lapse.id, lapse);
      }
    }
    found.sort((a, b) => a.rank - b.rank);
    concerned.push(...found.slice(0, maxConcernedEach).map(({ repository }) => repository));
  }
  return { lapsed: [...lapsed.values()], concerned };
}

const areEqual = (a: ReadonlySet<Pubkey>, b: ReadonlySet<Pubkey>): boolean =>
  a.size === b.size && [...a].every((key) => b.has(key));

async function lapseOf(
  reader: Reader,
  after: AuthorityView,
  name: RepositoryName,
  isBlocked: (name: RepositoryName) => boolean,
): Promise<StoredReference | undefined> {
  const own = await after.rowOf(name);
  // With a repository of its own, or one it has just left, an announcement does not lean on anybody.
  if (own !== undefined && own.status !== "deleted") return undefined;
  const stored = await reader.latest({ kind: kinds.announcement, pubkey: name.owner, identifier: name.identifier });
  if (!stored || (await ownerNaming(after, name, isBlocked)) !== undefined) return undefined;
  return { id: stored.event.id, name };
}

const withGoing = (view: AuthorityView, going: readonly NostrEvent[]): AuthorityView => ({
  ...view,
  announcementsOf: async (owner, identifier) => [
    ...(await view.announcementsOf(owner, identifier)),
    ...going.filter((event) => event.pubkey === owner && addressOf(event)?.identifier === identifier),
  ],
});
