// What holds for every event before the rule of its kind: kinds the operator refuses, bans, the event blacklist, kinds that are never taken,
// protected events, and the author's own deletions. Rule 1 of relay.md; no later rule overrides one of these.

import type { AdmissionLists } from "../catalogue/bans-and-lists.js";
import { banOf } from "../catalogue/bans-and-lists.js";
import { addressOf, isProtected, type VerifiedEvent } from "../nostr/event.js";
import { kinds } from "../nostr/kinds.js";
import type { AdmissionSettings } from "./settings.js";
import type { AdmissionContext, RefusedVerdict, Source } from "./verdict.js";
import { refused } from "./verdict.js";

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
  if (event.kind === kinds.auth) {
    return refused("auth-event", "not-relayed", "authentication events (22242) belong into an AUTH message");
  }
  if (isProtected(event)) {
    const problem = protectedRefusal(event, source, settings);
    if (problem) return problem;
  }
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

/** NIP-70: taken only from its own author, who proved on this connection to be that author. */
function protectedRefusal(
  event: VerifiedEvent,
  source: Source,
  settings: AdmissionSettings,
): RefusedVerdict | undefined {
  if (source.type === "own" && event.pubkey === settings.serverKey) return undefined;
  if (source.type !== "client") {
    return refused("protected", "not-allowed", "a protected event is taken only from its author");
  }
  if (source.authenticated.has(event.pubkey)) return undefined;
  return refused("protected", "auth-required", "this event is protected: its author must authenticate to publish it");
}
