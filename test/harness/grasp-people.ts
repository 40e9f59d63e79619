// People with keys, and the events they sign (nostr-tools, as real clients do).

import { finalizeEvent, generateSecretKey, getPublicKey, nip19, type VerifiedEvent } from "nostr-tools";

export type { VerifiedEvent as SignedEvent } from "nostr-tools";

/** Whoever signs: each event is newer than the one before, because within a second the lower id would win. */
let lastSecond = 0;

export class Person {
  readonly #secret = generateSecretKey();
  readonly pubkey = getPublicKey(this.#secret);
  readonly npub = nip19.npubEncode(this.pubkey);
  readonly #startSeconds: number;

  /** The first event is `ageSeconds` old, so that many can follow before they are in the future. */
  constructor(nowSeconds = Math.floor(Date.now() / 1000), ageSeconds = 6_000) {
    this.#startSeconds = nowSeconds - ageSeconds;
    // An earlier story of this process had a clock of its own, which it moved ahead.
    if (lastSecond > nowSeconds) lastSecond = 0;
  }

  #nextSecond(): number {
    lastSecond = Math.max(lastSecond + 1, this.#startSeconds);
    return lastSecond;
  }

  sign(
    kind: number,
    tags: readonly (readonly string[])[],
    content = "",
    at: number = this.#nextSecond(),
  ): VerifiedEvent {
    const draft = { kind, created_at: at, tags: tags.map((tag) => [...tag]), content };
    return finalizeEvent(draft, this.#secret);
  }

  coordinate(identifier: string): string {
    return `30617:${this.pubkey}:${identifier}`;
  }
}
