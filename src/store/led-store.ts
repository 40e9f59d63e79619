// The store as whoever leads a cluster uses it: each of its works says in which epoch it was begun, and fails if another
// machine leads by then. A machine that was paused while it led changes nothing when it wakes.

import type { Store } from "./port.js";

export const ledStore = (store: Store, epoch: number): Store => ({
  isShared: store.isShared,
  transact: (work, options) => store.transact(work, { epoch, ...options }),
  sweepExpired: (nowSeconds, alongside, options) => store.sweepExpired(nowSeconds, alongside, { epoch, ...options }),
  get position() {
    return store.position;
  },
  get stats() {
    return store.stats;
  },
  event: (id) => store.event(id),
  has: (id) => store.has(id),
  latest: (address) => store.latest(address),
  query: (filters, options) => store.query(filters, options),
  queryAtOnce: (filters, options, take) => store.queryAtOnce(filters, options, take),
  count: (filters, options) => store.count(filters, options),
  deletionOf: (event) => store.deletionOf(event),
  row: (table, key) => store.row(table, key),
  rows: (table, range) => store.rows(table, range),
  feed: (after, signal, beforePage) => store.feed(after, signal, beforePage),
  onCommit: (listener) => store.onCommit(listener),
  onForeignCommit: (follow) => store.onForeignCommit(follow),
  upToDate: () => store.upToDate(),
  timedIds: (filter, cap, signal) => store.timedIds(filter, cap, signal),
  isWritable: () => store.isWritable(),
  snapshot: (folder, atThatMoment) => store.snapshot(folder, atThatMoment),
  compact: () => store.compact(),
  close: () => store.close(),
});
