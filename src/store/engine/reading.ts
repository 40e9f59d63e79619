// The reading half of the contract, for anybody (what is committed) and for transactions (their own writes too). Values of
// side tables are JSON text, so that nobody shares an object with the store.

import { type Clock, unixSeconds } from "../../base/clock.js";
import { type Address, addressText, type EventId, type Pubkey, type VerifiedEvent } from "../../nostr/event.js";
import type { Filter } from "../../nostr/filter.js";
import {
  type QueryOptions,
  type Reader,
  type RowRange,
  type Sequence,
  StoreClosedError,
  type StoredEvent,
  type StoredRow,
  type TableName,
} from "../port.js";
import type { EngineTable } from "./backend.js";
import type { Content } from "./content.js";
import { countMatches } from "./counting.js";
import { type DeletionMark, deletionCovering } from "./deletions.js";
import { defaultPageRows, PagedQuery, type Sight, Slice } from "./query.js";
import { type AnyRow, isExpired } from "./row.js";

export abstract class Reading implements Reader {
  constructor(
    protected readonly content: Content,
    protected readonly clock: Clock,
    /** Authors nobody has a mark of: most events need no look-up. */
    protected readonly unmarkedAuthors: UnmarkedAuthors,
  ) {}

  protected abstract get view(): Sequence;
  protected abstract get pending(): PendingTables | undefined;
  protected abstract get isClosed(): boolean;

  async event(id: EventId): Promise<StoredEvent | undefined> {
    this.assertOpen();
    return this.#unlessExpired(this.content.withId(id, this.view));
  }

  async has(id: EventId): Promise<boolean> {
    this.assertOpen();
    const row = this.content.withId(id, this.view);
    return row !== undefined && !isExpired(row, unixSeconds(this.clock));
  }

  async latest(address: Address): Promise<StoredEvent | undefined> {
    this.assertOpen();
    return this.#unlessExpired(this.content.atAddress(addressText(address), this.view));
  }

  async *query(filters: readonly Filter[], options: QueryOptions = {}): AsyncGenerator<readonly StoredRow[]> {
    this.assertOpen();
    yield* this.#whileOpen(this.#paged(filters, options).pages());
  }

  queryAtOnce(
    filters: readonly Filter[],
    options: QueryOptions,
    take: (page: readonly StoredRow[]) => void,
  ): AsyncIterable<readonly StoredRow[]> | undefined {
    this.assertOpen();
    const rest = this.#paged(filters, options).atOnce(take);
    return rest && this.#whileOpen(rest);
  }

  async count(filters: readonly Filter[], options: Pick<QueryOptions, "signal"> = {}): Promise<number> {
    this.assertOpen();
    return countMatches(this.sight(), filters, new Slice(this.clock, this.content.turns), options.signal);
  }

  async deletionOf(event: VerifiedEvent): Promise<EventId | undefined> {
    this.assertOpen();
    return this.deletionCovering(event);
  }

  async row<T>(table: TableName, key: string): Promise<T | undefined> {
    this.assertOpen();
    const text = this.text(table, key);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  async *rows<T>(table: TableName, range: RowRange = {}): AsyncGenerator<readonly [string, T]> {
    for (const [key, text] of this.texts(table, range)) {
      this.assertOpen();
      yield [key, JSON.parse(text) as T];
    }
  }

  protected assertOpen(): void {
    if (this.isClosed) throw new StoreClosedError("the store is closed");
  }

  protected deletionCovering(event: VerifiedEvent): EventId | undefined {
    if (this.unmarkedAuthors.has(event.pubkey)) return undefined;
    return deletionCovering(event, (key) => this.mark(key));
  }

  protected mark(key: string): DeletionMark | undefined {
    const text = this.text("deletions", key);
    return text === undefined ? undefined : (JSON.parse(text) as DeletionMark);
  }

  protected text(table: EngineTable, key: string): string | undefined {
    const own = this.pending?.get(table, key);
    return own ? own.text : this.content.backend.tableRow(table, key);
  }

  /** Rows of a range, page by page: rows that change while somebody reads are seen as they are when their page is read. */
  protected *texts(table: EngineTable, range: RowRange): Generator<readonly [string, string]> {
    let left = range.limit ?? Number.POSITIVE_INFINITY;
    let after = range.after;
    while (left > 0) {
      const rest: RowRange = { ...range, ...(after === undefined ? {} : { after }) };
      const committed = this.content.backend.tableRows(table, { ...rest, limit: pageRows });
      const page = withPending(committed, this.pending?.changes.get(table), rest);
      for (const row of page) {
        after = row[0];
        yield row;
        if (--left <= 0) return;
      }
      if (committed.length < pageRows) return;
      after = (committed[committed.length - 1] as readonly [string, string])[0];
    }
  }

  /** A query that does not say up to where sees what there is when it begins. */
  protected sight(upTo?: Sequence): Sight {
    const { content, view } = this;
    return { content, view, upTo: Math.min(upTo ?? view, view), nowSeconds: unixSeconds(this.clock) };
  }

  #paged(filters: readonly Filter[], options: QueryOptions): PagedQuery {
    const bounds = {
      limit: options.limit ?? Number.POSITIVE_INFINITY,
      pageRows: options.pageRows ?? defaultPageRows,
      passingRows: options.passingRows ?? false,
      beforePage: options.beforePage,
      signal: options.signal,
    };
    return new PagedQuery(this.sight(options.upTo), filters, bounds, new Slice(this.clock, this.content.turns));
  }

  async *#whileOpen(pages: AsyncGenerator<readonly StoredRow[]>): AsyncGenerator<readonly StoredRow[]> {
    for await (const page of pages) {
      this.assertOpen();
      yield page;
    }
  }

  #unlessExpired(row: AnyRow | undefined): StoredEvent | undefined {
    if (!row || isExpired(row, unixSeconds(this.clock))) return undefined;
    return { seq: row.seq, event: row.event };
  }
}

const maxUnmarkedAuthors = 50_000;

/** Remembers authors without deletion marks; forgets all when there are too many. */
export class UnmarkedAuthors {
  readonly #authors = new Set<Pubkey>();

  has(pubkey: Pubkey): boolean {
    return this.#authors.has(pubkey);
  }

  add(pubkey: Pubkey): void {
    if (this.#authors.size >= maxUnmarkedAuthors) this.#authors.clear();
    this.#authors.add(pubkey);
  }

  delete(pubkey: Pubkey): void {
    this.#authors.delete(pubkey);
  }
}

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
