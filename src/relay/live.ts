// From the store's bell to the subscriptions: every commit is matched once and offered to whoever wants it.
// Knows nothing of sockets. A listener of the store must be quick and must not throw: offering is only a copy.

import type { VerifiedEvent } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import type { FeedEntry, Sequence, Store } from "../store/port.js";
import { SubscriptionIndex } from "./subscription-index.js";

/** A live event; its text is turned into bytes once, for the first subscriber. */
export interface LiveEvent {
  /** Ephemeral events have no place in the feed. */
  readonly seq: Sequence | undefined;
  readonly event: VerifiedEvent;
  readonly json: Buffer;
}

export interface LiveListener {
  offer(live: LiveEvent): void;
}

export class Live {
  readonly #store: Store;
  readonly #index = new SubscriptionIndex<LiveListener>();
  readonly #stop: () => void;
  #seen: Sequence;

  constructor(store: Store) {
    this.#store = store;
    this.#seen = store.position;
    this.#stop = store.onCommit((entries) => this.#committed(entries));
  }

  get subscriptions(): number {
    return this.#index.size;
  }

  /** Everything up to here was offered or could have been read; everything after it will be offered. */
  get position(): Sequence {
    return Math.max(this.#seen, this.#store.position);
  }

  add(listener: LiveListener, filters: readonly Filter[]): void {
    this.#index.add(listener, filters);
  }

  remove(listener: LiveListener): void {
    this.#index.remove(listener);
  }

  offerEphemeral(event: VerifiedEvent): void {
    this.#offer(undefined, event);
  }

  close(): void {
    this.#stop();
  }

  #committed(entries: readonly FeedEntry[]): void {
    for (const entry of entries) {
      if (entry.seq > this.#seen) this.#seen = entry.seq;
      if (entry.type === "stored") this.#offer(entry.seq, entry.event);
    }
  }

  #offer(seq: Sequence | undefined, event: VerifiedEvent): void {
    const listeners = this.#index.match(event);
    if (listeners.length === 0) return;
    const live = { seq, event, json: Buffer.from(event.raw) };
    for (const listener of listeners) listener.offer(live);
  }
}
