// Side tables on disk: table number, then the key's UTF-8 bytes. Table 0 is the store's own: its counters and marks.

import type { EngineTable } from "../engine/backend.js";
import type { RowRange } from "../port.js";
import type { Database } from "./database.js";

// Numbers are on disk: they never change, new tables get new ones.
const tableNumbers: Readonly<Record<EngineTable, number>> = {
  deletions: 1,
  purgatory: 2,
  remembered: 3,
  decisions: 4,
  catalogue: 5,
  journal: 6,
  lists: 7,
  bans: 8,
  naughty: 9,
  audit: 10,
  meta: 11,
  refs: 12,
  aligned: 13,
};

export function emptyTables(database: Database): Set<EngineTable> {
  const tables = Object.keys(tableNumbers) as EngineTable[];
  return new Set(tables.filter((table) => rowsInRange(database, table, { limit: 1 }).length === 0));
}

type MetaKey = "events" | "forgottenUpTo" | "indexedUpTo" | "seed" | "version";

const rowKey = (table: number, key: string): Buffer => {
  const bytes = Buffer.allocUnsafe(1 + Buffer.byteLength(key));
  bytes[0] = table;
  bytes.write(key, 1);
  return bytes;
};

const text = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();

export function metaNumber(database: Database, key: MetaKey): number | undefined {
  const value = database.rows.getBinary(rowKey(0, key));
  return value && Number(text(value));
}

export function setMeta(database: Database, key: MetaKey, value: number): void {
  database.rows.put(rowKey(0, key), Buffer.from(String(value)));
}

export function rowText(database: Database, table: EngineTable, key: string): string | undefined {
  const value = database.rows.getBinary(rowKey(tableNumbers[table], key));
  return value && text(value);
}

export function setRowText(database: Database, table: EngineTable, key: string, value: string | undefined): void {
  const place = rowKey(tableNumbers[table], key);
  if (value === undefined) database.rows.remove(place);
  else database.rows.put(place, Buffer.from(value));
}

export function rowsInRange(
  database: Database,
  table: EngineTable,
  { prefix = "", after, reverse = false, limit }: RowRange & { readonly limit: number },
): [string, string][] {
  const number = tableNumbers[table];
  const first = rowKey(number, prefix);
  // UTF-8 has no byte 0xff: this key is behind all that begin with the prefix.
  const last = Buffer.concat([first, Buffer.of(0xff)]);
  const place = after === undefined ? undefined : rowKey(number, after);
  const found: [string, string][] = [];
  const range = reverse
    ? {
        start: place && Buffer.compare(place, last) < 0 ? place : last,
        end: first,
        inclusiveEnd: true,
        reverse: true,
        limit: limit + 1,
      }
    : { start: place && Buffer.compare(place, first) > 0 ? place : first, end: last, limit: limit + 1 };
  for (const { key, value } of database.rows.getRange(range)) {
    if (place && Buffer.compare(key, place) === 0) continue;
    if (found.length === limit) break;
    found.push([text(key.subarray(1)), text(value)]);
  }
  return found;
}
