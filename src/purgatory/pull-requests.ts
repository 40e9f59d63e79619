// Pull requests whose commit is here: their ref is set in every repository they address (purgatory.md, "Release" 3).

import { catalogueRow, isReleased } from "../admission/catalogue.js";
import { type RepositoryName, repositoryNamed } from "../admission/names.js";
import { type WaitingEntry, waitingEntries, waitingEntry, waitingEvent, waitingKeys } from "../admission/waiting.js";
import type { Repository } from "../git/types.js";
import { addressText } from "../nostr/address.js";
import type { NostrEvent } from "../nostr/event.js";
import { type EventId, isOid, type Oid } from "../nostr/ids.js";
import { pullRequestOf, repositoriesTagged } from "../nostr/nip34.js";
import type { RefName } from "../nostr/ref-name.js";
import type { Reader } from "../store/port.js";

export interface PullRequestPlan {
  readonly entry: WaitingEntry;
  readonly ref: RefName;
  readonly tip: Oid;
  /** Repositories to set the ref in, each with the one that lends the objects when it lacks them. */
  readonly targets: readonly {
    readonly name: RepositoryName;
    readonly repository: Repository;
    readonly copyFrom?: Repository;
  }[];
}

export interface KnownPullRequest {
  readonly event: NostrEvent;
  /** `30617:<owner>:<identifier>` of each repository it belongs to. */
  readonly repositories: readonly string[];
}

/** The event a `refs/nostr/<id>` is named after, stored or waiting. */
export async function knownPullRequest(reader: Reader, id: EventId): Promise<KnownPullRequest | undefined> {
  const stored = await reader.event(id);
  if (stored) return { event: stored.event, repositories: repositoriesTagged(stored.event).map(addressText) };
  const entry = await waitingEntry(reader, id);
  return entry && { event: waitingEvent(entry), repositories: entry.repositories };
}

const maxPullRequestsLookedAt = 500;

export const pullRequestRef = (entry: WaitingEntry): RefName => `refs/nostr/${entry.id}` as RefName;

/** The tip a waiting pull request names, when it could be an object. */
export function tipOf(entry: WaitingEntry): Oid | undefined {
  const tip = pullRequestOf(waitingEvent(entry))?.tip;
  return isOid(tip) ? tip : undefined;
}

export async function waitingPullRequests(reader: Reader, name: RepositoryName): Promise<WaitingEntry[]> {
  const prefix = waitingKeys.repositoryKind(name, "pull-request");
  return (await waitingEntries(reader, prefix, maxPullRequestsLookedAt)).filter((entry) => entry.releasable);
}

/**
 * `willBeReleased`: repositories that this very release makes served. A pull request waits for a served repository.
 */
export async function planPullRequest(
  entry: WaitingEntry,
  reader: Reader,
  open: (name: RepositoryName) => Repository,
  willBeReleased: (name: RepositoryName) => boolean,
): Promise<PullRequestPlan | undefined> {
  const tip = tipOf(entry);
  if (!tip) return undefined;
  const addressed: { name: RepositoryName; repository: Repository; has: boolean }[] = [];
  for (const text of entry.repositories) {
    const name = repositoryNamed(text);
    if (!name || !(isReleased(await catalogueRow(reader, name)) || willBeReleased(name))) continue;
    const repository = open(name);
    addressed.push({ name, repository, has: (await repository.missingObjects([tip])).size === 0 });
  }
  const lender = addressed.find(({ has }) => has)?.repository;
  if (!lender) return undefined;
  const types = await lender.objectTypes([tip]);
  if (types.get(tip) !== "commit") return undefined;
  const targets = addressed.map(({ name, repository, has }) => ({
    name,
    repository,
    ...(has ? {} : { copyFrom: lender }),
  }));
  return { entry, ref: pullRequestRef(entry), tip, targets };
}
