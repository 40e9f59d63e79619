// What login keeps, in rows that all machines of a cluster share (login.ts): a session that one of them opened is known to
// the others with the next request, and a token that one of them has taken is taken for all.

import type { Clock } from "../base/clock.js";
import type { Store } from "../store/port.js";
import type { Shelf, Shelves } from "./login.js";

export const rowShelves =
  (store: Store, clock: Clock): Shelves =>
  <T extends { readonly endsMs: number }>(name: string): Shelf<T> => {
    const prefix = `login:${name}:`;
    const nowMs = (): number => clock.nowMs();
    return {
      nowMs,
      async get(key) {
        await store.upToDate();
        const value = await store.row<T>("meta", prefix + key);
        return value && value.endsMs > nowMs() ? value : undefined;
      },
      change: (work) =>
        store.transact(async (tx) => {
          const before = new Map<string, T>();
          for await (const [key, value] of tx.rows<T>("meta", { prefix })) before.set(key.slice(prefix.length), value);
          const now = nowMs();
          const left = [...before].filter(([, { endsMs }]) => endsMs > now);
          const kept = new Map(left.sort(([, one], [, other]) => one.endsMs - other.endsMs));
          const answer = work(kept);
          for (const key of before.keys()) if (!kept.has(key)) tx.deleteRow("meta", prefix + key);
          for (const [key, value] of kept) if (before.get(key) !== value) tx.setRow("meta", prefix + key, value);
          return answer;
        }),
    };
  };
