// Table "naughty", git's part: hosts that are plainly broken, kept over restarts. Keys begin with `git:`; relays have
// their own. Times are wall-clock seconds, because a restart forgets the monotonic clock.

import type { Store } from "../store/port.js";

interface NaughtyRow {
  readonly kind: string;
  readonly until: number;
}

const prefix = "git:";
// A host name has at most 253 bytes; a key may have 1,000.
const keyOf = (place: string): string => `${prefix}${place.slice(0, 300)}`;

export interface RestoredNaughty {
  readonly place: string;
  readonly kind: string;
  readonly remainingMs: number;
}

export async function keepNaughty(store: Store, place: string, kind: string, until: number): Promise<void> {
  await store.transact(async (tx) => tx.setRow<NaughtyRow>("naughty", keyOf(place), { kind, until }));
}

/** What still holds; rows whose time is over are removed. */
export async function restoreNaughty(store: Store, nowSeconds: number): Promise<RestoredNaughty[]> {
  const restored: RestoredNaughty[] = [];
  const over: string[] = [];
  for await (const [key, { kind, until }] of store.rows<NaughtyRow>("naughty", { prefix })) {
    const remainingMs = (until - nowSeconds) * 1_000;
    if (remainingMs > 0) restored.push({ place: key.slice(prefix.length), kind, remainingMs });
    else over.push(key);
  }
  if (over.length > 0) {
    await store.transact(async (tx) => {
      for (const key of over) tx.deleteRow("naughty", key);
    });
  }
  return restored;
}
