// The real memory store with a place to hold a query: a test can stop it before a page and see how far it was read.

import type { Clock } from "../../src/base/clock.js";
import { createMemoryStore } from "../../src/store/memory/memory-store.js";
import type { QueryOptions, Reader, Store } from "../../src/store/port.js";

export interface WatchedStore extends Store {
  /** Awaited before each page of a query. */
  beforePage: () => Promise<void>;
  /** Rows that queries have handed out. */
  rowsRead: number;
}

export function watchedStore(clock: Clock): WatchedStore {
  const store = createMemoryStore({ clock });
  async function* query(filters: Parameters<Reader["query"]>[0], options?: QueryOptions) {
    const pages = store.query(filters, options)[Symbol.asyncIterator]();
    try {
      for (;;) {
        await watched.beforePage();
        const page = await pages.next();
        if (page.done) return;
        watched.rowsRead += page.value.length;
        yield page.value;
      }
    } finally {
      await pages.return?.();
    }
  }
  const watched: WatchedStore = {
    beforePage: async () => undefined,
    rowsRead: 0,
    isShared: store.isShared,
    query,
    // Nothing at once: each page can be held.
    queryAtOnce: (filters, options) => query(filters, options),
    event: (id) => store.event(id),
    has: (id) => store.has(id),
    latest: (address) => store.latest(address),
    count: (filters, options) => store.count(filters, options),
    deletionOf: (event) => store.deletionOf(event),
    row: (table, key) => store.row(table, key),
    rows: (table, range) => store.rows(table, range),
    transact: (work, options) => store.transact(work, options),
    get position() {
      return store.position;
    },
    feed: (after, signal, beforePage) => store.feed(after, signal, beforePage),
    onCommit: (listener) => store.onCommit(listener),
    onForeignCommit: (follow) => store.onForeignCommit(follow),
    upToDate: () => store.upToDate(),
    timedIds: (filter, cap, signal) => store.timedIds(filter, cap, signal),
    sweepExpired: (nowSeconds, alongside) => store.sweepExpired(nowSeconds, alongside),
    get stats() {
      return store.stats;
    },
    snapshot: (folder, atThatMoment) => store.snapshot(folder, atThatMoment),
    compact: () => store.compact(),
    isWritable: () => store.isWritable(),
    close: () => store.close(),
  };
  return watched;
}
