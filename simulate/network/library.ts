// All events of the modelled network, each kept once, with a bit for every server that serves it: a store and its index
// for each of a thousand servers would not fit into memory, and they would say the same.

import type { EventId, NostrEvent } from "../../src/nostr/event.js";
import { type Filter, matcherOf, matchesNothing } from "../../src/nostr/filter.js";

/** An event with what the network model knows of it. */
export interface Shelved {
  readonly event: NostrEvent;
  /** As it goes over a wire. */
  readonly bytes: number;
  readonly holders: Uint32Array;
  /** The last look that found it: several tags may lead to it. */
  foundIn: number;
}

const indexedTags: ReadonlySet<string> = new Set(["a", "A", "q", "e", "E", "d"]);

export class Library {
  readonly #byId = new Map<EventId, Shelved>();
  readonly #byTag = new Map<string, Map<string, Shelved[]>>();
  readonly #byKind = new Map<number, Shelved[]>();
  /** Asked for by kind alone, each server's own: two servers of a large network share few of them. */
  readonly #ofServer: Map<number, Set<Shelved>>[];
  readonly #words: number;
  #looks = 0;

  constructor(servers: number) {
    this.#words = Math.ceil(servers / 32);
    this.#ofServer = Array.from({ length: servers }, () => new Map());
  }

  add(event: NostrEvent, bytes: number): Shelved {
    const shelved: Shelved = { event, bytes, holders: new Uint32Array(this.#words), foundIn: 0 };
    this.#byId.set(event.id, shelved);
    append(this.#byKind, event.kind, shelved);
    for (const [name = "", value = ""] of event.tags) {
      if (!indexedTags.has(name)) continue;
      const ofName = this.#byTag.get(name) ?? new Map<string, Shelved[]>();
      this.#byTag.set(name, ofName);
      append(ofName, value, shelved);
    }
    return shelved;
  }

  get(id: EventId): Shelved | undefined {
    return this.#byId.get(id);
  }

  serve(server: number, shelved: Shelved): void {
    shelved.holders[server >> 5]! |= 1 << (server & 31);
    const { kind } = shelved.event;
    if (kind < 30_000) return;
    const own = this.#ofServer[server]!;
    const ofKind = own.get(kind) ?? new Set();
    own.set(kind, ofKind.add(shelved));
  }

  remove(server: number, shelved: Shelved): void {
    shelved.holders[server >> 5]! &= ~(1 << (server & 31));
    this.#ofServer[server]!.get(shelved.event.kind)?.delete(shelved);
  }

  isServed(server: number, { holders }: Shelved): boolean {
    return (holders[server >> 5]! & (1 << (server & 31))) !== 0;
  }

  /** What one of two servers holds and the filter asks for, each once. */
  each(filter: Filter, one: number, other: number, found: (shelved: Shelved) => void): void {
    const matches = matcherOf(withoutFirstTag(filter), "often");
    const look = ++this.#looks;
    this.#candidates(filter, one, other, (shelved) => {
      if (shelved.foundIn === look || !(this.isServed(one, shelved) || this.isServed(other, shelved))) return;
      if (!matches(shelved.event)) return;
      shelved.foundIn = look;
      found(shelved);
    });
  }

  /** The newest that a server holds, as a REQ answers. */
  newest(filter: Filter, server: number, limit: number): Shelved[] {
    const found: Shelved[] = [];
    this.each(filter, server, server, (shelved) => found.push(shelved));
    found.sort((a, b) => b.event.created_at - a.event.created_at || (a.event.id < b.event.id ? -1 : 1));
    return found.slice(0, limit);
  }

  #candidates({ ids, tags, kinds }: Filter, one: number, other: number, look: (shelved: Shelved) => void): void {
    if (ids) {
      for (const id of ids) {
        const shelved = this.#byId.get(id);
        if (shelved) look(shelved);
      }
      return;
    }
    if (kinds && !kinds.some((kind) => this.#byKind.has(kind))) return;
    for (const [name, values] of tags ?? []) {
      const ofName = this.#byTag.get(name);
      for (const value of values) for (const shelved of ofName?.get(value) ?? []) look(shelved);
      return;
    }
    for (const kind of kinds ?? this.#byKind.keys()) {
      if (kind < 30_000) for (const shelved of this.#byKind.get(kind) ?? []) look(shelved);
      else
        for (const server of one === other ? [one] : [one, other])
          for (const shelved of this.#ofServer[server]!.get(kind) ?? []) look(shelved);
    }
  }
}

/** What is left to see of a candidate: the first tag led to it, unless ids did. */
function withoutFirstTag(filter: Filter): Filter {
  if (filter.ids || !filter.tags || matchesNothing(filter)) return filter;
  const { tags, ...rest } = filter;
  const others = new Map([...tags].slice(1));
  return others.size > 0 ? { ...rest, tags: others } : rest;
}

function append<Key>(lists: Map<Key, Shelved[]>, key: Key, shelved: Shelved): void {
  const list = lists.get(key);
  if (list) list.push(shelved);
  else lists.set(key, [shelved]);
}
