// People with keys, and the events they sign (nostr-tools, as real clients do).

import { finalizeEvent, generateSecretKey, getPublicKey, nip19, type VerifiedEvent } from "nostr-tools";

export type { VerifiedEvent as SignedEvent } from "nostr-tools";

export class Person {
  readonly #secret = generateSecretKey();
  readonly pubkey = getPublicKey(this.#secret);
  readonly npub = nip19.npubEncode(this.pubkey);
  /** Each event is newer than the one before. */
  #clock: number;

  constructor(startSeconds = Math.floor(Date.now() / 1000) - 600) {
    this.#clock = startSeconds;
  }

  sign(kind: number, tags: readonly (readonly string[])[], content = "", at: number = this.#clock++): VerifiedEvent {
    const draft = { kind, created_at: at, tags: tags.map((tag) => [...tag]), content };
    return finalizeEvent(draft, this.#secret);
  }

  coordinate(identifier: string): string {
    return `30617:${this.pubkey}:${identifier}`;
  }
}
