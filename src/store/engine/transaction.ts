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
import { isLocalRow, type PutResult, type RemovalCause, type TableName, type Transaction } from "../port.js";
import { MergedStreams } from "./candidates.js";
import { type Vanishing, vanishingKey } from "./content.js";
import {
  addressMarkKey,
  type DeletionMark,
  deletionTargets,
  idMarkKey,
  isDeletable,
  vanishedAtOnce,
  vanishMarkKey,
} from "./deletions.js";
import { maxKeyBytes, type PendingTables, Reading, type UnmarkedAuthors } from "./reading.js";
import { type AnyRow, isExpired, matchable, ofAuthor, pendingView, rowFields } from "./row.js";
import type { Batch } from "./view.js";

export class EngineTransaction extends Reading implements Transaction {
  #isOver = false;

  constructor(
    readonly batch: Batch,
    clock: Clock,
    unmarkedAuthors: UnmarkedAuthors,
    /** Only rows of this machine may be written. */
    readonly isLocal = false,
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
    this.#assertShared();
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
    this.#assertShared();
    const row = this.content.withId(id, pendingView);
    if (row) this.batch.remove(row, cause);
    return row !== undefined;
  }

  setRow<T>(table: TableName, key: string, value: T): void {
    this.assertOpen();
    assertKey(key);
    this.#assertShared(table, key);
    const text: string | undefined = JSON.stringify(value);
    if (text === undefined) throw new TypeError(`a row's value must be JSON (table ${table})`);
    this.batch.setRow(table, key, text);
  }

  deleteRow(table: TableName, key: string): void {
    this.assertOpen();
    assertKey(key);
    this.#assertShared(table, key);
    // Most deletions are a precaution: looking costs a fifth of a delete that every commit would carry to the disk.
    if (this.text(table, key) === undefined) return;
    this.batch.setRow(table, key, undefined);
  }

  pass(event: VerifiedEvent): void {
    this.assertOpen();
    this.#assertShared();
    this.batch.pass(event);
  }

  #assertShared(table = "events", key = ""): void {
    if (this.isLocal && !isLocalRow(table, key)) throw new Error(`a local work cannot write ${table} ${key}`);
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
