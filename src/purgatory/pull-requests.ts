// Pull requests whose commit is here: their ref is set in every repository they address (purgatory.md, "Release" 3), and
// under `/prs/` when that is where the commit is: nothing is ever copied there (grasp.md, GRASP-06).

import { prsIdentifier } from "../admission/service.js";
import {
  catalogueRow,
  isReleased,
  type RepositoryName,
  repositoryAddress,
  repositoryKey,
  underPrs,
} from "../catalogue/repositories.js";
import {
  placesOf,
  type WaitingEntry,
  waitingEntries,
  waitingEntry,
  waitingEvent,
  waitingKeys,
} from "../catalogue/waiting.js";
import type { GitRepository } from "../git/repository.js";
import type { ServiceName } from "../net/url.js";
import { addressText, type NostrEvent } from "../nostr/event.js";
import { type EventId, isOid, type Oid, type RefName } from "../nostr/ids.js";
import { pullRequestOf, repositoriesTagged } from "../nostr/nip34.js";
import type { Reader } from "../store/port.js";
import type { PlanParts } from "./plan.js";

export interface PullRequestPlan {
  readonly entry: WaitingEntry;
  readonly ref: RefName;
  readonly tip: Oid;
  /** Repositories to set the ref in, each with the one from which the objects are copied when it lacks them. */
  readonly targets: readonly {
    readonly name: RepositoryName;
    readonly repository: GitRepository;
    readonly copyFrom?: GitRepository;
  }[];
}

export interface KnownPullRequest {
  readonly event: NostrEvent;
  /** Addresses of the repositories it belongs to, that of its signer under `/prs/` among them if it names it. */
  readonly repositories: readonly string[];
}

/** The event a `refs/nostr/<id>` is named after, stored or waiting. `services`: none while GRASP-06 is off. */
export async function knownPullRequest(
  reader: Reader,
  id: EventId,
  services: readonly ServiceName[],
): Promise<KnownPullRequest | undefined> {
  // In this order: a release between the two looks must not make a known event unknown.
  const entry = await waitingEntry(reader, id);
  const stored = await reader.event(id);
  const event = stored?.event ?? (entry && waitingEvent(entry));
  if (!event) return undefined;
  const pullRequest = pullRequestOf(event);
  const identifier = pullRequest && prsIdentifier(pullRequest, event.pubkey, services);
  const named = stored ? repositoriesTagged(event).map(addressText) : (entry?.repositories ?? []);
  if (identifier === undefined) return { event, repositories: named };
  return { event, repositories: [...named, repositoryAddress(underPrs({ owner: event.pubkey, identifier }))] };
}

const maxPullRequestsLookedAt = 500;

export const pullRequestRef = (id: EventId): RefName => `refs/nostr/${id}` as RefName;

/** The tip a waiting pull request names, when it could be an object. */
export function tipOf(entry: WaitingEntry): Oid | undefined {
  const tip = pullRequestOf(waitingEvent(entry))?.tip;
  return isOid(tip) ? tip : undefined;
}

/** Those asked for by id, then others up to a bound: a flood of strangers' must not hide the one that is pushed now. */
export async function waitingPullRequests(
  reader: Reader,
  name: RepositoryName,
  asked: readonly EventId[] = [],
): Promise<WaitingEntry[]> {
  const prefix = waitingKeys.repositoryKind(name, "pull-request");
  const found = new Map<EventId, WaitingEntry>();
  for (const id of asked) {
    const entry = await waitingEntry(reader, id);
    const isHere =
      entry?.kind === "pull-request" && placesOf(entry).some((place) => repositoryKey(place) === repositoryKey(name));
    if (isHere) found.set(id, entry);
  }
  for (const entry of await waitingEntries(reader, prefix, maxPullRequestsLookedAt)) found.set(entry.id, entry);
  return [...found.values()].filter((entry) => entry.releasable);
}

/**
 * `isMine`: repositories whose locks are held; others it names are not looked at. `willBeReleased`: those that this very
 * release makes served. A pull request waits for a served repository, or for its commit under `/prs/`.
 */
export async function planPullRequest(
  entry: WaitingEntry,
  { reader, missingOf }: Pick<PlanParts, "reader" | "missingOf">,
  open: (name: RepositoryName) => GitRepository,
  isMine: (name: RepositoryName) => boolean,
  willBeReleased: (name: RepositoryName) => boolean,
): Promise<PullRequestPlan | undefined> {
  const tip = tipOf(entry);
  if (!tip) return undefined;
  const addressed: { name: RepositoryName; repository: GitRepository; has: boolean }[] = [];
  for (const name of placesOf(entry).filter(isMine)) {
    const isUnderPrs = name.area === "prs";
    if (!(isUnderPrs || isReleased(await catalogueRow(reader, name)) || willBeReleased(name))) continue;
    const repository = open(name);
    const has = (await missingOf(repository, [tip])).size === 0;
    // Nothing is ever copied to `/prs/`.
    if (has || !isUnderPrs) addressed.push({ name, repository, has });
  }
  const source = addressed.find(({ has }) => has)?.repository;
  if (!source) return undefined;
  const types = await source.objectTypes([tip]);
  if (types.get(tip) !== "commit") return undefined;
  const targets = addressed.map(({ name, repository, has }) => ({
    name,
    repository,
    ...(has ? {} : { copyFrom: source }),
  }));
  return { entry, ref: pullRequestRef(entry.id), tip, targets };
}
