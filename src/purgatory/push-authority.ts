// Who may push what right now, read from the store for the git room's decision (git-http.md, "Push" 3 and 4).

import { type CatalogueRow, catalogueRow } from "../admission/catalogue.js";
import type { RepositoryName } from "../admission/names.js";
import { repositoryAddress } from "../admission/names.js";
import { waitingEntry, waitingEvent } from "../admission/waiting.js";
import type { CandidateState, NostrRefEvent, PushAuthority, PushCommand, UnclaimedAllowance } from "../git/types.js";
import { type EventId, isEventId, isOid } from "../nostr/ids.js";
import { pullRequestOf } from "../nostr/nip34.js";
import type { Reader } from "../store/port.js";
import { canDecide, decidingStates } from "./deciding-states.js";

export interface PushRules {
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

async function nostrRefEvent(reader: Reader, name: RepositoryName, id: EventId): Promise<NostrRefEvent> {
  // In this order: a release between the two looks must not make a known event unknown.
  const waiting = await waitingEntry(reader, id);
  const stored = await reader.event(id);
  const event = stored?.event ?? (waiting && waitingEvent(waiting));
  if (!event) return { known: false };
  const pullRequest = pullRequestOf(event);
  const address = repositoryAddress(name);
  const addressed =
    pullRequest?.repositories.some(
      ({ pubkey, identifier }) => pubkey === name.owner && identifier === name.identifier,
    ) ?? false;
  const tip = pullRequest && isOid(pullRequest.tip) ? pullRequest.tip : undefined;
  return { known: true, tip, addressesThisRepository: addressed || (waiting?.repositories.includes(address) ?? false) };
}

export async function pushAuthority(
  reader: Reader,
  name: RepositoryName,
  commands: readonly PushCommand[],
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
  for (const { ref } of commands) {
    const id = ref.startsWith("refs/nostr/") ? ref.slice("refs/nostr/".length) : "";
    if (isEventId(id)) nostrEvents.set(id, await nostrRefEvent(reader, name, id));
  }
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
