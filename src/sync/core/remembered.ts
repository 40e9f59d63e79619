// Rejected events that may become valid, and ids not worth fetching again (spec "What happens to an event that
// arrives"): hot for two minutes with the event, cold for a week with the id. Decides what each refusal means: whether
// the event may become welcome, and whether it says anything about the relay. Only verified events and reasons of
// policy are remembered.

import { SetsByKey } from "../../base/collections.js";
import { type EventId, kinds, type NostrEvent, type Pubkey, tagValue } from "../../nostr/event.js";
import type { RefusalCode } from "../../nostr/refusals.js";
import { type SyncConfig, secondMs } from "./config.js";
import type { Command, Outcome, RelayKey, RememberedId, Time } from "./messages.js";

/** What the event refers to is not here yet, or not yet such that it is allowed. */
const notYet: ReadonlySet<RefusalCode> = new Set([
  "unrelated",
  "no-announcement",
  "not-a-maintainer",
  "service-not-listed",
]);
export const byLists: ReadonlySet<RefusalCode> = new Set([
  "author-blocked",
  "repository-blocked",
  "event-blocked",
  "not-whitelisted",
]);
const forGood: ReadonlySet<RefusalCode> = new Set(["deleted", "vanished", "expired"]);

/** Our own server could not take it: it is lost until it is fetched again. */
const trouble = new Set<RefusalCode>(["disk-full", "store-failed", "shutting-down", "busy"]);
/** Our own rules have no room for it now, or it was kept and git failed: no reason to do anything. */
const forNow = new Set<RefusalCode>(["too-many-waiting", "waiting-room-full", "rate-limited", "too-many", "internal"]);

export const isTrouble = (outcome: Outcome): boolean => outcome.type === "refused" && trouble.has(outcome.code);

/** Says nothing about the event, nor about the relay that sent it. */
export const isOurs = (outcome: Outcome): boolean =>
  isTrouble(outcome) || (outcome.type === "refused" && forNow.has(outcome.code));

const isListed = (kind: number): boolean => kind === kinds.announcement || kind === kinds.state;
const maxReferences = 50;

interface Hot {
  readonly event: NostrEvent;
  readonly relay: RelayKey;
  readonly untilMs: number;
  readonly references: readonly string[];
}

/** What would have to arrive for the event to be judged again. */
function referencesOf(event: NostrEvent): string[] {
  if (isListed(event.kind)) return [`d:${tagValue(event, "d") ?? ""}`];
  const found = event.tags.flatMap((tag) => (/^[aAeEq]$/.test(tag[0] ?? "") && tag[1] !== undefined ? [tag[1]] : []));
  return [...new Set(found)].slice(0, maxReferences);
}

export class Remembered {
  readonly cold = new ColdIds();
  readonly #hot = new Map<EventId, Hot>();
  readonly #hotBy = new SetsByKey<string, EventId>();
  #hotBytes = 0;

  constructor(readonly config: SyncConfig) {}

  get hotSize(): number {
    return this.#hot.size;
  }

  has(id: EventId, time: Time): boolean {
    return this.cold.has(id, time.wallMs);
  }

  note(event: NostrEvent, outcome: Outcome, relay: RelayKey, time: Time, out: Command[]): void {
    const reason = outcome.type === "superseded" ? "superseded" : outcome.type === "refused" ? outcome.code : undefined;
    if (reason === undefined) return;
    const code = reason === "superseded" ? undefined : reason;
    // The room is full for now: at most as long as what it refers to has not come.
    if (code && (notYet.has(code) || code === "waiting-room-full")) this.#keepHot(event, relay, time);
    const isCold = !code || byLists.has(code) || forGood.has(code) || (notYet.has(code) && isListed(event.kind));
    if (!isCold) return;
    const entry: RememberedId = {
      id: event.id,
      kind: event.kind,
      author: event.pubkey,
      identifier: tagValue(event, "d") ?? "",
      reason,
      relay,
      untilWallMs: time.wallMs + this.config.rejectedColdIndexExpirySecs * secondMs,
    };
    out.push({ type: "remember", entry });
    this.#keepCold(entry, out);
  }

  /** Kept over a restart. */
  load(entries: readonly RememberedId[], out: Command[]): void {
    for (const entry of entries) this.#keepCold(entry, out);
  }

  /** One relay has its share; when all are too many, whoever has most makes room. */
  #keepCold(entry: RememberedId, out: Command[]): void {
    const { rejectedColdMaxEvents: maxCold, maxColdShare } = this.config;
    this.cold.add(entry);
    if (this.cold.countOf(entry.relay) > maxCold * maxColdShare) this.#forget(this.cold.oldestOf(entry.relay)!, out);
    if (this.cold.size <= maxCold) return;
    // Several at once: to find who has most costs a walk over all relays.
    const fullest = this.cold.fullest!;
    for (let n = 0; n < Math.max(1, maxCold / 1000); n++) {
      const oldest = this.cold.oldestOf(fullest);
      if (oldest !== undefined) this.#forget(oldest, out);
    }
  }

  #forget(id: EventId, out: Command[]): void {
    if (this.cold.delete(id)) out.push({ type: "forget", id });
  }

  #keepHot(event: NostrEvent, relay: RelayKey, time: Time): void {
    if (this.#hot.has(event.id)) return;
    const references = referencesOf(event);
    this.#hot.set(event.id, {
      event,
      relay,
      untilMs: time.monotonicMs + this.config.rejectedHotCacheDurationSecs * secondMs,
      references,
    });
    this.#hotBytes += event.raw.length;
    for (const reference of references) this.#hotBy.add(reference, event.id);
    for (const id of this.#hot.keys()) {
      if (this.#hot.size <= this.config.rejectedHotMaxEvents && this.#hotBytes <= this.config.maxHotBytes) break;
      this.#cool(id);
    }
  }

  #cool(id: EventId): Hot | undefined {
    const hot = this.#hot.get(id);
    if (!hot) return undefined;
    this.#hot.delete(id);
    this.#hotBytes -= hot.event.raw.length;
    for (const reference of hot.references) this.#hotBy.remove(reference, id);
    return hot;
  }

  /** Takes out the hot events that refer to this event, and those it refers to: to be judged again. */
  hotFor(event: NostrEvent, coordinate: string | undefined): { event: NostrEvent; relay: RelayKey }[] {
    if (this.#hot.size === 0) return [];
    const ids = new Set<EventId>(this.#hotBy.get(event.id));
    if (coordinate !== undefined) for (const id of this.#hotBy.get(coordinate) ?? []) ids.add(id);
    if (event.kind === kinds.announcement) {
      for (const id of this.#hotBy.get(`d:${tagValue(event, "d") ?? ""}`) ?? []) ids.add(id);
    }
    for (const tag of event.tags) {
      if (/^[eEq]$/.test(tag[0] ?? "") && this.#hot.has(tag[1] as EventId)) ids.add(tag[1] as EventId);
    }
    return [...ids].flatMap((id) => this.#cool(id) ?? []);
  }

  /** An announcement is here or waits: forgets and returns the cold ids it may have made valid. */
  coldFor(event: NostrEvent, out: Command[]): ColdId[] {
    const identifier = tagValue(event, "d") ?? "";
    const authors = new Set([event.pubkey as string]);
    for (const tag of event.tags) {
      if (tag[0] === "maintainers") for (const key of tag.slice(1)) authors.add(key);
      else if (/^[Mmo]$/.test(tag[0] ?? "") && tag[1] !== undefined) authors.add(tag[1]);
    }
    return this.#take(this.cold.withIdentifier(identifier, authors, this.config.maxRejudged), out);
  }

  /** What refused or superseded them is gone: forgets and returns them. */
  takeIdentifier(author: Pubkey, identifier: string, out: Command[]): ColdId[] {
    return this.#take(this.cold.withIdentifier(identifier, new Set([author]), this.config.maxRejudged), out);
  }

  /** Forgets and returns what was refused for one of these reasons. */
  takeRefused(reasons: ReadonlySet<RefusalCode>, out: Command[]): ColdId[] {
    return this.#take(this.cold.because(reasons), out);
  }

  #take(found: ColdId[], out: Command[]): ColdId[] {
    for (const { id } of found) this.#forget(id, out);
    return found;
  }

  tidy(time: Time, out: Command[]): void {
    for (const [id, hot] of this.#hot) {
      if (hot.untilMs > time.monotonicMs) break;
      this.#cool(id);
    }
    if (time.monotonicMs < this.#tidyColdMs) return;
    this.#tidyColdMs = time.monotonicMs + 60 * 60 * 1000;
    for (const id of this.cold.over(time.wallMs)) this.#forget(id, out);
  }
  #tidyColdMs = 0;
}

const packed = (id: EventId): string => Buffer.from(id, "hex").toString("latin1");
const unpacked = (text: string): EventId => Buffer.from(text, "latin1").toString("hex") as EventId;
const mark = (author: string): number => Number.parseInt(author.slice(0, 8), 16) >>> 0;

function larger(old: Uint32Array): Uint32Array<ArrayBuffer> {
  const grown = new Uint32Array(old.length * 2);
  grown.set(old);
  return grown;
}

/** Slots in named rings, newest first: before the newest of each lies its oldest. */
class Rings {
  readonly #newest = new Map<string, number>();
  #next = new Uint32Array(64);
  #previous = new Uint32Array(64);

  add(name: string, slot: number): void {
    if (slot >= this.#next.length) {
      this.#next = larger(this.#next);
      this.#previous = larger(this.#previous);
    }
    const newest = this.#newest.get(name) ?? slot;
    const oldest = newest === slot ? slot : this.#previous[newest]!;
    this.#next[slot] = newest;
    this.#previous[newest] = slot;
    this.#previous[slot] = oldest;
    this.#next[oldest] = slot;
    this.#newest.set(name, slot);
  }

  remove(name: string, slot: number): void {
    const next = this.#next[slot]!;
    const previous = this.#previous[slot]!;
    this.#next[previous] = next;
    this.#previous[next] = previous;
    if (next === slot) this.#newest.delete(name);
    else if (this.#newest.get(name) === slot) this.#newest.set(name, next);
  }

  oldest(name: string): number | undefined {
    const newest = this.#newest.get(name);
    return newest === undefined ? undefined : this.#previous[newest];
  }

  *of(name: string): Iterable<number> {
    const newest = this.#newest.get(name);
    if (newest === undefined) return;
    let slot = newest;
    do {
      yield slot;
      slot = this.#next[slot]!;
    } while (slot !== newest);
  }
}

export type ColdId = Pick<RememberedId, "id" | "relay" | "reason">;

/**
 * A million ids with why, from where and until when, in flat arrays: about 130 MiB when full, nothing when empty.
 * Entries of one identifier are a list, so that an announcement finds the ones it may make valid; so are entries of one
 * relay, so that the relay that fills the memory makes room itself.
 */
export class ColdIds {
  readonly #slots = new Map<string, number>();
  readonly #byIdentifier = new Rings();
  readonly #byRelay = new Rings();
  readonly #counts = new Map<RelayKey, number>();
  readonly #free: number[] = [];
  #used = 0;
  readonly #ids: (string | undefined)[] = [];
  readonly #identifiers: (string | undefined)[] = [];
  readonly #relays: (RelayKey | undefined)[] = [];
  readonly #reasons: (RememberedId["reason"] | undefined)[] = [];
  #untilSeconds = new Uint32Array(64);
  #authors = new Uint32Array(64);

  get size(): number {
    return this.#slots.size;
  }

  has(id: EventId, wallMs: number): boolean {
    const slot = this.#slots.get(packed(id));
    return slot !== undefined && this.#untilSeconds[slot]! * 1000 > wallMs;
  }

  add(entry: RememberedId): void {
    const id = packed(entry.id);
    if (this.#slots.has(id)) return;
    const slot = this.#free.pop() ?? this.#used++;
    if (slot >= this.#authors.length) {
      this.#untilSeconds = larger(this.#untilSeconds);
      this.#authors = larger(this.#authors);
    }
    this.#slots.set(id, slot);
    this.#ids[slot] = id;
    this.#identifiers[slot] = entry.identifier;
    this.#relays[slot] = entry.relay;
    this.#reasons[slot] = entry.reason;
    this.#untilSeconds[slot] = Math.ceil(entry.untilWallMs / 1000);
    this.#authors[slot] = mark(entry.author);
    this.#byIdentifier.add(entry.identifier, slot);
    this.#byRelay.add(entry.relay, slot);
    this.#counts.set(entry.relay, this.countOf(entry.relay) + 1);
  }

  delete(id: EventId): boolean {
    const slot = this.#slots.get(packed(id));
    if (slot === undefined) return false;
    const relay = this.#relays[slot]!;
    this.#byIdentifier.remove(this.#identifiers[slot]!, slot);
    this.#byRelay.remove(relay, slot);
    const count = this.countOf(relay) - 1;
    if (count > 0) this.#counts.set(relay, count);
    else this.#counts.delete(relay);
    this.#slots.delete(this.#ids[slot]!);
    this.#ids[slot] = this.#identifiers[slot] = this.#relays[slot] = this.#reasons[slot] = undefined;
    this.#free.push(slot);
    return true;
  }

  countOf(relay: RelayKey): number {
    return this.#counts.get(relay) ?? 0;
  }

  /** The relay of which most is remembered. */
  get fullest(): RelayKey | undefined {
    let most: RelayKey | undefined;
    for (const [relay, count] of this.#counts) if (most === undefined || count > this.countOf(most)) most = relay;
    return most;
  }

  oldestOf(relay: RelayKey): EventId | undefined {
    const slot = this.#byRelay.oldest(relay);
    return slot === undefined ? undefined : unpacked(this.#ids[slot]!);
  }

  /** First those by the given authors, then the newest of the others; at most `max`. */
  withIdentifier(identifier: string, authors: ReadonlySet<string>, max: number): ColdId[] {
    const marks = new Set([...authors].map(mark));
    const likely: number[] = [];
    const others: number[] = [];
    for (const slot of this.#byIdentifier.of(identifier)) {
      if (marks.has(this.#authors[slot]!)) likely.push(slot);
      else if (others.length < max) others.push(slot);
    }
    return [...likely, ...others].slice(0, max).map((slot) => this.#at(slot));
  }

  /** All whose reason is one of these. */
  because(reasons: ReadonlySet<string>): ColdId[] {
    return [...this.#slots.values()].filter((slot) => reasons.has(this.#reasons[slot]!)).map((slot) => this.#at(slot));
  }

  /** Every id whose time has passed. */
  over(wallMs: number): EventId[] {
    const found: EventId[] = [];
    for (const [id, slot] of this.#slots) if (this.#untilSeconds[slot]! * 1000 <= wallMs) found.push(unpacked(id));
    return found;
  }

  #at(slot: number): ColdId {
    return { id: unpacked(this.#ids[slot]!), relay: this.#relays[slot]!, reason: this.#reasons[slot]! };
  }
}
