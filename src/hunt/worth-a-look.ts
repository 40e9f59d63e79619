// Which repositories to look at: those for which something waits at the start, and those of a name that was announced.

import type { RepositoryName } from "../catalogue/repositories.js";
import { catalogueRows, takesStates } from "../catalogue/repositories.js";
import { contributorOf, waitingContributions, waitingHints, waitingKeys } from "../catalogue/waiting.js";
import { type PlacedName, underPrs } from "../git/address.js";
import { parseAddress } from "../nostr/address.js";
import { kinds } from "../nostr/kinds.js";
import { announcementOf } from "../nostr/nip34.js";
import type { FeedEntry, Store } from "../store/port.js";

export async function* waitingAtStart(store: Store): AsyncIterable<PlacedName> {
  for await (const row of catalogueRows(store)) {
    if (!takesStates(row)) continue;
    const { owner, identifier, partial } = row;
    if (partial !== null || (await hasWaiting(store, row))) yield { owner, identifier };
  }
  for await (const entry of waitingContributions(store)) {
    const contributor = contributorOf(entry);
    if (contributor) yield underPrs(contributor);
  }
}

async function hasWaiting(store: Store, name: RepositoryName): Promise<boolean> {
  for (const kind of ["state", "pull-request"] as const) {
    if ((await waitingHints(store, waitingKeys.repositoryKind(name, kind), 1)).length > 0) return true;
  }
  return false;
}

/** Identifiers whose announcements came or went. */
export function announcedIn(entries: readonly FeedEntry[]): string[] {
  return entries.flatMap((entry) => {
    if (entry.type === "stored") return announcementOf(entry.event)?.identifier ?? [];
    const address = entry.kind === kinds.announcement && entry.address ? parseAddress(entry.address) : undefined;
    return address?.identifier ?? [];
  });
}
