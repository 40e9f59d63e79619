// From the store's bell to the subscriptions: every commit is matched once and offered to whoever wants it.
// Knows nothing of sockets. A listener of the store must be quick and must not throw: offering is only a copy, and what
// takes longer than a moment goes on in the next turn of the event loop (threats.md rows 35 and 38).

import type { ByteBudget } from "../base/budget/bytes.js";
import type { VerifiedEvent } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import type { FeedEntry, Sequence, Store } from "../store/port.js";
import { eventFrame } from "./outbox.js";
import { SharedText } from "./shared-text.js";
import { SubscriptionIndex } from "./subscription-index.js";

/** Frames kept for subscriptions of the same name; clients of one make use the same few. */
const maxSharedFrames = 4;
/** A text of this size is worth the pieces it takes to share it. */
const sharedTextBytes = 4 * 1024;
/** How long offering may hold the event loop at a time. */
const sliceMs = 10;
const offersBetweenLooks = 128;
/** What waits to be offered is in memory: beyond this nothing else is done before it is. */
const maxWaitingEvents = 2_000;
const maxWaitingChars = 16 * 2 ** 20;

/** A live event: turned into bytes once, and, unless it is large, into a frame once for all subscriptions of one name. */
export class LiveEvent {
  readonly json: Buffer;
  /** A large event goes out as this. */
  readonly shared: SharedText | undefined;
  readonly #frames = new Map<string, Buffer>();

  constructor(
    /** Ephemeral events have no place in the feed. */
    readonly seq: Sequence | undefined,
    event: VerifiedEvent,
    outgoing: ByteBudget,
  ) {
    this.json = Buffer.from(event.raw);
    this.shared = this.json.length < sharedTextBytes ? undefined : new SharedText(this.json, outgoing);
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

interface Waiting {
  readonly seq: Sequence | undefined;
  readonly event: VerifiedEvent;
}

/** An event on its round. */
interface Round {
  readonly live: LiveEvent;
  readonly listeners: readonly LiveListener[];
  at: number;
}

export class Live {
  readonly #store: Store;
  readonly #outgoing: ByteBudget;
  readonly #index = new SubscriptionIndex<LiveListener>();
  readonly #stop: () => void;
  #seen: Sequence;
  #waiting: Waiting[] = [];
  #waitingChars = 0;
  #round: Round | undefined;
  #isScheduled = false;

  constructor(store: Store, outgoing: ByteBudget) {
    this.#store = store;
    this.#outgoing = outgoing;
    this.#seen = store.position;
    this.#stop = store.onCommit((entries) => this.#committed(entries));
  }

  get subscriptions(): number {
    return this.#index.size;
  }

  /**
   * Everything up to here was offered or could have been read; everything after it will be offered. What is still on its
   * way to the listeners lies before it: who has read up to here knows it by its place in the feed.
   */
  get position(): Sequence {
    return Math.max(this.#seen, this.#store.position);
  }

  add(listener: LiveListener, filters: readonly Filter[]): void {
    this.#index.add(listener, filters);
  }

  remove(listener: LiveListener): void {
    this.#index.remove(listener);
  }

  eventOf(seq: Sequence | undefined, event: VerifiedEvent): LiveEvent {
    return new LiveEvent(seq, event, this.#outgoing);
  }

  offerEphemeral(event: VerifiedEvent): void {
    this.#add(undefined, event);
    this.#begin();
  }

  close(): void {
    this.#stop();
  }

  #committed(entries: readonly FeedEntry[]): void {
    for (const entry of entries) {
      if (entry.seq > this.#seen) this.#seen = entry.seq;
      if (entry.type === "stored") this.#add(entry.seq, entry.event);
    }
    this.#begin();
  }

  #add(seq: Sequence | undefined, event: VerifiedEvent): void {
    if (this.#index.size === 0) return;
    this.#waiting.push({ seq, event });
    this.#waitingChars += event.raw.length;
  }

  #begin(): void {
    const isTooMuch = this.#waiting.length > maxWaitingEvents || this.#waitingChars > maxWaitingChars;
    if (isTooMuch) this.#run(Number.POSITIVE_INFINITY);
    else if (!this.#isScheduled) this.#run(performance.now() + sliceMs);
  }

  #run(untilMs: number): void {
    let at = 0;
    for (;;) {
      if (this.#round && !goOn(this.#round, untilMs)) break;
      this.#round = undefined;
      const next = this.#waiting[at];
      if (!next || (at > 0 && performance.now() >= untilMs)) break;
      at++;
      this.#waitingChars -= next.event.raw.length;
      const listeners = this.#index.match(next.event);
      if (listeners.length > 0) this.#round = { live: this.eventOf(next.seq, next.event), listeners, at: 0 };
    }
    this.#waiting.splice(0, at);
    if ((!this.#round && this.#waiting.length === 0) || this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#run(performance.now() + sliceMs);
    });
  }
}

/** True when everybody was offered the event; false when the time was over before. */
function goOn(round: Round, untilMs: number): boolean {
  const { live, listeners } = round;
  while (round.at < listeners.length) {
    const end = Math.min(listeners.length, round.at + offersBetweenLooks);
    for (; round.at < end; round.at++) listeners[round.at]?.offer(live);
    if (round.at < listeners.length && performance.now() >= untilMs) return false;
  }
  return true;
}
