// Rule 4 of relay.md: pull requests and their updates (1618, 1619): related, or by GRASP-06; then they wait for the
// commit in `c`. What `c` says is not looked at beyond "could it be an object id" (threats.md row 1).

import { isRepositoryBlocked, isWhitelisted } from "../catalogue/bans-and-lists.js";
import { rememberedId } from "../catalogue/decisions.js";
import { type RepositoryName, repositoryAddress } from "../catalogue/repositories.js";
import { waitingEntry } from "../catalogue/waiting.js";
import { addressText, type VerifiedEvent } from "../nostr/event.js";
import { isOid, type PullRequest, pullRequestOf } from "../nostr/nip34.js";
import type { TableReader } from "../store/port.js";
import { type Relation, readRelation } from "./related.js";
import { prsIdentifier } from "./service.js";
import type { AdmissionSettings } from "./settings.js";
import { type AdmissionContext, held, known, purgatoryMessage, refused, type Verdict } from "./verdict.js";
import { newEntry, roomFor, usualDeadline, waitingRoomFull } from "./waiting-capacity.js";

export async function judgePullRequest(
  event: VerifiedEvent,
  context: AdmissionContext,
  settings: AdmissionSettings,
): Promise<Verdict> {
  const pullRequest = pullRequestOf(event);
  if (!pullRequest) return refused("pull-request", "bad-event", "not a pull request");
  const { reader, source, nowSeconds } = context;
  const config = settings.config();
  const { repositoryBlacklist } = settings.lists();
  const relation = await readRelation(event, reader, (name) => repositoryBlacklist.has(name));
  const contributor = settings.config().grasp06Enable
    ? await contributorRepository(event, pullRequest, reader, settings)
    : undefined;
  const repositories = addressedRepositories(pullRequest, relation);
  const isRelated = repositories.length > 0;
  const facts = { repositories, prs: contributor?.identifier ?? null, tip: pullRequest.tip.slice(0, 64) };
  if (!isRelated && !contributor) {
    const sentence =
      relation.servedVia === undefined
        ? "its a tags name no repository of this server"
        : "the repository its a tags name has no git data on this server";
    return refused("pull-request", "unrelated", sentence, facts);
  }
  if (!isRelated && contributor && !contributor.wanted) {
    return refused("repository-list", "repository-blocked", "this repository or key is not wanted here", facts);
  }
  const self = await waitingEntry(reader, event.id);
  if (self?.phase === "waiting" || (self && source.type !== "client"))
    return known("pull-request", "waiting", purgatoryMessage, facts);
  const remembered = source.type === "sync" ? await rememberedId(reader, event.id, nowSeconds) : undefined;
  if (remembered?.reason === "expired") {
    return known("remembered", "superseded", "duplicate: its git data was looked for in vain", facts);
  }
  const room = await roomFor(reader, event.pubkey, Buffer.byteLength(event.raw), config);
  if (!room.ok) return waitingRoomFull(facts);
  const entry = newEntry({
    kind: "pull-request",
    event,
    source,
    nowSeconds,
    deadline: usualDeadline(nowSeconds, config),
    repositories: contributor?.wanted ? [...new Set([...repositories, ...contributor.coordinates])] : repositories,
    prsIdentifier: contributor?.wanted ? contributor.identifier : null,
    releasable: isOid(pullRequest.tip),
  });
  return held(isRelated ? "pull-request" : "grasp-06", entry, self === undefined, facts, {
    changes: room.giveWay.map((id) => ({ type: "unhold", id, cause: "evicted" }) as const),
  });
}

/**
 * Its data belongs where its own `a` tags say, and nowhere else: a pull request for one repository must not place
 * refs in another it merely mentions (threats.md row 18). Only without any does it follow what it points at.
 */
function addressedRepositories(pullRequest: PullRequest, relation: Relation): readonly string[] {
  if (pullRequest.repositories.length === 0) return relation.repositories;
  const named = new Set(pullRequest.repositories.map(addressText));
  return relation.repositories.filter((address) => named.has(address));
}

interface Contributor {
  readonly identifier: string;
  /** What it is a pull request for, hosted here or not: once hosted, its repository gets the data too. */
  readonly coordinates: readonly string[];
  readonly wanted: boolean;
}

const maxCoordinates = 20;

/** GRASP-06: `/prs/<signer>/<identifier>.git`, for a coordinate and a signer that lists and bans allow. */
async function contributorRepository(
  event: VerifiedEvent,
  pullRequest: PullRequest,
  reader: TableReader,
  settings: AdmissionSettings,
): Promise<Contributor | undefined> {
  const identifier = prsIdentifier(pullRequest, event.pubkey, settings.services);
  if (identifier === undefined) return undefined;
  const lists = settings.lists();
  const coordinates = pullRequest.repositories
    .filter((address) => address.identifier === identifier)
    .map((address): RepositoryName => ({ owner: address.pubkey, identifier }));
  const names = [{ owner: event.pubkey, identifier }, ...coordinates];
  let wanted = names.some((name) => isWhitelisted(lists, name));
  // One unwanted coordinate is enough: another beside it would be an easy way round the list.
  for (const name of names) wanted &&= !(await isRepositoryBlocked(reader, lists, name));
  return { identifier, coordinates: coordinates.slice(0, maxCoordinates).map(repositoryAddress), wanted };
}
