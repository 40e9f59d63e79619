// Signed events for tests.

import { createHash } from "node:crypto";
import { pointFromScalar, xOnlyPointFromScalar } from "tiny-secp256k1";
import { eventId, type NostrEvent, type Pubkey, parseEvent } from "../../src/nostr/event.js";

export interface TestKey {
  readonly secret: Uint8Array;
  readonly pubkey: Pubkey;
}

/** The same name is always the same key. */
export function keyOf(name: string): TestKey {
  const known = keys.get(name);
  if (known) return known;
  const secret = createHash("sha256").update(`test key ${name}`).digest();
  const key = { secret, pubkey: Buffer.from(xOnlyPointFromScalar(secret)).toString("hex") as Pubkey };
  keys.set(name, key);
  return key;
}

const keys = new Map<string, TestKey>();

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const numberOf = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString("hex")}`);

/** A scalar whose point has an even y, as BIP-340 wants it, and the point's x. */
function evenScalar(secret: Uint8Array): [scalar: bigint, x: Uint8Array] {
  const point = pointFromScalar(secret, true);
  if (!point) throw new RangeError("no scalar");
  const scalar = numberOf(secret);
  return [point[0] === 2 ? scalar : order - scalar, point.subarray(1)];
}

/**
 * BIP-340 with the same nonce for every event of a key: as valid as any other signature, without a multiplication on the
 * curve for each of thousands of events. Whoever has two of them knows the key, which everybody does here.
 */
function signerOf(secret: Uint8Array): (id: string) => string {
  const [key, publicX] = evenScalar(secret);
  const [nonce, nonceX] = evenScalar(createHash("sha256").update("nonce").update(secret).digest());
  const tag = createHash("sha256").update("BIP0340/challenge").digest();
  const challenge = createHash("sha256").update(tag).update(tag).update(nonceX).update(publicX);
  const first = Buffer.from(nonceX).toString("hex");
  return (id) => {
    const hash = numberOf(challenge.copy().update(id, "hex").digest());
    return first + ((nonce + hash * key) % order).toString(16).padStart(64, "0");
  };
}

const signers = new Map<Pubkey, (id: string) => string>();

export interface EventWish {
  readonly kind?: number;
  readonly created_at?: number;
  readonly tags?: readonly (readonly string[])[];
  readonly content?: string;
}

export function sign(key: TestKey, wish: EventWish = {}): NostrEvent {
  const unsigned = { pubkey: key.pubkey, created_at: 1_700_000_000, kind: 1, tags: [], content: "", ...wish };
  const id = eventId(unsigned);
  const signer = signers.get(key.pubkey) ?? signerOf(key.secret);
  signers.set(key.pubkey, signer);
  const sig = signer(id);
  const parsed = parseEvent({ ...unsigned, id, sig });
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.event;
}
