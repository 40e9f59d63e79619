// What a repository's own directed maintainer set means for git: who decides, which states are candidates for a push
// or a release, and from which repositories here it may be filled (git-http.md "Push" 3, purgatory.md).

import { compareNewestFirst, type VerifiedEvent } from "../nostr/event.js";
import type { Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import type { Reader } from "../store/port.js";
import { countingAnnouncements } from "./announcements.js";
import { type CatalogueRow, catalogueRow, isReleased } from "./catalogue.js";
import { maintainerSet } from "./maintainers.js";
import type { RepositoryName } from "./names.js";
import { waitingEntries, waitingEvent, waitingKeys } from "./waiting.js";

export const maintainersOf = (reader: Reader, name: RepositoryName): Promise<ReadonlySet<Pubkey>> =>
  maintainerSet(name.owner, name.identifier, (author, identifier) => countingAnnouncements(reader, author, identifier));

export interface AuthorisedState {
  readonly event: VerifiedEvent;
  readonly served: boolean;
  /** False: it names something that is no object id; it authorises nothing. */
  readonly releasable: boolean;
}

const maxStatesPerAuthor = 40;

/** All states by members of the set, served and waiting, newest first. */
export async function authorisedStates(reader: Reader, name: RepositoryName): Promise<AuthorisedState[]> {
  const states: AuthorisedState[] = [];
  for (const pubkey of await maintainersOf(reader, name)) {
    const address = { kind: kinds.state, pubkey, identifier: name.identifier };
    const served = await reader.latest(address);
    if (served) states.push({ event: served.event, served: true, releasable: true });
    for (const entry of await waitingEntries(reader, waitingKeys.address(address), maxStatesPerAuthor)) {
      states.push({ event: waitingEvent(entry), served: false, releasable: entry.releasable });
    }
  }
  return states.sort((a, b) => compareNewestFirst(a.event, b.event));
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
