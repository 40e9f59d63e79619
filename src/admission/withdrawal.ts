// What follows when stored or waiting events of an author's go at his own request: rows, repositories, exceptions
// that leaned on them. Shared by deletions (5) and vanish requests (62); the stored events themselves are removed by
// the store when the request is put.

import { addressOf, addressText } from "../nostr/address.js";
import type { NostrEvent } from "../nostr/event.js";
import { kinds } from "../nostr/kinds.js";
import { repositoriesTagged } from "../nostr/nip34.js";
import type { Reader } from "../store/port.js";
import type { AuthorityChange } from "./authority.js";
import { catalogueRow, withStatus } from "./catalogue.js";
import { endOfWait } from "./end-of-wait.js";
import { lapsedExceptions } from "./exception.js";
import { type RepositoryName, repositoryAddress, repositoryKey } from "./names.js";
import type { Change, RepositoryChange, Withdrawn } from "./policy.js";
import { type WaitingEntry, waitingAnnouncement, waitingEvent } from "./waiting.js";

export interface Withdrawal {
  readonly changes: readonly Change[];
  readonly repositories: readonly RepositoryChange[];
  readonly withdrawn: readonly Withdrawn[];
}

const withGitData = new Set<number>([kinds.announcement, kinds.state, kinds.pullRequest, kinds.pullRequestUpdate]);

export async function withdrawalOf(
  reader: Reader,
  stored: readonly NostrEvent[],
  waiting: readonly WaitingEntry[],
  cause: "deletion" | "vanish",
  nowSeconds: number,
  isBlocked: (name: RepositoryName) => boolean,
): Promise<Withdrawal> {
  const changes: Change[] = [];
  const repositories: RepositoryChange[] = [];
  const withdrawn: Withdrawn[] = [];
  const authority: AuthorityChange[] = [];
  const affected = new Map<string, RepositoryName>();

  for (const entry of waiting) {
    if (entry.kind !== "announcement") {
      changes.push({ type: "unhold", id: entry.id, cause });
      continue;
    }
    const name = { owner: entry.pubkey, identifier: entry.identifier };
    affected.set(repositoryKey(name), name);
    const ending = endOfWait(entry, name, await catalogueRow(reader, name), cause, nowSeconds);
    changes.push(...ending.changes);
    repositories.push(...ending.repositories);
  }
  const unheld = new Set(waiting.map((entry) => entry.id));
  for (const event of stored) {
    if (!withGitData.has(event.kind)) continue;
    withdrawn.push({
      id: event.id,
      kind: event.kind,
      identifier: addressOf(event)?.identifier ?? "",
      repositories: ownRepositories(event),
    });
    if (event.kind !== kinds.announcement) continue;
    const name = { owner: event.pubkey, identifier: addressOf(event)?.identifier ?? "" };
    affected.set(repositoryKey(name), name);
    const row = await catalogueRow(reader, name);
    const next = row && withStatus(row, "deleted", nowSeconds);
    const newer = await waitingAnnouncement(reader, name);
    const remaining = newer && !unheld.has(newer.id) ? [waitingEvent(newer)] : [];
    authority.push({ name, announcements: remaining, row: next });
    // A waiting row belongs to the newer announcement that waits, not to the stored one.
    if (!row || !next || row.status === "waiting" || row.status === "soft" || row.status === "deleted") continue;
    changes.push({ type: "catalogue", row: next });
    repositories.push({ name, to: "delete" });
  }
  for (const name of affected.values()) changes.push({ type: "listings", name });
  for (const lapse of await lapsedExceptions(reader, authority, isBlocked)) {
    changes.push({ type: "remove", id: lapse.id, cause: "unhosted" }, { type: "listings", name: lapse.name });
  }
  return { changes, repositories, withdrawn };
}

function ownRepositories(event: NostrEvent): string[] {
  if (event.kind === kinds.announcement) {
    return [repositoryAddress({ owner: event.pubkey, identifier: addressOf(event)?.identifier ?? "" })];
  }
  return repositoriesTagged(event).map(addressText);
}
