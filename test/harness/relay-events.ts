// Signed events for tests.

import { createHash } from "node:crypto";
import { signSchnorr, xOnlyPointFromScalar } from "tiny-secp256k1";
import { eventId, type NostrEvent, type Pubkey, parseEvent } from "../../src/nostr/event.js";

export interface TestKey {
  readonly secret: Uint8Array;
  readonly pubkey: Pubkey;
}

/** The same name is always the same key. */
export function keyOf(name: string): TestKey {
  const secret = createHash("sha256").update(`test key ${name}`).digest();
  return { secret, pubkey: Buffer.from(xOnlyPointFromScalar(secret)).toString("hex") as Pubkey };
}

export interface EventWish {
  readonly kind?: number;
  readonly created_at?: number;
  readonly tags?: readonly (readonly string[])[];
  readonly content?: string;
}

export function sign(key: TestKey, wish: EventWish = {}): NostrEvent {
  const unsigned = { pubkey: key.pubkey, created_at: 1_700_000_000, kind: 1, tags: [], content: "", ...wish };
  const id = eventId(unsigned);
  const sig = Buffer.from(signSchnorr(Buffer.from(id, "hex"), key.secret)).toString("hex");
  const parsed = parseEvent({ ...unsigned, id, sig });
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.event;
}
