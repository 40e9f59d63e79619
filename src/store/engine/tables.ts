// Side tables: committed rows of the backend under the writes of the running batch. Values are JSON text, so that
// nobody shares an object with the store.

import type { RowRange } from "../port.js";
import type { Backend, EngineTable } from "./backend.js";

export const maxKeyBytes = 1_000;
const pageRows = 256;

// UTF-16 puts surrogates before U+E000…U+FFFF, UTF-8 puts them after.
const byteRank = (unit: number): number => (unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit);

/** The order of UTF-8 bytes, without making them. */
export function compareUtf8(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const left = a.charCodeAt(index);
    const right = b.charCodeAt(index);
    if (left !== right) return byteRank(left) - byteRank(right);
  }
  return a.length - b.length;
}

export function isInRange(key: string, range: RowRange): boolean {
  if (range.prefix !== undefined && !key.startsWith(range.prefix)) return false;
  if (range.after === undefined) return true;
  return range.reverse ? compareUtf8(key, range.after) < 0 : compareUtf8(key, range.after) > 0;
}

/** Writes of the running batch; undefined is a deleted row. */
export class PendingTables {
  readonly changes = new Map<EngineTable, Map<string, string | undefined>>();

  get(table: EngineTable, key: string): { readonly text: string | undefined } | undefined {
    const rows = this.changes.get(table);
    return rows?.has(key) ? { text: rows.get(key) } : undefined;
  }

  /** Returns the function that takes the write back. */
  set(table: EngineTable, key: string, text: string | undefined): () => void {
    let rows = this.changes.get(table);
    if (!rows) {
      rows = new Map();
      this.changes.set(table, rows);
    }
    const had = rows.has(key);
    const before = rows.get(key);
    rows.set(key, text);
    const changed = rows;
    return () => {
      if (had) changed.set(key, before);
      else changed.delete(key);
      if (changed.size === 0) this.changes.delete(table);
    };
  }
}

export function tableText(
  backend: Backend,
  pending: PendingTables | undefined,
  table: EngineTable,
  key: string,
): string | undefined {
  const own = pending?.get(table, key);
  return own ? own.text : backend.tableRow(table, key);
}

/** Rows of a range, page by page: rows that change while somebody reads are seen as they are when their page is read. */
export function* tableTexts(
  backend: Backend,
  pending: PendingTables | undefined,
  table: EngineTable,
  range: RowRange,
): Generator<readonly [string, string]> {
  let left = range.limit ?? Number.POSITIVE_INFINITY;
  let after = range.after;
  while (left > 0) {
    const rest: RowRange = { ...range, ...(after === undefined ? {} : { after }) };
    const committed = backend.tableRows(table, { ...rest, limit: pageRows });
    const page = withPending(committed, pending?.changes.get(table), rest);
    for (const row of page) {
      after = row[0];
      yield row;
      if (--left <= 0) return;
    }
    if (committed.length < pageRows) return;
    after = (committed[committed.length - 1] as readonly [string, string])[0];
  }
}

function withPending(
  committed: readonly (readonly [string, string])[],
  changes: ReadonlyMap<string, string | undefined> | undefined,
  range: RowRange,
): readonly (readonly [string, string])[] {
  if (!changes || changes.size === 0) return committed;
  const last = committed.length === pageRows ? committed[committed.length - 1]?.[0] : undefined;
  // Own rows behind the end of a full page belong to a later page.
  const isInPage = (key: string): boolean =>
    isInRange(key, range) &&
    (last === undefined || (range.reverse ? compareUtf8(key, last) >= 0 : compareUtf8(key, last) <= 0));
  const page = committed.filter(([key]) => !changes.has(key));
  for (const [key, text] of changes) if (text !== undefined && isInPage(key)) page.push([key, text]);
  const direction = range.reverse ? -1 : 1;
  return page.sort((a, b) => direction * compareUtf8(a[0], b[0]));
}
