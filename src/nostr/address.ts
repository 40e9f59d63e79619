// Addresses of replaceable things: `kind:pubkey:identifier`. The identifier may itself contain colons. And what an event
// points at by its tags: ids and addresses.

import { isAddressable, isReplaceable, maxKind, type NostrEvent, tagValue } from "./event.js";
import { type EventId, isEventId, isPubkey, type Pubkey } from "./ids.js";

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

export interface Targets {
  readonly ids: readonly EventId[];
  readonly addresses: readonly Address[];
}

const idTags = new Set(["e", "E", "q"]);
const addressTags = new Set(["a", "A", "q"]);

/** What an event points at: ids (`e`, `E`, `q`) and addresses (`a`, `A`, `q`), each once. */
export function targetsOf(event: Pick<NostrEvent, "tags">, max: number): Targets {
  const ids = new Set<EventId>();
  const addresses = new Map<string, Address>();
  for (const [name, value] of event.tags) {
    if (name === undefined || value === undefined) continue;
    if (ids.size + addresses.size >= max) break;
    if (idTags.has(name) && isEventId(value)) {
      ids.add(value);
    } else if (addressTags.has(name)) {
      const address = parseAddress(value);
      if (address) addresses.set(addressText(address), address);
    }
  }
  return { ids: [...ids], addresses: [...addresses.values()] };
}
