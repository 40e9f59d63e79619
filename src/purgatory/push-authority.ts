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
  /** Of events that are not known: what was pushed first. */
  readonly held: ReadonlyMap<EventId, Oid>;
  readonly quota: PushAuthority["quota"];
  /** Set when no push may be taken at all: the disk is nearly full, or the repository is not wanted. */
  readonly closedReason: string | undefined;
}

function readOnlyReason(row: CatalogueRow | undefined, rules: PushRules): string | undefined {
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

/**
 * Under `/prs/` (grasp.md, GRASP-06) no state decides: anyone may push to refs/nostr/<event id>; for an event that is known
 * its commit only, where its signer and its `clone` tag say; for another the first commit holds.
 */
export async function pushAuthority(
  reader: Reader,
  name: RepositoryName,
  pullRequests: Iterable<KnownPullRequest>,
  rules: PushRules,
): Promise<PushAuthority> {
  const nostrRefsOnly = name.area === "prs";
  const row = await catalogueRow(reader, name);
  const candidates: CandidateState[] = [];
  for (const state of nostrRefsOnly ? [] : await decidingStates(reader, name)) {
    if (!canDecide(state)) continue;
    const { id, created_at } = state.event;
    candidates.push({ id, created_at, refs: state.refs, governs: row?.governing === id });
  }
  const nostrEvents = new Map<EventId, NostrRefEvent>();
  for (const [id, heldAt] of nostrRefsOnly ? rules.held : []) nostrEvents.set(id, { known: false, heldAt });
  for (const known of pullRequests) nostrEvents.set(known.event.id, nostrRefEvent(name, known));
  const reason = rules.closedReason ?? (nostrRefsOnly ? undefined : readOnlyReason(row, rules));
  return {
    ...(reason === undefined ? {} : { readOnlyReason: reason }),
    ...(rules.quota === undefined ? {} : { quota: rules.quota }),
    ...(nostrRefsOnly && { nostrRefsOnly }),
    strict: rules.strict && !nostrRefsOnly,
    mark: row?.mark ?? undefined,
    candidates,
    nostrEvents,
    unclaimed: rules.unclaimed,
  };
}
