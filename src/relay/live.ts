// From the store's bell to the subscriptions: every commit is matched once and offered to whoever wants it.
// Knows nothing of sockets. A listener of the store must be quick and must not throw: offering is only a copy, and what
// takes longer than a moment goes on in the next turn of the event loop (threats.md rows 35 and 38).

import type { ByteBudget } from "../base/budget/bytes.js";
import { isPrivateKind, type NostrEvent, type VerifiedEvent } from "../nostr/event.js";
import { type Filter, type Matcher, matcherOf, matchesNothing } from "../nostr/filter.js";
import type { Commit, Sequence, Store } from "../store/port.js";
import { valuesOf } from "./messages.js";
import { eventFrame } from "./outbox.js";
import { SharedText } from "./shared-text.js";

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

/** Called with each event that a subscription wants. */
type Offer = (live: LiveEvent) => void;

interface Waiting {
  readonly seq: Sequence | undefined;
  readonly event: VerifiedEvent;
}

/** An event on its round. */
interface Round {
  readonly live: LiveEvent;
  readonly listeners: readonly Offer[];
  at: number;
}

export class Live {
  readonly #store: Store;
  readonly #outgoing: ByteBudget;
  readonly #index = new SubscriptionIndex<Offer>();
  readonly #stop: () => void;
  #seen: Sequence;
  #waiting: Waiting[] = [];
  #waitingChars = 0;
  #round: Round | undefined;
  #isScheduled = false;
  #isPrivateHere = true;
  #hasPrivateCome = false;

  constructor(store: Store, outgoing: ByteBudget) {
    this.#store = store;
    this.#outgoing = outgoing;
    this.#seen = store.position;
    this.#stop = store.onCommit((commit) => this.#committed(commit));
  }

  get subscriptions(): number {
    return this.#index.size;
  }

  /** Most servers hold no private events: then questions need not ask who reads. Yes, until the store has counted them. */
  get isPrivateHere(): boolean {
    return this.#isPrivateHere;
  }

  privateCounted(count: number): void {
    this.#isPrivateHere = this.#hasPrivateCome || count > 0;
  }

  /**
   * Everything up to here was offered or could have been read; everything after it will be offered. What is still on its
   * way to the listeners lies before it: who has read up to here knows it by its place in the feed.
   */
  get position(): Sequence {
    return Math.max(this.#seen, this.#store.position);
  }

  add(listener: Offer, filters: readonly Filter[]): void {
    this.#index.add(listener, filters);
  }

  remove(listener: Offer): void {
    this.#index.remove(listener);
  }

  eventOf(seq: Sequence | undefined, event: VerifiedEvent): LiveEvent {
    return new LiveEvent(seq, event, this.#outgoing);
  }

  close(): void {
    this.#stop();
  }

  #committed({ entries, passing }: Commit): void {
    for (const entry of entries) {
      if (entry.seq > this.#seen) this.#seen = entry.seq;
      if (entry.type !== "stored") continue;
      if (isPrivateKind(entry.event.kind)) this.#isPrivateHere = this.#hasPrivateCome = true;
      this.#add(entry.seq, entry.event);
    }
    for (const event of passing) this.#add(undefined, event);
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
    for (; round.at < end; round.at++) listeners[round.at]?.(live);
    if (round.at < listeners.length && performance.now() >= untilMs) return false;
  }
  return true;
}

/** One owner's filters; `seenIn` is the last match it was found in, so that it is found once. */
interface Place<Owner> {
  readonly owner: Owner;
  filters: readonly Filter[];
  readonly values: number;
  /** Undefined until the next event comes: most questions are closed before. */
  filed: Filed<Owner>[] | undefined;
  seenIn: number;
  /** Its owner has left: what is still filed of it finds nobody. */
  isGone: boolean;
}

interface Filed<Owner> {
  readonly place: Place<Owner>;
  readonly filter: Filter;
  /** The last match it was looked at for: an event may lead to it by thousands of its tags. */
  lookedAtIn: number;
  /** Looked at before the matcher is: most candidates that do not match fail here, at the price of one look. */
  readonly kinds: readonly number[] | undefined;
  /** What is left to see when the values it is filed under led here. Made for the first event that comes: most never see one. */
  matches: Matcher | undefined;
}

const fewKinds = 8;
/** Filing and taking out hold the event loop for no more values than these at a time. */
const valuesATurn = 5_000;
const placesATurn = 1_000;

/** Filters filed under one value; `visitedIn` is the last match that came here: an event may have a tag thousands of times. */
class Crowd<Owner> extends Set<Filed<Owner>> {
  visitedIn = 0;
}

/** Most values have one filter: a crowd is made only for the second. */
type Bucket<Key, Owner> = Map<Key, Filed<Owner> | Crowd<Owner>>;

/** Rarely shared by two events first. Other tag names come after these, before authors. */
const selectiveTags = ["e", "E", "q", "a", "A", "d", "r"];

/**
 * Which live subscriptions want an event (spec/relay.md "Fan-out"). Each filter is filed under the values of its most
 * selective field only; an event looks up its own values and the few filters found there are then really matched. Work
 * follows the subscriptions that match, not all of them.
 */
export class SubscriptionIndex<Owner extends object> {
  readonly #byOwner = new Map<Owner, Place<Owner>>();
  readonly #byId: Bucket<string, Owner> = new Map();
  readonly #byTag = new Map<string, Bucket<string, Owner>>();
  readonly #byAuthor: Bucket<string, Owner> = new Map();
  readonly #byKind: Bucket<number, Owner> = new Map();
  readonly #everything = new Crowd<Owner>();
  #matches = 0;
  #found: Owner[] = [];
  #unfiled: Place<Owner>[] = [];
  #unfiledValues = 0;
  readonly #leaving: Filed<Owner>[] = [];
  #isClearing = false;

  get size(): number {
    return this.#byOwner.size;
  }

  add(owner: Owner, filters: readonly Filter[]): void {
    this.remove(owner);
    let values = 0;
    for (const filter of filters) values += valuesOf(filter);
    const place: Place<Owner> = { owner, filters, values, filed: undefined, seenIn: 0, isGone: false };
    this.#byOwner.set(owner, place);
    this.#unfiled.push(place);
    this.#unfiledValues += values;
    if (this.#unfiledValues > valuesATurn || this.#unfiled.length > placesATurn) this.#fileAll();
  }

  remove(owner: Owner): void {
    const place = this.#byOwner.get(owner);
    if (!place) return;
    this.#byOwner.delete(owner);
    place.isGone = true;
    if (!place.filed) {
      this.#unfiledValues -= place.values;
      // It may stay in the list for a while, but not what it asked for.
      place.filters = [];
      // The usual case: a question that was asked alone.
      if (this.#unfiled.at(-1) === place) this.#unfiled.pop();
      return;
    }
    for (const one of place.filed) this.#leaving.push(one);
    if (!this.#isClearing) this.#clear();
  }

  #fileAll(): void {
    const unfiled = this.#unfiled;
    this.#unfiled = [];
    this.#unfiledValues = 0;
    for (const place of unfiled) {
      if (place.isGone) continue;
      place.filed = [];
      for (const filter of place.filters) {
        if (matchesNothing(filter)) continue;
        const kinds = filter.kinds && filter.kinds.length <= fewKinds ? filter.kinds : undefined;
        const one: Filed<Owner> = { place, filter, lookedAtIn: 0, kinds, matches: undefined };
        place.filed.push(one);
        this.#file(one, put);
      }
    }
  }

  /** A client that leaves may have hundreds of thousands of values: they are taken out a few thousand a turn. */
  #clear(): void {
    let values = 0;
    while (values < valuesATurn) {
      const one = this.#leaving.pop();
      if (!one) break;
      this.#file(one, take);
      values += valuesOf(one.filter);
    }
    this.#isClearing = this.#leaving.length > 0;
    if (this.#isClearing) setImmediate(() => this.#clear());
  }

  /** Each owner once, however many of its filters match. */
  match(event: NostrEvent): Owner[] {
    if (this.#unfiled.length > 0) this.#fileAll();
    this.#matches++;
    this.#found = [];
    this.#visit(this.#byId.get(event.id), event);
    if (this.#byTag.size > 0) {
      for (const tag of event.tags) {
        const name = tag[0];
        const value = tag[1];
        if (name !== undefined && value !== undefined) this.#visit(this.#byTag.get(name)?.get(value), event);
      }
    }
    this.#visit(this.#byAuthor.get(event.pubkey), event);
    this.#visit(this.#byKind.get(event.kind), event);
    this.#visit(this.#everything, event);
    return this.#found;
  }

  #visit(there: Filed<Owner> | Crowd<Owner> | undefined, event: NostrEvent): void {
    if (there === undefined) return;
    if (!(there instanceof Crowd)) this.#look(there, event);
    else if (there.visitedIn !== this.#matches) {
      there.visitedIn = this.#matches;
      for (const one of there) this.#look(one, event);
    }
  }

  #look(one: Filed<Owner>, event: NostrEvent): void {
    const { place, kinds } = one;
    if (place.isGone || place.seenIn === this.#matches || one.lookedAtIn === this.#matches) return;
    if (kinds !== undefined && !kinds.includes(event.kind)) return;
    one.lookedAtIn = this.#matches;
    one.matches ??= matcherOf(restOf(one.filter), "often");
    if (!one.matches(event)) return;
    place.seenIn = this.#matches;
    this.#found.push(place.owner);
  }

  #file(one: Filed<Owner>, change: typeof put): void {
    const { ids, authors, kinds, tags } = one.filter;
    if (ids) for (const id of ids) change(this.#byId, id, one);
    else if (tags && tags.size > 0) {
      const name = mostSelectiveTag(tags);
      let bucket = this.#byTag.get(name);
      if (!bucket) {
        bucket = new Map();
        this.#byTag.set(name, bucket);
      }
      for (const value of tags.get(name) ?? []) change(bucket, value, one);
      // Names are the client's choice: an empty bucket must not stay.
      if (bucket.size === 0) this.#byTag.delete(name);
    } else if (authors) for (const author of authors) change(this.#byAuthor, author, one);
    else if (kinds) for (const kind of kinds) change(this.#byKind, kind, one);
    else if (change === put) this.#everything.add(one);
    else this.#everything.delete(one);
  }
}

/** The filter without the list it is filed under: an event that finds the filter by that list matches the list already. */
function restOf(filter: Filter): Filter {
  const { ids, tags, authors, kinds, ...rest } = filter;
  const withKinds = { ...rest, ...(kinds && { kinds }) };
  if (ids) return { ...withKinds, ...(tags && { tags }), ...(authors && { authors }) };
  if (tags && tags.size > 0) {
    const filed = mostSelectiveTag(tags);
    const others = new Map([...tags].filter(([name]) => name !== filed));
    return { ...withKinds, ...(authors && { authors }), ...(others.size > 0 && { tags: others }) };
  }
  return authors ? withKinds : rest;
}

function mostSelectiveTag(tags: ReadonlyMap<string, readonly string[]>): string {
  const known = selectiveTags.find((name) => tags.has(name));
  if (known !== undefined) return known;
  // Few values are a narrower question than many.
  const [first] = [...tags].sort(([, a], [, b]) => a.length - b.length);
  return first?.[0] ?? "";
}

function put<Key, Owner>(bucket: Bucket<Key, Owner>, key: Key, one: Filed<Owner>): void {
  const there = bucket.get(key);
  if (there === undefined) bucket.set(key, one);
  else if (there instanceof Crowd) there.add(one);
  else bucket.set(key, new Crowd([there, one]));
}

function take<Key, Owner>(bucket: Bucket<Key, Owner>, key: Key, one: Filed<Owner>): void {
  const there = bucket.get(key);
  if (there === one) bucket.delete(key);
  else if (there instanceof Crowd) {
    there.delete(one);
    // A peer renews its subscription for each new root: every value of it has two for a moment, and would keep its set.
    if (there.size === 1) for (const last of there) bucket.set(key, last);
  }
}
