// What deletions (NIP-09) and vanish requests (NIP-62) bind, also for events that arrive later. Every mark is filed
// under the author of the request: a stranger's request can never be found when an event is looked up
// (threats.md 22). Marks stay when the request itself is removed.

import { createHash } from "node:crypto";
import {
  type Address,
  addressOf,
  addressText,
  type EventId,
  isAddressable,
  isEventId,
  isReplaceable,
  kinds,
  type NostrEvent,
  type Pubkey,
  parseAddress,
} from "../../nostr/event.js";

/** Targets of one request beyond this many are not looked at. */
export const maxDeletionTargets = 1_000;

/** A mark binds events up to `until`; a mark by id binds whatever the time. */
export interface DeletionMark {
  readonly by: EventId;
  readonly until?: number;
}

/** Addresses may be longer than keys. */
const digest = (text: string): string => createHash("sha256").update(text).digest("hex");

export const idMarkKey = (pubkey: Pubkey, id: EventId): string => `${pubkey}e${id}`;
export const addressMarkKey = (address: Address): string => `${address.pubkey}a${digest(addressText(address))}`;
export const vanishMarkKey = (pubkey: Pubkey): string => `${pubkey}v`;

/** Requests themselves can only vanish: a deletion of a deletion, or of a vanish request, has no effect. */
export const isDeletable = (kind: number): boolean => kind !== kinds.deletion && kind !== kinds.vanish;

interface DeletionTargets {
  readonly ids: readonly EventId[];
  readonly addresses: readonly Address[];
}

export function deletionTargets(event: NostrEvent): DeletionTargets {
  const ids = new Set<EventId>();
  const addresses = new Map<string, Address>();
  for (const [name, value] of event.tags) {
    if (ids.size + addresses.size === maxDeletionTargets) break;
    if (name === "e" && isEventId(value)) ids.add(value);
    else if (name === "a" && value !== undefined) {
      const address = parseAddress(value);
      if (address?.pubkey !== event.pubkey) continue;
      if (isAddressable(address.kind)) addresses.set(value, address);
      else if (isReplaceable(address.kind)) addresses.set(value, { ...address, identifier: "" });
    }
  }
  return { ids: [...ids], addresses: [...addresses.values()] };
}

/** The request that covers an event, if any. `mark` looks a key up. */
export function deletionCovering(
  event: NostrEvent,
  mark: (key: string) => DeletionMark | undefined,
): EventId | undefined {
  const covers = (found: DeletionMark | undefined): found is DeletionMark =>
    found !== undefined && (found.until === undefined || event.created_at <= found.until);
  const vanished = mark(vanishMarkKey(event.pubkey));
  // A vanish request is not covered by itself.
  if (covers(vanished) && vanished.by !== event.id) return vanished.by;
  if (!isDeletable(event.kind)) return undefined;
  const byId = mark(idMarkKey(event.pubkey, event.id));
  if (covers(byId)) return byId.by;
  const address = addressOf(event);
  const byAddress = address && mark(addressMarkKey(address));
  return covers(byAddress) ? byAddress.by : undefined;
}

/** Removing one costs about fifty microseconds: a step does not hold others up. */
export const vanishedAtOnce = 200;
