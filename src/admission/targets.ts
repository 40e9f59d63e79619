// What an event points at: ids (`e`, `E`, `q`) and addresses (`a`, `A`, `q`), each once. Reads tags, judges nothing.

import { type Address, addressText, parseAddress } from "../nostr/address.js";
import type { NostrEvent } from "../nostr/event.js";
import { type EventId, isEventId } from "../nostr/ids.js";

export interface Targets {
  readonly ids: readonly EventId[];
  readonly addresses: readonly Address[];
}

const idTags = new Set(["e", "E", "q"]);
const addressTags = new Set(["a", "A", "q"]);

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
