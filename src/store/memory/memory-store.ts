// A store that lives as long as the process: rows stay in the engine's layer, this holds the log and the tables. For tests
// and for servers that may forget.

import { type Clock, systemClock } from "../../base/clock.js";
import type { EventId } from "../../nostr/event.js";
import type { Applied, Backend, Change, EngineTable } from "../engine/backend.js";
import { type Layers, MemoryLayer } from "../engine/content.js";
import { EngineStore } from "../engine/engine.js";
import { compareUtf8, isInRange } from "../engine/reading.js";
import { type DiskRow, type Entry, type LogPage, LogPageDraft, type LogRecord, type Removal } from "../engine/row.js";
import type { RowRange, Sequence, Store } from "../port.js";

class SortedTable {
  readonly rows = new Map<string, string>();
  #keys: string[] | undefined;

  set(key: string, text: string | undefined): void {
    if (text === undefined ? this.rows.delete(key) : !this.rows.has(key)) this.#keys = undefined;
    if (text !== undefined) this.rows.set(key, text);
  }

  range(range: RowRange & { readonly limit: number }): [string, string][] {
    this.#keys ??= [...this.rows.keys()].sort(compareUtf8);
    const keys = this.#keys;
    const found: [string, string][] = [];
    const from = range.after ?? (range.reverse ? undefined : range.prefix);
    let index = from === undefined ? (range.reverse ? keys.length - 1 : 0) : placeOf(keys, from);
    if (range.reverse && from !== undefined) index--;
    for (const step = range.reverse ? -1 : 1; index >= 0 && index < keys.length; index += step) {
      const key = keys[index] as string;
      if (isInRange(key, range)) found.push([key, this.rows.get(key) as string]);
      else if (
        !range.reverse &&
        range.prefix !== undefined &&
        compareUtf8(key, range.prefix) > 0 &&
        !key.startsWith(range.prefix)
      )
        break;
      if (found.length >= range.limit) break;
    }
    return found;
  }
}

/** First index whose key is not before `key`. */
function placeOf(keys: readonly string[], key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareUtf8(keys[middle] as string, key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class MemoryBackend implements Backend {
  readonly layers: Layers = { active: new MemoryLayer(), frozen: undefined };
  readonly #tables = new Map<EngineTable, SortedTable>();
  readonly #removals = new Map<Sequence, Removal>();
  position: Sequence = 0;
  readonly bytesOnDisk = 0;
  applied: Applied | undefined;

  get events(): number {
    return this.layers.active.size;
  }

  scan(): Entry[] {
    return [];
  }

  lacksTag(): boolean {
    return false;
  }

  seqOfId(_id: EventId): undefined {
    return undefined;
  }

  seqOfAddress(_address: string): undefined {
    return undefined;
  }

  row(_seq: Sequence): DiskRow | undefined {
    return undefined;
  }

  copyIds(): void {}

  log(after: Sequence, upTo: Sequence, max: number, maxBytes: number): LogPage {
    const page = new LogPageDraft(max, maxBytes);
    for (let seq = after + 1; seq <= upTo; seq++) {
      const row = this.layers.active.row(seq);
      const removal = this.#removals.get(seq);
      const record: LogRecord | undefined = row ? { type: "stored", row } : removal && { type: "removed", removal };
      if (record && page.add(record)) return { records: page.records, reached: seq };
    }
    return { records: page.records, reached: upTo };
  }

  tableRow(table: EngineTable, key: string): string | undefined {
    return this.#tables.get(table)?.rows.get(key);
  }

  tableRows(table: EngineTable, range: RowRange & { readonly limit: number }): [string, string][] {
    return this.#tables.get(table)?.range(range) ?? [];
  }

  async hasRoom(): Promise<boolean> {
    return true;
  }

  roomInMemory(): undefined {}

  async commit(change: Change): Promise<void> {
    for (const removal of change.removals) this.#removals.set(removal.seq, removal);
    for (const [name, rows] of change.tables) {
      const table = this.#tables.get(name) ?? new SortedTable();
      this.#tables.set(name, table);
      for (const [key, text] of rows) table.set(key, text);
    }
    this.position = change.position;
    this.applied = change.applied ?? this.applied;
  }

  isFull(_error: unknown): boolean {
    return false;
  }

  published(): void {}

  copyTo(): never {
    throw new Error("the memory backend keeps nothing on disk that could be copied");
  }

  forgetRemovals(before: Sequence): void {
    for (const seq of this.#removals.keys()) {
      if (seq >= before) return;
      this.#removals.delete(seq);
    }
  }

  async compact(): Promise<void> {}

  async close(): Promise<void> {}
}

interface MemoryStoreOptions {
  readonly clock?: Clock;
  readonly maxQueuedWorks?: number;
}

export function createMemoryStore(options: MemoryStoreOptions = {}): Store {
  const backend = new MemoryBackend();
  const { clock = systemClock, maxQueuedWorks } = options;
  return new EngineStore(backend, backend.layers, { clock, maxQueuedWorks });
}
