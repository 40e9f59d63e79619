// A million ids with why, from where and until when, in flat arrays: about 120 MiB when full, nothing when empty.
// Entries of one identifier are a doubly linked list, so that an announcement finds the ones it may make valid.

import type { EventId } from "../../nostr/ids.js";
import type { RelayKey, RememberedId } from "./messages.js";

const none = 0xffffffff;
const packed = (id: EventId): string => Buffer.from(id, "hex").toString("latin1");
const unpacked = (text: string): EventId => Buffer.from(text, "latin1").toString("hex") as EventId;
const mark = (author: string): number => Number.parseInt(author.slice(0, 8), 16) >>> 0;

export class ColdIds {
  readonly #slots = new Map<string, number>();
  readonly #heads = new Map<string, number>();
  readonly #free: number[] = [];
  #used = 0;
  #ids: (string | undefined)[] = [];
  #identifiers: (string | undefined)[] = [];
  #relays: (RelayKey | undefined)[] = [];
  #reasons: (RememberedId["reason"] | undefined)[] = [];
  #untilSeconds = new Uint32Array(64);
  #authors = new Uint32Array(64);
  #next = new Uint32Array(64);
  #previous = new Uint32Array(64);

  get size(): number {
    return this.#slots.size;
  }

  has(id: EventId, wallMs: number): boolean {
    const slot = this.#slots.get(packed(id));
    return slot !== undefined && this.#untilSeconds[slot]! * 1000 > wallMs;
  }

  add(entry: RememberedId): void {
    if (this.#slots.has(packed(entry.id))) return;
    const slot = this.#free.pop() ?? this.#used++;
    if (slot >= this.#next.length) this.#grow();
    const id = packed(entry.id);
    this.#slots.set(id, slot);
    this.#ids[slot] = id;
    this.#identifiers[slot] = entry.identifier;
    this.#relays[slot] = entry.relay;
    this.#reasons[slot] = entry.reason;
    this.#untilSeconds[slot] = Math.ceil(entry.untilWallMs / 1000);
    this.#authors[slot] = mark(entry.author);
    const head = this.#heads.get(entry.identifier) ?? none;
    this.#next[slot] = head;
    this.#previous[slot] = none;
    if (head !== none) this.#previous[head] = slot;
    this.#heads.set(entry.identifier, slot);
  }

  delete(id: EventId): boolean {
    const slot = this.#slots.get(packed(id));
    if (slot === undefined) return false;
    this.#remove(slot);
    return true;
  }

  /** The id that was remembered first, for making room. */
  oldest(): EventId | undefined {
    const first = this.#slots.keys().next();
    return first.done ? undefined : unpacked(first.value);
  }

  /** First those by the given authors, then the newest of the others; at most `max`. */
  withIdentifier(identifier: string, authors: ReadonlySet<string>, max: number): { id: EventId; relay: RelayKey }[] {
    const marks = new Set([...authors].map(mark));
    const likely: number[] = [];
    const others: number[] = [];
    for (let slot = this.#heads.get(identifier) ?? none; slot !== none; slot = this.#next[slot]!) {
      if (marks.has(this.#authors[slot]!)) likely.push(slot);
      else if (others.length < max) others.push(slot);
    }
    return [...likely, ...others].slice(0, max).map((slot) => ({
      id: unpacked(this.#ids[slot]!),
      relay: this.#relays[slot]!,
    }));
  }

  /** Every id whose time has passed, or whose reason is one of these. */
  which(wallMs: number, reasons: ReadonlySet<string>): EventId[] {
    const found: EventId[] = [];
    for (const [id, slot] of this.#slots) {
      if (this.#untilSeconds[slot]! * 1000 <= wallMs || reasons.has(this.#reasons[slot]!)) found.push(unpacked(id));
    }
    return found;
  }

  #remove(slot: number): void {
    const identifier = this.#identifiers[slot]!;
    const next = this.#next[slot]!;
    const previous = this.#previous[slot]!;
    if (next !== none) this.#previous[next] = previous;
    if (previous !== none) this.#next[previous] = next;
    else if (next !== none) this.#heads.set(identifier, next);
    else this.#heads.delete(identifier);
    this.#slots.delete(this.#ids[slot]!);
    this.#ids[slot] = this.#identifiers[slot] = this.#relays[slot] = this.#reasons[slot] = undefined;
    this.#free.push(slot);
  }

  #grow(): void {
    const larger = (old: Uint32Array): Uint32Array<ArrayBuffer> => {
      const grown = new Uint32Array(old.length * 2);
      grown.set(old);
      return grown;
    };
    this.#untilSeconds = larger(this.#untilSeconds);
    this.#authors = larger(this.#authors);
    this.#next = larger(this.#next);
    this.#previous = larger(this.#previous);
  }
}
