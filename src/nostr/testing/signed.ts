// Signed events for tests: keys and nonces from a seed, so that a failure can be repeated.

import { createHash } from "node:crypto";
import type { NostrEvent } from "../event.js";
import { type EventDraft, type RandomBytes, SecretKey, signEvent } from "../keys.js";

/** Not random at all: SHA-256 of a seed and a counter. */
export function seededBytes(seed: string): RandomBytes {
  let count = 0;
  return (length) => {
    const blocks: Buffer[] = [];
    for (let size = 0; size < length; size += 32) {
      blocks.push(createHash("sha256").update(`${seed}/${count++}`).digest());
    }
    return Uint8Array.from(Buffer.concat(blocks).subarray(0, length));
  };
}

export const keyFrom = (seed: string): SecretKey => SecretKey.generate(seededBytes(seed));

export function signedEvent(draft: Partial<EventDraft> = {}, key: SecretKey = keyFrom("somebody")): NostrEvent {
  const full = { kind: 1, created_at: 1_700_000_000, tags: [], content: "", ...draft };
  return signEvent(key, full, seededBytes("nonce"));
}
