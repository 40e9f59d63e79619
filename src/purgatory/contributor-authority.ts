// Who may push what under `/prs/` right now (grasp.md, GRASP-06; git-http.md, "Push" 4): anyone, to refs/nostr/<event id>;
// for an event that is known, its commit only, and only where its signer and its `clone` tag say.

import type { RepositoryName } from "../catalogue/repositories.js";
import type { NostrRefEvent, PushAuthority, UnclaimedAllowance } from "../git/push-types.js";
import { type EventId, isOid, type Oid } from "../nostr/ids.js";
import { pullRequestOf } from "../nostr/nip34.js";
import type { KnownPullRequest } from "./pull-requests.js";

export interface ContributorPushRules {
  /** Of events that are not known: what was pushed first. */
  readonly held: ReadonlyMap<EventId, Oid>;
  readonly unclaimed: UnclaimedAllowance;
  readonly quota: NonNullable<PushAuthority["quota"]>;
  /** Set when no push may be taken at all. */
  readonly closedReason: string | undefined;
}

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
