// A store small enough to be obviously right, for tests of rules: every answer is found by looking at everything.
// Not the memory store, because these tests stand inside one transaction that never ends: they ask and write without
// `transact`, look at keys between two calls, and count reads. The relay's and the server's tests use the real stores.

import {
  type Address,
  addressOf,
  addressText,
  compareNewestFirst,
  type EventId,
  kinds,
  tagValues,
  type VerifiedEvent,
} from "../../nostr/event.js";
import { type Filter, matcherOf } from "../../nostr/filter.js";
import type { PutResult, QueryOptions, RowRange, StoredEvent, StoredRow, TableName, Transaction } from "../port.js";

export class NaiveStore implements Transaction {
  readonly #events = new Map<EventId, StoredEvent>();
  readonly #tables = new Map<TableName, Map<string, string>>();
  #seq = 0;
  /** Rows and events handed out; for tests about cost. */
  reads = 0;

  async event(id: EventId): Promise<StoredEvent | undefined> {
    this.reads++;
    return this.#events.get(id);
  }

  async has(id: EventId): Promise<boolean> {
    return this.#events.has(id);
  }

  async latest(address: Address): Promise<StoredEvent | undefined> {
    this.reads++;
    return this.#current(addressText(address));
  }

  async *query(filters: readonly Filter[], options: QueryOptions = {}): AsyncIterable<readonly StoredRow[]> {
    const found = new Map<EventId, StoredEvent>();
    for (const filter of filters) {
      const matches = matcherOf(filter);
      const all = this.#sorted().filter(({ event }) => matches(event));
      for (const stored of all.slice(0, filter.limit)) found.set(stored.event.id, stored);
    }
    const rows = [...found.values()].sort((a, b) => compareNewestFirst(a.event, b.event)).slice(0, options.limit);
    this.reads += rows.length;
    yield rows.map(({ seq, event }) => ({
      seq,
      id: event.id,
      pubkey: event.pubkey,
      kind: event.kind,
      created_at: event.created_at,
      json: Buffer.from(event.raw),
      text: event.raw,
      size: event.raw.length,
      event,
    }));
  }

  async count(filters: readonly Filter[]): Promise<number> {
    let count = 0;
    for await (const page of this.query(filters)) count += page.length;
    return count;
  }

  async deletionOf(event: VerifiedEvent): Promise<EventId | undefined> {
    const address = addressOf(event);
    const own = this.#sorted().filter((stored) => stored.event.pubkey === event.pubkey);
    return own.find(({ event: request }) => {
      if (request.kind === kinds.vanish) return event.created_at <= request.created_at;
      if (request.kind !== kinds.deletion || event.kind === kinds.deletion) return false;
      if (tagValues(request, "e").includes(event.id)) return true;
      const named = address !== undefined && tagValues(request, "a").includes(addressText(address));
      return named && event.created_at <= request.created_at;
    })?.event.id;
  }

  async put(event: VerifiedEvent): Promise<PutResult> {
    if (this.#events.has(event.id)) return { stored: false, reason: "duplicate" };
    if ((await this.deletionOf(event)) !== undefined) return { stored: false, reason: "deleted" };
    const address = addressOf(event);
    const before = address && this.#current(addressText(address));
    if (before && compareNewestFirst(before.event, event) < 0) return { stored: false, reason: "older" };
    if (before) this.#events.delete(before.event.id);
    const stored = { seq: ++this.#seq, event };
    this.#events.set(event.id, stored);
    for (const other of this.#sorted()) {
      if (other.event.id !== event.id && (await this.deletionOf(other.event)) === event.id) {
        this.#events.delete(other.event.id);
      }
    }
    return { stored: true, seq: stored.seq, replaced: before?.event };
  }

  async remove(id: EventId): Promise<boolean> {
    return this.#events.delete(id);
  }

  async row<T>(table: TableName, key: string): Promise<T | undefined> {
    this.reads++;
    const text = this.#table(table).get(key);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  async *rows<T>(table: TableName, range: RowRange = {}): AsyncIterable<readonly [key: string, value: T]> {
    const { prefix = "", after, limit, reverse = false } = range;
    const keys = [...this.#table(table).keys()]
      .filter((key) => key.startsWith(prefix) && (!after || key > after))
      .sort();
    if (reverse) keys.reverse();
    for (const key of keys.slice(0, limit)) {
      this.reads++;
      yield [key, JSON.parse(this.#table(table).get(key) ?? "null") as T];
    }
  }

  setRow<T>(table: TableName, key: string, value: T): void {
    if (Buffer.byteLength(key) > 1_000) throw new RangeError("key too long");
    this.#table(table).set(key, JSON.stringify(value));
  }

  /** Nobody listens. */
  pass(): void {}

  deleteRow(table: TableName, key: string): void {
    this.#table(table).delete(key);
  }

  /** All keys of a table, for tests that nothing is left behind. */
  keys(table: TableName): string[] {
    return [...this.#table(table).keys()].sort();
  }

  ids(): EventId[] {
    return this.#sorted().map(({ event }) => event.id);
  }

  #table(name: TableName): Map<string, string> {
    const table = this.#tables.get(name) ?? new Map<string, string>();
    this.#tables.set(name, table);
    return table;
  }

  #sorted(): StoredEvent[] {
    return [...this.#events.values()].sort((a, b) => compareNewestFirst(a.event, b.event));
  }

  #current(address: string): StoredEvent | undefined {
    return this.#sorted().find(({ event }) => {
      const own = addressOf(event);
      return own !== undefined && addressText(own) === address;
    });
  }
}
