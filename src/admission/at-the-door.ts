// Rules that need only the event, its source, the clock, the settings and how full the disks are. They are judged before
// the signature, which costs fifty times more than all of them. Pure: facts in, refusal out. AUTH events and protected
// events (NIP-70) of clients are judged here, those of other sources in always-refused.ts, where the decision is recorded.

import type { Config } from "../config/config.js";
import { expirationOf, isProtected, type NostrEvent } from "../nostr/event.js";
import type { Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import { type Refusal, refuse } from "../nostr/refusals.js";
import type { Volume } from "../store/disk-space.js";
import { type RefusedVerdict, refused, type Source } from "./verdict.js";

/** How much of one event a client may send. */
export function refusedForSize(
  event: NostrEvent,
  { maxEventBytes, maxEventTags }: Pick<Config, "maxEventBytes" | "maxEventTags">,
): Refusal | undefined {
  if (isLongerThan(maxEventBytes, event.raw)) {
    return refuse("too-large", `an event may have at most ${maxEventBytes} bytes`);
  }
  if (event.tags.length > maxEventTags) return refuse("too-large", `an event may have at most ${maxEventTags} tags`);
  return undefined;
}

/** A character is one to three bytes of UTF-8: most texts need no counting. */
const isLongerThan = (bytes: number, text: string): boolean =>
  text.length > bytes || (text.length * 3 > bytes && Buffer.byteLength(text) > bytes);

export const expired = refuse("expired", "the event's expiration time has passed");

export function refusedForTime(event: NostrEvent, nowSeconds: number, maxFutureSecs: number): Refusal | undefined {
  if (event.created_at > nowSeconds + maxFutureSecs) {
    return refuse("from-the-future", "created_at is too far in the future: check your clock");
  }
  const expiration = expirationOf(event);
  return expiration !== undefined && expiration <= nowSeconds ? expired : undefined;
}

/** What only some may bring: nobody AUTH events, and protected events only their author, who authenticated here. */
export function refusedFromClient(
  event: NostrEvent,
  { authenticated }: { readonly authenticated: ReadonlySet<Pubkey> },
): RefusedVerdict | undefined {
  if (event.kind === kinds.auth) {
    return refused("auth-event", "not-relayed", "authentication events are for the AUTH message and are never stored");
  }
  if (!isProtected(event) || authenticated.has(event.pubkey)) return undefined;
  return authenticated.size > 0
    ? refused("protected", "not-allowed", "only its own author may publish a protected event")
    : refused("protected", "auth-required", "this event is protected: authenticate as its author and send it again");
}

/** The same for relays, imports and the server itself, none of whom can authenticate. */
export function refusedFromElsewhere(event: NostrEvent, source: Source, serverKey: Pubkey): RefusedVerdict | undefined {
  if (event.kind === kinds.auth) {
    return refused("auth-event", "not-relayed", "authentication events (22242) belong into an AUTH message");
  }
  if (!isProtected(event) || (source.type === "own" && event.pubkey === serverKey)) return undefined;
  return refused("protected", "not-allowed", "a protected event is taken only from its author");
}

/** They make room, and people must be able to take back what they said, however full it is. */
const makesRoom: ReadonlySet<number> = new Set([kinds.deletion, kinds.vanish]);
/** What git follows with directories and packs of its own. */
const growsGit: ReadonlySet<number> = new Set([
  kinds.announcement,
  kinds.state,
  kinds.pullRequest,
  kinds.pullRequestUpdate,
]);

/** What a nearly full disk refuses: everything from NGIT_DISK_EVENTS_MAX_PERCENT on, except what makes room. */
export function refusedForDisk(
  { kind }: Pick<NostrEvent, "kind">,
  used: Readonly<Record<Volume, number>>,
  maxPercent: number,
): Refusal | undefined {
  if (makesRoom.has(kind)) return undefined;
  const share = growsGit.has(kind) ? Math.max(used.git, used.relay) : used.relay;
  if (share * 100 < maxPercent) return undefined;
  return refuse("disk-full", "the server's disk is nearly full, only deletions are taken: try again later");
}
