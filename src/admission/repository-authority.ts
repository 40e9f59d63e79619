// What a repository's own directed maintainer set means for git: who decides, and from which repositories here it
// may be filled (git-http.md "Push" 3, purgatory.md).

import type { Pubkey } from "../nostr/ids.js";
import type { Reader } from "../store/port.js";
import { countingAnnouncements } from "./announcements.js";
import { type CatalogueRow, catalogueRow, isReleased } from "./catalogue.js";
import { maintainerSet } from "./maintainers.js";
import type { RepositoryName } from "./names.js";

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
