// The relays an announcement lists: spec "Following our own relay" 5. Text of strangers goes in, normal forms come out.

import { normalRelayUrl, type RelayUrl, servicePart } from "../../net/url.js";
import type { Announcement } from "../../nostr/nip34.js";

export interface ListedRelay {
  readonly key: string;
  readonly url: RelayUrl;
  readonly host: string;
}

/** A clone URL of GRASP shape, `…/<npub>/<identifier>.git`: the same service is a relay at its base. */
const graspPath = /^(.*)\/npub1[02-9ac-hj-np-z]{58}\/[^/]+\.git\/?$/;

function relayOfClone(text: string): string | undefined {
  const scheme = text.slice(0, 8).toLowerCase();
  const rest = scheme.startsWith("https://") ? text.slice(8) : scheme.startsWith("http://") ? text.slice(7) : undefined;
  const base = rest === undefined ? undefined : graspPath.exec(rest)?.[1];
  return base ? `${scheme.startsWith("https") ? "wss" : "ws"}://${base}` : undefined;
}

export function listedRelay(text: string): ListedRelay | undefined {
  const url = normalRelayUrl(text);
  const key = url && servicePart(url);
  if (!url || !key) return undefined;
  return { key, url, host: new URL(url).hostname };
}

/** In order, each once, wss where a relay is listed both ways, without ourselves, at most `max`. */
export function relaysOf(
  announcement: Pick<Announcement, "relays" | "clone">,
  ownServices: readonly string[],
  max: number,
): ListedRelay[] {
  const found = new Map<string, ListedRelay>();
  const add = (text: string | undefined): void => {
    const relay = text === undefined ? undefined : listedRelay(text);
    if (!relay || ownServices.includes(relay.key)) return;
    const known = found.get(relay.key);
    if (known ? relay.url.startsWith("wss:") : found.size < max) found.set(relay.key, relay);
  };
  for (const text of announcement.relays) add(text);
  for (const text of announcement.clone) add(relayOfClone(text));
  return [...found.values()];
}
