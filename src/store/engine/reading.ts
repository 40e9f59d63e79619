// The reading half of the contract, for anybody (what is committed) and for transactions (their own writes too).

import { type Clock, unixSeconds } from "../../base/clock.js";
import type { VerifiedEvent } from "../../nostr/event.js";
import { type Address, addressText } from "../../nostr/event.js";
import type { Filter } from "../../nostr/filter.js";
import type { EventId, Pubkey } from "../../nostr/ids.js";
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
import type { AnyRow, Content } from "./content.js";
import { countMatches } from "./counting.js";
import { type DeletionMark, deletionCovering } from "./deletions.js";
import { defaultPageRows, isExpired, queryPages, type Sight, Slice } from "./query.js";
import { type PendingTables, tableText, tableTexts } from "./tables.js";

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
    const bounds = {
      limit: options.limit ?? Number.POSITIVE_INFINITY,
      pageRows: options.pageRows ?? defaultPageRows,
      passingRows: options.passingRows ?? false,
      beforePage: options.beforePage,
      signal: options.signal,
    };
    for await (const page of queryPages(
      this.sight(options.upTo),
      filters,
      bounds,
      new Slice(this.clock, this.content.turns),
    )) {
      this.assertOpen();
      yield page;
    }
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
    const text = tableText(this.content.backend, this.pending, table, key);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  async *rows<T>(table: TableName, range: RowRange = {}): AsyncGenerator<readonly [string, T]> {
    for (const [key, text] of tableTexts(this.content.backend, this.pending, table, range)) {
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
    const text = tableText(this.content.backend, this.pending, "deletions", key);
    return text === undefined ? undefined : (JSON.parse(text) as DeletionMark);
  }

  /** A query that does not say up to where sees what there is when it begins. */
  protected sight(upTo?: Sequence): Sight {
    const { content, view } = this;
    return { content, view, upTo: Math.min(upTo ?? view, view), nowSeconds: unixSeconds(this.clock) };
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
