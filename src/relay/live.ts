// From the store's bell to the subscriptions: every commit is matched once and offered to whoever wants it.
// Knows nothing of sockets. A listener of the store must be quick and must not throw: offering is only a copy.

import type { VerifiedEvent } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import type { FeedEntry, Sequence, Store } from "../store/port.js";
import { eventFrame } from "./outbox.js";
import { SubscriptionIndex } from "./subscription-index.js";

/** Frames kept for subscriptions of the same name; clients of one make use the same few. */
const maxSharedFrames = 4;

/** A live event: turned into bytes once, and into a frame once for all subscriptions of one name. */
export class LiveEvent {
  readonly json: Buffer;
  readonly #frames = new Map<string, Buffer>();

  constructor(
    /** Ephemeral events have no place in the feed. */
    readonly seq: Sequence | undefined,
    event: VerifiedEvent,
  ) {
    this.json = Buffer.from(event.raw);
  }

  /** `prefix` is `eventPrefix(subscription)`. */
  frameFor(subscription: string, prefix: Buffer): Buffer {
    const shared = this.#frames.get(subscription);
    if (shared) return shared;
    const frame = eventFrame(prefix, this.json);
    if (this.#frames.size < maxSharedFrames) this.#frames.set(subscription, frame);
    return frame;
  }
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
    const live = new LiveEvent(seq, event);
    for (const listener of listeners) listener.offer(live);
  }
}
