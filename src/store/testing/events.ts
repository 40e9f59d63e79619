// Events for tests of the store: right shape and id, no real signature (the store never looks at it).

import { eventId, type Pubkey, type Tag, type VerifiedEvent } from "../../nostr/event.js";

export const pubkeyOf = (number: number): Pubkey => number.toString(16).padStart(64, "a") as Pubkey;

export interface EventDraft {
  readonly author?: number;
  readonly kind?: number;
  readonly at?: number;
  readonly tags?: readonly Tag[];
  readonly content?: string;
}

export function eventOf({ author = 1, kind = 1, at = 1_000, tags = [], content = "" }: EventDraft): VerifiedEvent {
  const unsigned = { pubkey: pubkeyOf(author), created_at: at, kind, tags, content };
  const id = eventId(unsigned);
  const sig = "0".repeat(128);
  const raw = `{"id":"${id}","pubkey":"${unsigned.pubkey}","created_at":${at},"kind":${kind},"tags":${JSON.stringify(tags)},"content":${JSON.stringify(content)},"sig":"${sig}"}`;
  return { id, ...unsigned, sig, raw } as unknown as VerifiedEvent;
}
