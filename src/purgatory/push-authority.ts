// Who may push what right now, read from the store for the git room's decision (git-http.md, "Push" 3 and 4).

import { type CatalogueRow, catalogueRow, type RepositoryName, repositoryAddress } from "../catalogue/repositories.js";
import type { CandidateState, NostrRefEvent, PushAuthority, UnclaimedAllowance } from "../git/push-types.js";
import { addressText } from "../nostr/event.js";
import { type EventId, isOid, type Oid } from "../nostr/ids.js";
import { pullRequestOf } from "../nostr/nip34.js";
import type { Reader } from "../store/port.js";
import { canDecide, decidingStates } from "./plan.js";
import type { KnownPullRequest } from "./pull-requests.js";

interface PushRules {
  readonly strict: boolean;
  readonly archiveReadOnly: boolean;
  readonly unclaimed: UnclaimedAllowance;
  readonly quota: PushAuthority["quota"];
  /** Set when no push may be taken at all (disk nearly full). */
  readonly closedReason: string | undefined;
}

function readOnlyReason(row: CatalogueRow | undefined, rules: PushRules): string | undefined {
  if (rules.closedReason !== undefined) return rules.closedReason;
  switch (row?.status) {
    case "leaving":
      return "this repository is leaving: its newest announcement does not list this server, so it is read-only here";
    case "archived":
      return rules.archiveReadOnly
        ? "this server only mirrors this repository: push to a server its announcement lists"
        : undefined;
    case "waiting":
      return row.archive && rules.archiveReadOnly
        ? "this server only mirrors this repository: push to a server its announcement lists"
        : undefined;
    case "served":
      return undefined;
    default:
      return "this repository is not hosted here any more";
  }
}

function nostrRefEvent(name: RepositoryName, { event, repositories }: KnownPullRequest): NostrRefEvent {
  const pullRequest = pullRequestOf(event);
  if (!pullRequest) return { known: true, tip: undefined, addressesThisRepository: false };
  // An update may belong to a repository only by the pull request it updates.
  const addressed = [...repositories, ...pullRequest.repositories.map(addressText)];
  return {
    known: true,
    tip: isOid(pullRequest.tip) ? pullRequest.tip : undefined,
    addressesThisRepository: addressed.includes(repositoryAddress(name)),
  };
}

export async function pushAuthority(
  reader: Reader,
  name: RepositoryName,
  pullRequests: Iterable<KnownPullRequest>,
  rules: PushRules,
): Promise<PushAuthority> {
  const row = await catalogueRow(reader, name);
  const candidates: CandidateState[] = [];
  for (const state of await decidingStates(reader, name)) {
    if (!canDecide(state)) continue;
    const { id, created_at } = state.event;
    candidates.push({ id, created_at, refs: state.refs, governs: row?.governing === id });
  }
  const nostrEvents = new Map<EventId, NostrRefEvent>();
  for (const known of pullRequests) nostrEvents.set(known.event.id, nostrRefEvent(name, known));
  const reason = readOnlyReason(row, rules);
  return {
    ...(reason === undefined ? {} : { readOnlyReason: reason }),
    ...(rules.quota === undefined ? {} : { quota: rules.quota }),
    strict: rules.strict,
    mark: row?.mark ?? undefined,
    candidates,
    nostrEvents,
    unclaimed: rules.unclaimed,
  };
}

interface ContributorPushRules {
  /** Of events that are not known: what was pushed first. */
  readonly held: ReadonlyMap<EventId, Oid>;
  readonly unclaimed: UnclaimedAllowance;
  readonly quota: NonNullable<PushAuthority["quota"]>;
  /** Set when no push may be taken at all. */
  readonly closedReason: string | undefined;
}

/**
 * Under `/prs/` (grasp.md, GRASP-06): anyone may push to refs/nostr/<event id>; for an event that is known, its commit
 * only, and only where its signer and its `clone` tag say.
 */
export function contributorAuthority(
  { owner, identifier }: RepositoryName,
  known: Iterable<KnownPullRequest>,
  { held, unclaimed, quota, closedReason }: ContributorPushRules,
): PushAuthority {
  const nostrEvents = new Map<EventId, NostrRefEvent>();
  for (const [id, heldAt] of held) nostrEvents.set(id, { known: false, heldAt });
  for (const { event, contributor } of known) {
    const tip = pullRequestOf(event)?.tip;
    nostrEvents.set(event.id, {
      known: true,
      tip: isOid(tip) ? tip : undefined,
      addressesThisRepository: contributor?.owner === owner && contributor.identifier === identifier,
    });
  }
  return {
    ...(closedReason === undefined ? {} : { readOnlyReason: closedReason }),
    nostrRefsOnly: true,
    strict: false,
    mark: undefined,
    candidates: [],
    nostrEvents,
    unclaimed,
    quota,
  };
}
