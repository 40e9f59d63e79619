// The maintainer exception (relay.md rule 2): an announcement that does not list this service is kept when its author
// is in the directed maintainer set of somebody else's released repository here. It gives no repository and lapses
// with what it leans on; nothing about it is remembered, it is derived again each time.

import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type AuthorityChange,
  type AuthorityView,
  changedAuthority,
  maintainerSet,
  repositoriesTrusting,
  storedAuthority,
} from "../catalogue/maintainers.js";
import { isReleased, type RepositoryName } from "../catalogue/repositories.js";
import { addressOf, kinds, type NostrEvent, type Pubkey } from "../nostr/event.js";
import type { Reader } from "../store/port.js";
import type { StoredReference } from "./verdict.js";

/** A key that vanishes may have very many repositories. */
const setsATurn = 50;

/** The owner of a released repository that trusts this key, if there is one; blocked owners do not count. */
export async function ownerTrusting(
  view: AuthorityView,
  name: RepositoryName,
  isBlocked: (name: RepositoryName) => boolean,
): Promise<Pubkey | undefined> {
  const trusting = await repositoriesTrusting(
    view,
    name.owner,
    name.identifier,
    1,
    (row) => isReleased(row) && row.owner !== name.owner && !isBlocked(row),
  );
  return trusting[0]?.owner;
}

/**
 * Stored announcements that were here by exception and are no longer, once `changes` have happened. Only members of
 * the sets that begin at a changed announcement can be affected. `going` counted until now, though the store may not
 * show it any more (NIP-40).
 */
export async function lapsedExceptions(
  reader: Reader,
  changes: readonly AuthorityChange[],
  isBlocked: (name: RepositoryName) => boolean,
  going: readonly NostrEvent[] = [],
): Promise<StoredReference[]> {
  const before = withGoing(storedAuthority(reader), going);
  const after = changedAuthority(before, changes);
  const changed = new Set(changes.map((change) => change.name.owner));
  const lapsed = new Map<string, StoredReference>();
  for (const [index, { name, row }] of changes.entries()) {
    if (index % setsATurn === setsATurn - 1) await nextTurn();
    const wasReleased = isReleased(await before.rowOf(name));
    const oldSet = await maintainerSet(name.owner, name.identifier, before.announcementsOf);
    const newSet = await maintainerSet(name.owner, name.identifier, after.announcementsOf);
    const stillLeansOn = wasReleased === isReleased(row) || isReleased(row);
    for (const member of oldSet) {
      if (changed.has(member) || (stillLeansOn && newSet.has(member))) continue;
      const memberName = { owner: member, identifier: name.identifier };
      const own = await after.rowOf(memberName);
      // With a repository of its own, or one it has just left, an announcement does not lean on anybody.
      if (own !== undefined && own.status !== "deleted") continue;
      const stored = await reader.latest({ kind: kinds.announcement, pubkey: member, identifier: name.identifier });
      if (!stored || (await ownerTrusting(after, memberName, isBlocked)) !== undefined) continue;
      lapsed.set(stored.event.id, { id: stored.event.id, name: memberName });
    }
  }
  return [...lapsed.values()];
}

const withGoing = (view: AuthorityView, going: readonly NostrEvent[]): AuthorityView => ({
  ...view,
  announcementsOf: async (owner, identifier) => [
    ...(await view.announcementsOf(owner, identifier)),
    ...going.filter((event) => event.pubkey === owner && addressOf(event)?.identifier === identifier),
  ],
});
