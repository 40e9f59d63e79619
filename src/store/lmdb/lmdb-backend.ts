// The engine's backend on LMDB. A commit appends to the log and to the side tables, with one fdatasync; the many
// index entries of new events stay in memory and are written later, sorted (indexing.ts). A row that is removed and
// may have entries on disk loses them in the transaction that removes it.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { EventId } from "../../nostr/event.js";
import type { Applied, Backend, Change, EngineTable, PageMemory } from "../engine/backend.js";
import { type Layers, MemoryLayer } from "../engine/content.js";
import { type DiskRow, type Entry, isOfTag, type LogPage, LogPageDraft, type LogRecord, Row } from "../engine/row.js";
import type { RowRange, Sequence } from "../port.js";
import { AbsentTerms } from "./absent-terms.js";
import { type Database, type DatabaseFiles, isDiskFull } from "./database.js";
import { forgetRemovals, Indexing, unindex } from "./indexing.js";
import {
  addressKey,
  appliedIn,
  decodeRemoval,
  emptyTables,
  encodeRemoval,
  encodeRow,
  entryBytes,
  idEnd,
  idOffset,
  isRemoval,
  LogRow,
  metaNumber,
  readSeq,
  rowsInRange,
  rowText,
  seqBytes,
  seqKey,
  setApplied,
  setMeta,
  setRowText,
  termBytes,
  termKeyOf,
  writeEntry,
  writeSeq,
  writeTerm,
  writeTime,
} from "./rows.js";

interface LmdbOptions {
  readonly files: DatabaseFiles;
  /** Instead of what the disk says. */
  readonly freeBytes?: () => Promise<number>;
  /** Writes are refused when less than this is free. */
  readonly reserveBytes: number;
  /** Rows in memory that make the next index run start. */
  readonly indexAtRows: number;
  /** Look-ups of tags in vain, after which the store remembers which tags there are. */
  readonly rememberTagsAfter: number;
  readonly seed: number;
}

const indexAtTextBytes = 16 * 2 ** 20;
const entriesATransaction = 2_000;
/** Beyond this many rows or bytes in memory, as a multiple of what starts an index run, commits wait for the index. */
const maxRowsInMemory = 4;

const wantedSeq = Buffer.alloc(seqBytes);
const scanStart = Buffer.alloc(entryBytes + 1);
const scanEnd = Buffer.alloc(entryBytes + 1, 0xff);

export class LmdbBackend implements Backend {
  readonly layers: Layers;
  readonly #options: LmdbOptions;
  readonly #seed: number;
  #database: Database;
  /** Entries from `scanStart` to `scanEnd`. */
  #scanned: (limit: number) => Entry[];
  /** Made when it is worth while. */
  #absent: AbsentTerms | undefined;
  #lookUpsInVain = 0;
  #indexing: Indexing | undefined;
  #indexRun: Promise<void> | undefined;
  /** Rows up to here may have entries on disk. */
  #indexedHigh: Sequence;
  /** The commit under way, when it removes rows. */
  #removing: Promise<void> | undefined;
  #isClosing = false;
  #isCompacting = false;
  #forgetting: Promise<void> | undefined;
  /** Tables that never had a row: each event asks some of them (bans), and most servers never write to them. */
  readonly #empty: Set<EngineTable>;
  position: Sequence;
  events: number;
  applied: Applied | undefined;

  constructor(database: Database, options: LmdbOptions) {
    this.#database = database;
    this.#scanned = database.entriesBetween(scanStart, scanEnd);
    this.#options = options;
    const [last] = [...database.log.getKeys({ reverse: true, limit: 1 })];
    this.position = last ? readSeq(last, 0) : 0;
    this.events = metaNumber(database, "events") ?? 0;
    this.applied = appliedIn(database);
    this.#seed = metaNumber(database, "seed") ?? options.seed;
    this.layers = { active: this.#newLayer(), frozen: undefined };
    this.#indexedHigh = this.position;
    this.#empty = emptyTables(database);
    const indexedUpTo = metaNumber(database, "indexedUpTo") ?? 0;
    for (const record of this.#records(indexedUpTo, this.position)) {
      if (record.type === "stored") this.layers.active.add(new Row(record.row.seq, record.row.event));
    }
  }

  get bytesOnDisk(): number {
    return this.#options.files.bytes();
  }

  scan(term: string, after: Entry | undefined, since: number, until: number, max: number): Entry[] {
    const key = termKeyOf(term, this.#seed);
    writeTerm(scanStart, key);
    // A key that continues another one comes right after it.
    if (after) writeEntry(scanStart, after);
    else {
      scanStart.fill(0, termBytes);
      writeTime(scanStart, until);
    }
    writeTerm(scanEnd, key);
    writeTime(scanEnd, since);
    const found = this.#scanned(max);
    if (found.length === 0 && isOfTag(term)) this.#lookedInVain();
    return found;
  }

  lacksTag(letter: string, value: string): boolean {
    return this.#absent?.hasTag(letter, value) ?? false;
  }

  seqOfId(id: EventId): Sequence | undefined {
    const value = this.#database.ids.getBinaryFast(Buffer.from(id, "hex"));
    return value && readSeq(value, 0);
  }

  seqOfAddress(address: string): Sequence | undefined {
    const value = this.#database.addresses.getBinaryFast(addressKey(address));
    return value && readSeq(value, 0);
  }

  row(seq: Sequence, memory?: PageMemory, isWanted?: (header: DiskRow) => boolean): DiskRow | undefined {
    const shared = this.#record(seq);
    if (!shared || isRemoval(shared)) return undefined;
    if (isWanted && !isWanted(new LogRow(seq, asBuffer(shared)))) return undefined;
    // Small copies come from Node's pool. Larger blocks would be fewer, but a slow reader's row would keep a whole one.
    const record = memory ? memory.take(shared.length) : Buffer.allocUnsafe(shared.length);
    record.set(shared.subarray(0, shared.length));
    return new LogRow(seq, record);
  }

  copyIds(seqs: Float64Array, into: Uint8Array, from: number, to: number): void {
    for (let index = from; index < to; index++) {
      const record = this.#record(seqs[index] as number);
      if (record) into.set(record.subarray(idOffset, idEnd), index * 32);
    }
  }

  log(after: Sequence, upTo: Sequence, max: number, maxBytes: number): LogPage {
    const page = new LogPageDraft(max, maxBytes);
    // Who keeps up finds the newest rows in memory; the first number that is not there (a removal has none) is read.
    let reached = after;
    for (; reached < upTo; reached++) {
      const row = this.layers.active.row(reached + 1) ?? this.layers.frozen?.row(reached + 1);
      if (!row || row.isRemoved) break;
      if (page.add({ type: "stored", row })) return { records: page.records, reached: reached + 1 };
    }
    for (const record of this.#records(reached, upTo)) {
      if (page.add(record)) return { records: page.records, reached: seqOf(record) };
    }
    return { records: page.records, reached: upTo };
  }

  tableRow(table: EngineTable, key: string): string | undefined {
    return this.#empty.has(table) ? undefined : rowText(this.#database, table, key);
  }

  tableRows(table: EngineTable, range: RowRange & { readonly limit: number }): [string, string][] {
    return rowsInRange(this.#database, table, range);
  }

  async hasRoom(): Promise<boolean> {
    const { files, freeBytes, reserveBytes } = this.#options;
    return (await (freeBytes?.() ?? files.freeBytes())) >= reserveBytes;
  }

  roomInMemory(): Promise<void> | undefined {
    const { active, frozen } = this.layers;
    const isCrowded =
      active.size > maxRowsInMemory * this.#options.indexAtRows ||
      active.textBytes > maxRowsInMemory * indexAtTextBytes;
    return frozen && isCrowded ? this.#indexRun : undefined;
  }

  async commit(change: Change): Promise<void> {
    const { added, removed, removals, tables, position, applied } = change;
    const events = this.events + added.length - removed.length;
    const database = this.#database;
    for (const table of tables.keys()) this.#empty.delete(table);
    const writing = database.write(() => {
      for (const row of added) database.log.put(seqKey(row.seq), encodeRow(row));
      for (const row of removed) {
        database.log.remove(seqKey(row.seq));
        if (row.seq <= this.#indexedHigh) unindex(database, row, this.#seed);
      }
      for (const removal of removals) database.log.put(seqKey(removal.seq), encodeRemoval(removal));
      for (const [table, rows] of tables) for (const [key, text] of rows) setRowText(database, table, key, text);
      if (events !== this.events) setMeta(database, "events", events);
      if (applied) setApplied(database, applied);
    });
    if (removed.length > 0) this.#removing = writing.catch(() => this.#indexing?.restart());
    await writing;
    this.events = events;
    this.position = position;
    if (applied) this.applied = applied;
  }

  isFull(error: unknown): boolean {
    return isDiskFull(error);
  }

  published(): void {
    const { active, frozen } = this.layers;
    if (this.#isClosing) return;
    if (frozen) {
      this.#startIndexing();
      return;
    }
    if (active.size < this.#options.indexAtRows && active.textBytes < indexAtTextBytes) return;
    this.layers.frozen = active;
    this.layers.active = this.#newLayer();
    this.#indexing = new Indexing(active, this.#seed);
    this.#indexedHigh = this.#indexing.upTo;
    this.#startIndexing();
  }

  #newLayer(): MemoryLayer {
    return new MemoryLayer((term) => this.#absent?.add(term));
  }

  #lookedInVain(): void {
    if (this.#absent || ++this.#lookUpsInVain < this.#options.rememberTagsAfter) return;
    this.#absent = new AbsentTerms({
      database: () => this.#database,
      seed: this.#seed,
      inMemory: () => [...this.layers.active.terms(), ...(this.layers.frozen?.terms() ?? [])],
    });
  }

  #startIndexing(): void {
    if (this.#indexRun) return;
    const run = this.#index().finally(() => {
      if (this.#indexRun === run) this.#indexRun = undefined;
    });
    this.#indexRun = run;
  }

  /** One transaction after the other until the frozen layer is on disk. Failing, it is tried again after a commit. */
  async #index(): Promise<void> {
    try {
      while (this.#indexing && !this.#isClosing) {
        const indexing = this.#indexing;
        const database = this.#database;
        if (!indexing.prepare()) {
          await nextTurn();
          continue;
        }
        // A row that a commit is removing is left out; should that commit fail, the row must not be missed.
        await this.#removing;
        await database.write(() => {
          indexing.writeSome(database, entriesATransaction);
          if (indexing.isDone) setMeta(database, "indexedUpTo", indexing.upTo);
        });
        if (!indexing.isDone) continue;
        this.#indexing = undefined;
        this.layers.frozen = undefined;
      }
    } catch {
      // The rows stay in memory and in the log: nothing is lost, and commits report the disk's trouble.
      this.#indexing?.restart();
    }
  }

  forgetRemovals(before: Sequence): void {
    if (this.#forgetting) return;
    const over = (): void => {
      this.#forgetting = undefined;
    };
    const isStopped = (): boolean => this.#isClosing || this.#isCompacting;
    this.#forgetting = forgetRemovals(this.#database, before, isStopped).then(over, over);
  }

  copyTo(folder: string): { readonly begun: Promise<void>; readonly done: Promise<void> } {
    return this.#options.files.copyInto(folder, this.#database);
  }

  async compact(progress?: (bytes: number) => void): Promise<void> {
    this.#isCompacting = true;
    try {
      await this.#forgetting;
      while (this.#indexRun) await this.#indexRun;
      const old = this.#database;
      this.#database = await this.#options.files.compacted(old, progress);
      this.#scanned = this.#database.entriesBetween(scanStart, scanEnd);
      await this.#options.files.discard(old);
    } finally {
      this.#isCompacting = false;
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#absent?.close();
    await this.#forgetting;
    while (this.#indexRun) await this.#indexRun;
    await this.#database.close();
  }

  /** Lies in a buffer that the next look-up overwrites. */
  #record(seq: Sequence): Uint8Array | undefined {
    writeSeq(wantedSeq, seq, 0);
    return this.#database.log.getBinaryFast(wantedSeq);
  }

  *#records(after: Sequence, upTo: Sequence): Generator<LogRecord> {
    const range = { start: seqKey(after + 1), end: seqKey(upTo + 1) };
    for (const { key, value } of this.#database.log.getRange(range)) {
      const seq = readSeq(key, 0);
      const record = asBuffer(value);
      if (isRemoval(record)) yield { type: "removed", removal: decodeRemoval(seq, record) };
      else
        yield {
          type: "stored",
          row: this.layers.active.row(seq) ?? this.layers.frozen?.row(seq) ?? new LogRow(seq, record),
        };
    }
  }
}

const seqOf = (record: LogRecord): Sequence => (record.type === "stored" ? record.row.seq : record.removal.seq);

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
