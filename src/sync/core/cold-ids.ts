// A million ids with why, from where and until when, in flat arrays: about 130 MiB when full, nothing when empty.
// Entries of one identifier are a list, so that an announcement finds the ones it may make valid; so are entries of one
// relay, so that whoever fills the memory makes room himself.

import type { EventId } from "../../nostr/ids.js";
import type { RelayKey, RememberedId } from "./messages.js";

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
