// People with keys, and the events they sign: as nostr-tools makes them (relay/clients.test.ts), in a tenth of the time.

import { createHash, randomBytes } from "node:crypto";
import type { VerifiedEvent } from "nostr-tools";
import { signSchnorr, xOnlyPointFromScalar } from "tiny-secp256k1";
import type { Pubkey } from "../../src/nostr/event.js";
import { npubOf } from "../../src/nostr/nip19.js";

export type { VerifiedEvent as SignedEvent } from "nostr-tools";

/** Whoever signs: each event is newer than the one before, because within a second the lower id would win. */
let lastSecond = 0;

export class Person {
  readonly #secret = randomBytes(32);
  readonly pubkey: string = Buffer.from(xOnlyPointFromScalar(this.#secret)).toString("hex");
  readonly npub = npubOf(this.pubkey as Pubkey);
  readonly #startSeconds: number;
  readonly #nowSeconds: number;

  /** The first event is `ageSeconds` old, so that many can follow before they are in the future. */
  constructor(nowSeconds = Math.floor(Date.now() / 1000), ageSeconds = 6_000) {
    this.#startSeconds = nowSeconds - ageSeconds;
    this.#nowSeconds = nowSeconds;
  }

  #nextSecond(): number {
    // An earlier story of this process had a clock of its own, which it moved ahead.
    if (lastSecond > this.#nowSeconds) lastSecond = 0;
    lastSecond = Math.max(lastSecond + 1, this.#startSeconds);
    return lastSecond;
  }

  sign(
    kind: number,
    tags: readonly (readonly string[])[],
    content = "",
    at: number = this.#nextSecond(),
  ): VerifiedEvent {
    const draft = { kind, created_at: at, tags: tags.map((tag) => [...tag]), content, pubkey: this.pubkey };
    const hash = createHash("sha256")
      .update(JSON.stringify([0, draft.pubkey, at, kind, draft.tags, content]))
      .digest();
    const sig = Buffer.from(signSchnorr(hash, this.#secret, randomBytes(32))).toString("hex");
    return { ...draft, id: hash.toString("hex"), sig } as VerifiedEvent;
  }

  coordinate(identifier: string): string {
    return `30617:${this.pubkey}:${identifier}`;
  }
}
