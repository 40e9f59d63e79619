// What holds for every event before the rule of its kind: kinds the operator refuses, bans, the event blacklist, AUTH
// events and protected events, and the author's own deletions. Rule 1 of relay.md; no later rule overrides one of these.

import { type AdmissionLists, banOf } from "../catalogue/bans-and-lists.js";
import { addressOf, type VerifiedEvent } from "../nostr/event.js";
import { kinds } from "../nostr/kinds.js";
import { refusedFromElsewhere } from "./at-the-door.js";
import type { AdmissionSettings } from "./settings.js";
import { type AdmissionContext, type RefusedVerdict, refused } from "./verdict.js";

export async function alwaysRefused(
  event: VerifiedEvent,
  { reader, source }: AdmissionContext,
  settings: AdmissionSettings,
): Promise<RefusedVerdict | undefined> {
  if (settings.refusedKinds().has(event.kind)) {
    return refused("refused-kind", "not-relayed", `events of kind ${event.kind} are not taken here`);
  }
  const ban = await banOf(reader, event);
  if (ban === "author") return refused("ban", "author-blocked", "this key is not wanted here");
  if (ban === "event") return refused("ban", "event-blocked", "this event is not wanted here");
  if (isOnEventBlacklist(event, settings.lists())) {
    return refused("event-blacklist", "author-blocked", "this key is not wanted here");
  }
  // A client's were judged at the door.
  const bearer = source.type === "client" ? undefined : refusedFromElsewhere(event, source, settings.serverKey);
  if (bearer) return bearer;
  const deletion = await reader.deletionOf(event);
  if (deletion === undefined) return undefined;
  const request = await reader.event(deletion);
  return request?.event.kind === kinds.vanish
    ? refused("deleted-by-author", "vanished", "its author has asked to vanish from this server", { request: deletion })
    : refused("deleted-by-author", "deleted", "its author has asked for this event to be deleted", {
        request: deletion,
      });
}

function isOnEventBlacklist(event: VerifiedEvent, { eventBlacklist }: AdmissionLists): boolean {
  if (eventBlacklist.size === 0) return false;
  if (eventBlacklist.hasKey(event.pubkey)) return true;
  const address = addressOf(event);
  return address !== undefined && eventBlacklist.has({ owner: address.pubkey, identifier: address.identifier });
}
