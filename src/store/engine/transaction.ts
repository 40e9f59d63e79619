// The writing half of the contract: NIP-01 replacement, NIP-09 deletion, NIP-62 vanishing, NIP-40 expiration, as one
// work sees them. Removals an event causes get lower numbers than the event itself: whoever follows the feed sees the
// old version go before the new one comes.

import { type Clock, unixSeconds } from "../../base/clock.js";
import {
  addressText,
  compareNewestFirst,
  type EventId,
  kinds,
  type Pubkey,
  type VerifiedEvent,
} from "../../nostr/event.js";
import type { FeedEntry, PutResult, RemovalCause, Sequence, TableName, Transaction } from "../port.js";
import type { Change, EngineTable } from "./backend.js";
import { MergedStreams } from "./candidates.js";
import { type Content, type Vanishing, vanishingKey } from "./content.js";
import {
  addressMarkKey,
  type DeletionMark,
  deletionTargets,
  idMarkKey,
  isDeletable,
  vanishedAtOnce,
  vanishMarkKey,
} from "./deletions.js";
import { maxKeyBytes, PendingTables, Reading, type UnmarkedAuthors } from "./reading.js";
import { type AnyRow, isExpired, matchable, ofAuthor, pendingView, type Removal, Row, rowFields } from "./row.js";

type Write =
  | { readonly type: "stored"; readonly row: Row }
  | { readonly type: "removed"; readonly row: Row; readonly removal: Removal };

/**
 * The writes of one commit, while its works run. They live in memory with sequence numbers that no reader has reached
 * yet; every write leaves a note how to take it back, so that a failing work loses exactly its own.
 */
export class Batch {
  readonly tables = new PendingTables();
  readonly #writes: Write[] = [];
  readonly #undo: (() => void)[] = [];

  constructor(
    readonly content: Content,
    /** Position before the batch. */
    readonly start: Sequence,
  ) {}

  get #nextSeq(): Sequence {
    return this.start + this.#writes.length + 1;
  }

  get isEmpty(): boolean {
    return this.#undo.length === 0;
  }

  /** A place to roll back to. */
  get mark(): number {
    return this.#undo.length;
  }

  rollBackTo(mark: number): void {
    while (this.#undo.length > mark) this.#undo.pop()?.();
  }

  store(event: VerifiedEvent): Row {
    const row = new Row(this.#nextSeq, event);
    const { active } = this.content.layers;
    active.add(row);
    this.#writes.push({ type: "stored", row });
    this.#undo.push(() => {
      this.#writes.pop();
      active.drop(row);
    });
    return row;
  }

  remove(found: AnyRow, cause: RemovalCause): void {
    const seq = this.#nextSeq;
    const { active } = this.content.layers;
    // A row on disk is taken into memory until the commit is published: readers see it from there meanwhile.
    const row = found instanceof Row ? found : new Row(found.seq, found.event);
    row.removedAt = seq;
    if (row !== found) active.add(row);
    const { id, event, address } = row;
    const removal = { seq, id, pubkey: event.pubkey, kind: event.kind, address, cause };
    this.#writes.push({ type: "removed", row, removal });
    this.#undo.push(() => {
      this.#writes.pop();
      row.restore();
      if (row !== found) active.drop(row);
    });
  }

  setRow(table: EngineTable, key: string, text: string | undefined): void {
    this.#undo.push(this.tables.set(table, key, text));
  }

  change(): Change {
    const added: Row[] = [];
    const removed: Row[] = [];
    const removals: Removal[] = [];
    for (const write of this.#writes) {
      if (write.type === "stored") {
        if (!write.row.isRemoved) added.push(write.row);
      } else {
        removals.push(write.removal);
        if (write.row.seq <= this.start) removed.push(write.row);
      }
    }
    return { position: this.#nextSeq - 1, added, removed, removals, tables: this.tables.changes };
  }

  /** What the feed says about it: an event that came and went in one commit was never stored. */
  entries(): FeedEntry[] {
    return this.#writes.flatMap((write): FeedEntry[] => {
      if (write.type === "removed") return [{ type: "removed", ...write.removal }];
      return write.row.isRemoved ? [] : [{ seq: write.row.seq, type: "stored", event: write.row.event }];
    });
  }

  /** After the commit: removed rows leave the memory. A frozen layer keeps them until it is dropped as a whole. */
  settle(): void {
    for (const write of this.#writes) if (write.type === "removed") this.content.layers.active.drop(write.row);
  }
}

export class EngineTransaction extends Reading implements Transaction {
  #isOver = false;

  constructor(
    readonly batch: Batch,
    clock: Clock,
    unmarkedAuthors: UnmarkedAuthors,
  ) {
    super(batch.content, clock, unmarkedAuthors);
  }

  protected override get view(): number {
    return pendingView;
  }

  protected override get pending(): PendingTables {
    return this.batch.tables;
  }

  protected override get isClosed(): boolean {
    return false;
  }

  /** The work has ended: what it still does later must not reach another work's batch. */
  end(): void {
    this.#isOver = true;
  }

  protected override assertOpen(): void {
    if (this.#isOver) throw new Error("a transaction was used after its work had ended");
  }

  async put(event: VerifiedEvent): Promise<PutResult> {
    this.assertOpen();
    const nowSeconds = unixSeconds(this.clock);
    const stored = this.content.withId(event.id, pendingView);
    if (stored) return { stored: false, reason: isExpired(stored, nowSeconds) ? "expired" : "duplicate" };
    const row = rowFields(event);
    if (row.expiration !== undefined && row.expiration <= nowSeconds) return { stored: false, reason: "expired" };
    this.#learnMarksOf(event);
    if (this.deletionCovering(event) !== undefined) return { stored: false, reason: "deleted" };
    const current = row.address === undefined ? undefined : this.content.atAddress(row.address, pendingView);
    if (current && compareNewestFirst(current, event) < 0) return { stored: false, reason: "older" };
    if (current) this.batch.remove(current, "replaced");
    if (event.kind === kinds.deletion) this.#delete(event);
    if (event.kind === kinds.vanish) this.#vanish(event);
    const { seq } = this.batch.store(event);
    return { stored: true, seq, replaced: current?.event };
  }

  async remove(id: EventId, cause: RemovalCause): Promise<boolean> {
    this.assertOpen();
    const row = this.content.withId(id, pendingView);
    if (row) this.batch.remove(row, cause);
    return row !== undefined;
  }

  setRow<T>(table: TableName, key: string, value: T): void {
    this.assertOpen();
    assertKey(key);
    const text: string | undefined = JSON.stringify(value);
    if (text === undefined) throw new TypeError(`a row's value must be JSON (table ${table})`);
    this.batch.setRow(table, key, text);
  }

  deleteRow(table: TableName, key: string): void {
    this.assertOpen();
    assertKey(key);
    // Most deletions are a precaution: looking costs a fifth of a delete that every commit would carry to the disk.
    if (this.text(table, key) === undefined) return;
    this.batch.setRow(table, key, undefined);
  }

  #learnMarksOf({ pubkey }: VerifiedEvent): void {
    if (this.unmarkedAuthors.has(pubkey)) return;
    const marks = this.texts("deletions", { prefix: pubkey, limit: 1 });
    if (marks.next().done) this.unmarkedAuthors.add(pubkey);
  }

  #setMark(event: VerifiedEvent, key: string, mark: DeletionMark): void {
    this.unmarkedAuthors.delete(event.pubkey);
    const known = this.mark(key);
    if (known && (known.until ?? 0) >= (mark.until ?? 0)) return;
    this.batch.setRow("deletions", key, JSON.stringify(mark));
  }

  #delete(event: VerifiedEvent): void {
    const { ids, addresses } = deletionTargets(event);
    for (const id of ids) {
      this.#setMark(event, idMarkKey(event.pubkey, id), { by: event.id });
      const row = this.content.withId(id, pendingView);
      if (row && matchable(row).pubkey === event.pubkey && isDeletable(matchable(row).kind)) {
        this.batch.remove(row, "deletion");
      }
    }
    for (const address of addresses) {
      this.#setMark(event, addressMarkKey(address), { by: event.id, until: event.created_at });
      const row = this.content.atAddress(addressText(address), pendingView);
      if (row && row.created_at <= event.created_at) this.batch.remove(row, "deletion");
    }
  }

  #vanish(event: VerifiedEvent): void {
    this.#setMark(event, vanishMarkKey(event.pubkey), { by: event.id, until: event.created_at });
    const vanishing = { by: event.id, until: event.created_at };
    // Also of an earlier request that is not done: this one reaches at least as far.
    if (this.#removeSome(event.pubkey, vanishing)) this.#endVanishing(event.pubkey);
    else this.batch.setRow("deletions", vanishingKey(event.pubkey), JSON.stringify(vanishing));
  }

  /** One step of a request that its own commit did not finish. */
  continueVanishing(pubkey: Pubkey): void {
    this.assertOpen();
    const vanishing = this.content.vanishing.authors.get(pubkey);
    if (vanishing && this.#removeSome(pubkey, vanishing)) this.#endVanishing(pubkey);
  }

  #endVanishing(pubkey: Pubkey): void {
    const key = vanishingKey(pubkey);
    if (this.text("deletions", key) === undefined) return;
    this.batch.setRow("deletions", key, undefined);
  }

  /** True when nothing is left. */
  #removeSome(pubkey: Pubkey, { by, until }: Vanishing): boolean {
    const streams = new MergedStreams(0, until);
    this.content.open(ofAuthor(pubkey), streams);
    const rows: AnyRow[] = [];
    for (let entry = streams.next(); entry && rows.length < vanishedAtOnce; entry = streams.next()) {
      const row = this.content.anyRow(entry.seq, pendingView);
      if (row && row.id !== by && matchable(row).pubkey === pubkey) rows.push(row);
    }
    for (const row of rows) this.batch.remove(row, "vanish");
    return rows.length < vanishedAtOnce;
  }
}

function assertKey(key: string): void {
  if (key === "" || Buffer.byteLength(key) > maxKeyBytes) {
    throw new RangeError(`a row's key must have 1 to ${maxKeyBytes} bytes`);
  }
  if (!key.isWellFormed()) throw new TypeError("a row's key must be valid Unicode");
}
