// A test double: the store's contract in the plainest form, every query a scan. It exists so that the relay can be
// tested by itself and as the oracle its answers are compared with. Not durable, not quick, never shipped.

import { type Address, addressOf, addressText } from "../../src/nostr/address.js";
import {
  compareNewestFirst,
  expirationOf,
  isAddressable,
  isReplaceable,
  tagValues,
  type VerifiedEvent,
} from "../../src/nostr/event.js";
import { type Filter, matcherOf } from "../../src/nostr/filter.js";
import type { EventId } from "../../src/nostr/ids.js";
import { kinds } from "../../src/nostr/kinds.js";
import {
  type FeedEntry,
  type FeedSubscription,
  type PutResult,
  type QueryOptions,
  type RemovalCause,
  type Store,
  StoreClosedError,
  type StoredEvent,
  type StoredRow,
  type StoreStats,
  type TableName,
  type TimedIds,
  type Transaction,
} from "../../src/store/port.js";

const byOrder = (a: StoredEvent, b: StoredEvent) => compareNewestFirst(a.event, b.event);

export class NaiveStore implements Store {
  #events = new Map<EventId, StoredEvent>();
  #deletions: VerifiedEvent[] = [];
  #log: FeedEntry[] = [];
  #tail: Promise<unknown> = Promise.resolve();
  #closed = false;
  #listeners = new Set<(entries: readonly FeedEntry[]) => void>();
  #wake = new Set<() => void>();
  position = 0;
  /** Called before each page: a test can hold a query open. */
  beforePage: () => Promise<void> = async () => undefined;

  get stats(): StoreStats {
    return { events: this.#events.size, bytesOnDisk: 0, queuedWorks: 0 };
  }

  matching(filters: readonly Filter[], upTo = Number.POSITIVE_INFINITY): StoredEvent[] {
    const wanted = new Map<EventId, StoredEvent>();
    const candidates = [...this.#events.values()].filter((one) => one.seq <= upTo).sort(byOrder);
    for (const filter of filters) {
      const matches = matcherOf(filter);
      const search = filter.search?.toLowerCase();
      const found = candidates.filter(
        ({ event }) => matches(event) && (search === undefined || event.content.toLowerCase().includes(search)),
      );
      for (const one of found.slice(0, filter.limit)) wanted.set(one.event.id, one);
    }
    return [...wanted.values()].sort(byOrder);
  }

  async event(id: EventId): Promise<StoredEvent | undefined> {
    return this.#events.get(id);
  }

  async has(id: EventId): Promise<boolean> {
    if (this.#closed) throw new StoreClosedError();
    return this.#events.has(id);
  }

  async latest(address: Address): Promise<StoredEvent | undefined> {
    const text = addressText(address);
    return [...this.#events.values()].find(({ event }) => {
      const own = addressOf(event);
      return own !== undefined && addressText(own) === text;
    });
  }

  async *query(filters: readonly Filter[], options: QueryOptions = {}): AsyncIterable<readonly StoredRow[]> {
    const { pageRows = 200, signal } = options;
    const rows = this.matching(filters, options.upTo).slice(0, options.limit);
    for (let at = 0; at < rows.length || at === 0; at += pageRows) {
      await this.beforePage();
      if (this.#closed) throw new StoreClosedError();
      if (signal?.aborted) return;
      yield rows.slice(at, at + pageRows).map(({ seq, event }) => ({
        seq,
        id: event.id,
        created_at: event.created_at,
        json: Buffer.from(event.raw),
        event,
      }));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async count(filters: readonly Filter[]): Promise<number> {
    return this.matching(filters).length;
  }

  async deletionOf(event: VerifiedEvent): Promise<EventId | undefined> {
    const address = addressOf(event);
    return this.#deletions.find(
      (deletion) =>
        deletion.pubkey === event.pubkey &&
        (tagValues(deletion, "e").includes(event.id) ||
          (address !== undefined &&
            tagValues(deletion, "a").includes(addressText(address)) &&
            event.created_at <= deletion.created_at)),
    )?.id;
  }

  async row<T>(_table: TableName, _key: string): Promise<T | undefined> {
    return undefined;
  }

  async *rows<T>(): AsyncIterable<readonly [string, T]> {
    yield* [];
  }

  transact<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    const run = async (): Promise<T> => {
      if (this.#closed) throw new StoreClosedError();
      const before = { events: new Map(this.#events), deletions: [...this.#deletions], position: this.position };
      const entries: FeedEntry[] = [];
      const result = await work(this.#transaction(entries)).catch((error: unknown) => {
        this.#events = before.events;
        this.#deletions = before.deletions;
        this.position = before.position;
        throw error;
      });
      this.#log.push(...entries);
      if (entries.length > 0) for (const listener of this.#listeners) listener(entries);
      for (const wake of [...this.#wake]) wake();
      return result;
    };
    const result = this.#tail.then(run);
    this.#tail = result.catch(() => undefined);
    return result;
  }

  #transaction(entries: FeedEntry[]): Transaction {
    const store = this;
    const remove = (one: StoredEvent, cause: RemovalCause) => {
      store.#events.delete(one.event.id);
      const { id, pubkey, kind } = one.event;
      const own = addressOf(one.event);
      const address = own && addressText(own);
      entries.push({ seq: ++store.position, type: "removed", id, pubkey, kind, address, cause });
    };
    return {
      event: (id) => store.event(id),
      has: (id) => store.has(id),
      latest: (address) => store.latest(address),
      query: (filters, options) => store.query(filters, options),
      count: (filters) => store.count(filters),
      deletionOf: (event) => store.deletionOf(event),
      row: (table, key) => store.row(table, key),
      rows: () => store.rows(),
      async put(event): Promise<PutResult> {
        if (store.#events.has(event.id)) return { stored: false, reason: "duplicate" };
        if (await store.deletionOf(event)) return { stored: false, reason: "deleted" };
        if ((expirationOf(event) ?? Number.POSITIVE_INFINITY) < 1) return { stored: false, reason: "expired" };
        const address = isReplaceable(event.kind) || isAddressable(event.kind) ? addressOf(event) : undefined;
        const old = address && (await store.latest(address));
        if (old && compareNewestFirst(old.event, event) < 0) return { stored: false, reason: "older" };
        if (old) remove(old, "replaced");
        const seq = ++store.position;
        store.#events.set(event.id, { seq, event });
        entries.push({ seq, type: "stored", event });
        if (event.kind === kinds.deletion) {
          store.#deletions.push(event);
          for (const one of [...store.#events.values()]) {
            if (one.event.kind !== kinds.deletion && (await store.deletionOf(one.event))) remove(one, "deletion");
          }
        }
        return { stored: true, seq, replaced: old?.event };
      },
      async remove(id, cause) {
        const one = store.#events.get(id);
        if (one) remove(one, cause);
        return one !== undefined;
      },
      setRow: () => undefined,
      deleteRow: () => undefined,
    };
  }

  feed(after: number, signal: AbortSignal): FeedSubscription {
    const store = this;
    return {
      async *[Symbol.asyncIterator]() {
        let from = after;
        while (!signal.aborted && !store.#closed) {
          const entries = store.#log.filter((entry) => entry.seq > from).slice(0, 100);
          const last = entries.at(-1);
          if (last) {
            from = last.seq;
            yield entries.filter((entry) => entry.type === "removed" || store.#events.has(entry.event.id));
          } else {
            await new Promise<void>((resolve) => {
              const done = () => {
                store.#wake.delete(done);
                signal.removeEventListener("abort", done);
                resolve();
              };
              store.#wake.add(done);
              signal.addEventListener("abort", done);
            });
          }
        }
      },
    };
  }

  onCommit(listener: (entries: readonly FeedEntry[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async timedIds(filter: Filter, cap: number): Promise<TimedIds | undefined> {
    const { limit: _limit, ...all } = filter;
    const found = this.matching([all]).sort(
      (a, b) => a.event.created_at - b.event.created_at || (a.event.id < b.event.id ? -1 : 1),
    );
    if (found.length > cap) return undefined;
    return {
      length: found.length,
      times: Float64Array.from(found, ({ event }) => event.created_at),
      ids: Buffer.from(found.map(({ event }) => event.id).join(""), "hex"),
    };
  }

  async sweepExpired(): Promise<number> {
    return 0;
  }

  async compact(): Promise<void> {}

  async close(): Promise<void> {
    this.#closed = true;
    for (const wake of [...this.#wake]) wake();
  }
}
