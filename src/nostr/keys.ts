// Secret keys and what is signed with them: the server's own events and its answers to AUTH. Randomness is an
// argument. A secret key never shows its bytes to a log, an error or JSON.

import { createECDH } from "node:crypto";
import { eventId, type NostrEvent, type Pubkey, parseEvent, type Tag } from "./event.js";
import { wasmCurve } from "./wasm-curve.js";

/** Cryptographically strong random bytes: `node:crypto`'s randomBytes in the server, a seed in tests. */
export type RandomBytes = (length: number) => Uint8Array;

const hex64 = /^[0-9a-f]{64}$/;

export class SecretKey {
  readonly #bytes: Uint8Array;
  readonly pubkey: Pubkey;

  private constructor(bytes: Uint8Array, pubkey: Pubkey) {
    this.#bytes = bytes;
    this.pubkey = pubkey;
  }

  /** Undefined when the bytes are no key: not 32, zero, or not below the group's order. */
  static fromBytes(bytes: Uint8Array): SecretKey | undefined {
    const copy = Uint8Array.from(bytes);
    const pubkey = copy.length === 32 ? pubkeyOf(copy) : undefined;
    return pubkey && new SecretKey(copy, pubkey);
  }

  static fromHex(text: string): SecretKey | undefined {
    return hex64.test(text) ? SecretKey.fromBytes(Buffer.from(text, "hex")) : undefined;
  }

  static generate(random: RandomBytes): SecretKey {
    // A random number is no key once in 2^128 draws; a source that gives none in ten is broken.
    for (let draw = 0; draw < 10; draw++) {
      const key = SecretKey.fromBytes(random(32));
      if (key) return key;
    }
    throw new Error("the source of randomness gives no usable key");
  }

  /** BIP-340 signature over a 32-byte message, as 128 hex digits. */
  sign(message: Uint8Array, random: RandomBytes): string {
    return Buffer.from(wasmCurve().signSchnorr(message, this.#bytes, random(32))).toString("hex");
  }

  /** A copy of the secret itself: for the key file and nsec only. */
  exportBytes(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }

  toString(): string {
    return `secret key of ${this.pubkey}`;
  }

  toJSON(): string {
    return this.toString();
  }
}

/** By Node's own library, where that knows the curve: a start need not compile another. Undefined: the bytes are no key. */
function pubkeyOf(bytes: Uint8Array): Pubkey | undefined {
  const curve = curveOfNode();
  if (!curve) {
    const { isPrivate, xOnlyPointFromScalar } = wasmCurve();
    return isPrivate(bytes) ? (Buffer.from(xOnlyPointFromScalar(bytes)).toString("hex") as Pubkey) : undefined;
  }
  try {
    curve.setPrivateKey(bytes);
  } catch {
    return undefined;
  }
  // Without the byte that says which of its two points it is.
  return curve.getPublicKey("hex", "compressed").slice(2) as Pubkey;
}

function curveOfNode(): ReturnType<typeof createECDH> | undefined {
  try {
    return createECDH("secp256k1");
  } catch {
    return undefined;
  }
}

export interface EventDraft {
  readonly kind: number;
  readonly created_at: number;
  readonly tags: readonly Tag[];
  readonly content: string;
}

/** A complete event by this key. It enters the store through intake like anybody's. A draft of bad shape is a bug. */
export function signEvent(key: SecretKey, draft: EventDraft, random: RandomBytes): NostrEvent {
  const { kind, created_at, tags, content } = draft;
  const unsigned = { pubkey: key.pubkey, created_at, kind, tags, content };
  const id = eventId(unsigned);
  const parsed = parseEvent({ ...unsigned, id, sig: key.sign(Buffer.from(id, "hex"), random) });
  if (!parsed.ok) throw new Error(`an event to be signed is not well formed: ${parsed.message}`);
  return parsed.event;
}
