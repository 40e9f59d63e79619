// The states that may decide in one repository: by members of its owner's directed set, stored or waiting.

import { maintainersOf } from "../catalogue/maintainers.js";
import type { RepositoryName } from "../catalogue/repositories.js";
import { type WaitingEntry, waitingEntries, waitingEvent, waitingKeys } from "../catalogue/waiting.js";
import { compareNewestFirst, type VerifiedEvent } from "../nostr/event.js";
import { kinds } from "../nostr/kinds.js";
import { stateOf } from "../nostr/nip34.js";
import type { Reader } from "../store/port.js";
import { type WantedRefs, wantedRefs } from "./alignment.js";

export interface DecidingState extends WantedRefs {
  readonly event: VerifiedEvent;
  readonly headBranch: string | undefined;
  /** Set while it waits. */
  readonly entry: WaitingEntry | undefined;
}

// More than an author may have waiting, so that a change of that cap loses nothing.
const maxWaitingPerMember = 40;

function decidingState(event: VerifiedEvent, entry: WaitingEntry | undefined): DecidingState | undefined {
  const state = stateOf(event);
  return state && { event, headBranch: state.headBranch, entry, ...wantedRefs(state) };
}

/** Newest first (NIP-01 order), empty ones included. */
export async function decidingStates(reader: Reader, name: RepositoryName): Promise<DecidingState[]> {
  const { identifier } = name;
  const found: DecidingState[] = [];
  for (const member of await maintainersOf(reader, name)) {
    const address = { kind: kinds.state, pubkey: member, identifier };
    // Waiting ones first: a release between the two looks must not hide a state from both.
    const waiting = await waitingEntries(reader, waitingKeys.address(address), maxWaitingPerMember);
    const stored = await reader.latest(address);
    const candidates = [
      stored && decidingState(stored.event, undefined),
      ...waiting
        .filter((entry) => entry.id !== stored?.event.id)
        .map((entry) => decidingState(waitingEvent(entry), entry)),
    ];
    for (const state of candidates) if (state) found.push(state);
  }
  return found.sort((a, b) => compareNewestFirst(a.event, b.event));
}

/** Names at least one branch or tag, and nothing git could never hold: only such a state moves refs. */
export const canDecide = (state: DecidingState): boolean => state.wellFormed && state.refs.size > 0;
