// The maintainer exception (relay.md rule 2): an announcement that does not list this service is kept when its author
// is in the directed maintainer set of somebody else's released repository here, or when a member of that set names the
// author for now: an invitee must be able to answer. It gives no repository and no authority by itself, and lapses with
// what it leans on (membership.ts); nothing about it is remembered, it is derived again each time.

import { type AuthorityView, repositoriesTrusting } from "../catalogue/maintainers.js";
import { isReleased, type RepositoryName } from "../catalogue/repositories.js";
import type { Pubkey } from "../nostr/event.js";

/** The owner of a released repository whose maintainers name this key, if there is one; blocked owners do not count. */
export async function ownerNaming(
  view: AuthorityView,
  { owner: key, identifier }: RepositoryName,
  isBlocked: (name: RepositoryName) => boolean,
): Promise<Pubkey | undefined> {
  const naming = await repositoriesTrusting(
    view,
    key,
    identifier,
    1,
    (row) => isReleased(row) && row.owner !== key && !isBlocked(row),
    ({ named }) => named.has(key),
  );
  return naming[0]?.owner;
}
