// Addresses of replaceable things: `kind:pubkey:identifier`. The identifier may itself contain colons.

import { isAddressable, isReplaceable, maxKind, type NostrEvent, tagValue } from "./event.js";
import { isPubkey, type Pubkey } from "./ids.js";

export interface Address {
  readonly kind: number;
  readonly pubkey: Pubkey;
  readonly identifier: string;
}

export const addressText = (address: Address): string => `${address.kind}:${address.pubkey}:${address.identifier}`;

export function parseAddress(text: string): Address | undefined {
  const first = text.indexOf(":");
  const second = text.indexOf(":", first + 1);
  if (first < 1 || second < 0) return undefined;
  const kindText = text.slice(0, first);
  const pubkey = text.slice(first + 1, second);
  if (!/^(?:0|[1-9]\d{0,4})$/.test(kindText) || Number(kindText) > maxKind || !isPubkey(pubkey)) return undefined;
  return { kind: Number(kindText), pubkey, identifier: text.slice(second + 1) };
}

/** The address an event lives at, if it is replaceable or addressable. A missing `d` is the empty identifier. */
export function addressOf(event: Pick<NostrEvent, "kind" | "pubkey" | "tags">): Address | undefined {
  if (isAddressable(event.kind)) {
    return { kind: event.kind, pubkey: event.pubkey, identifier: tagValue(event, "d") ?? "" };
  }
  if (isReplaceable(event.kind)) return { kind: event.kind, pubkey: event.pubkey, identifier: "" };
  return undefined;
}
