// What a ban took away, kept for the grace period of un-hosted repositories, so that a ban by mistake can be undone
// (`unban --restore`). Rows of table "meta": `removed:<table>:<row of the ban>:<since>:<event id>`, so that those of one ban
// lie together. Nothing of it is served.

import type { NostrEvent } from "../nostr/event.js";
import type { Store, TableReader, Transaction } from "../store/port.js";

/** Where a ban's own row stands. */
export interface BanPlace {
  readonly table: "bans" | "lists";
  readonly key: string;
}

interface RemovedRow {
  readonly raw: string;
  readonly kind: number;
  readonly at: number;
}

export interface RemovedEvent extends RemovedRow {
  readonly rowKey: string;
}

const prefix = "removed:";
const prefixOf = ({ table, key }: BanPlace): string => `${prefix}${table}:${key}:`;

export function keepRemoved(
  tx: Transaction,
  place: BanPlace,
  events: readonly (Pick<NostrEvent, "id" | "raw"> & { readonly kind: number })[],
  at: number,
): void {
  for (const { id, raw, kind } of events) {
    tx.setRow<RemovedRow>("meta", `${prefixOf(place)}${at}:${id}`, { raw, kind, at });
  }
}

/** At most `limit`, of the kinds that are wanted, after the row `after` (for paging). */
export async function removedBy(
  reader: TableReader,
  place: BanPlace,
  {
    limit,
    after,
    isWanted,
  }: {
    readonly limit: number;
    readonly after: string | undefined;
    readonly isWanted: (kind: number) => boolean;
  },
): Promise<RemovedEvent[]> {
  const found: RemovedEvent[] = [];
  const range = { prefix: prefixOf(place), ...(after !== undefined && { after }) };
  for await (const [rowKey, row] of reader.rows<RemovedRow>("meta", range)) {
    if (isWanted(row.kind)) found.push({ ...row, rowKey });
    if (found.length >= limit) break;
  }
  return found;
}

export async function countRemovedBy(reader: TableReader, place: BanPlace): Promise<number> {
  let count = 0;
  for await (const _ of reader.rows("meta", { prefix: prefixOf(place) })) count++;
  return count;
}

export function forgetRemoved(tx: Transaction, removed: readonly RemovedEvent[]): void {
  for (const { rowKey } of removed) tx.deleteRow("meta", rowKey);
}

const rowsAStep = 1_000;

/** Those whose grace period is over go for good. */
export async function forgetOldRemoved(store: Store, before: number): Promise<void> {
  for (;;) {
    const old: string[] = [];
    for await (const [key, { at }] of store.rows<RemovedRow>("meta", { prefix })) {
      if (at < before) old.push(key);
      if (old.length >= rowsAStep) break;
    }
    if (old.length === 0) return;
    await store.transact(async (tx) => {
      for (const key of old) tx.deleteRow("meta", key);
    });
  }
}
