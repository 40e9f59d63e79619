// An HTTP request signed by a Nostr key: the event of kind 27235 in its Authorization header (NIP-98), read and written.
// What such an event allows is decided by whoever reads it.

import type { Clock } from "../base/clock.js";
import { unixSeconds } from "../base/clock.js";
import { kinds, type NostrEvent, parseEvent } from "../nostr/event.js";
import { type RandomBytes, type SecretKey, signEvent } from "../nostr/keys.js";

/** How far the event's time may be from ours. */
export const signedForSeconds = 60;

/** Not verified; undefined when the header carries none. */
export function signedEventIn(authorization: string | undefined): NostrEvent | undefined {
  const encoded = /^Nostr +([A-Za-z0-9+/_-]+=*)$/i.exec(authorization ?? "")?.[1];
  if (encoded === undefined) return undefined;
  try {
    const parsed = parseEvent(JSON.parse(Buffer.from(encoded, "base64").toString("utf8")));
    return parsed.ok ? parsed.event : undefined;
  } catch {
    return undefined;
  }
}

export const isOfNow = (event: NostrEvent, clock: Clock): boolean =>
  Math.abs(event.created_at - unixSeconds(clock)) <= signedForSeconds;

/** GRASP-08: our own header for a repository at another server; `root` is its URL without query and trailing slash. */
export function repositoryAuthorization(key: SecretKey, root: string, clock: Clock, random: RandomBytes): string {
  const draft = {
    kind: kinds.httpAuth,
    created_at: unixSeconds(clock),
    tags: [
      ["u", root],
      ["method", "GET"],
    ],
    content: "",
  };
  return `Nostr ${Buffer.from(signEvent(key, draft, random).raw).toString("base64")}`;
}
