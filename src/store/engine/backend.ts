// What the engine needs of a place that keeps things: look-ups in what is committed, and one atomic, durable commit
// at a time. All reads are synchronous and leave nothing open, so that no read ever pins old pages.

import type { EventId } from "../../nostr/event.js";
import type { RowRange, Sequence, TableName } from "../port.js";
import type { DiskRow, Entry, LogPage, Removal, Row } from "./row.js";

/** The port's tables, and the one that holds what deletions bind (deletions.ts). */
export type EngineTable = TableName | "deletions";

/** The last row of a shared log that a view has: its number, and the token that tells one history from another. */
export interface Applied {
  readonly n: number;
  readonly token: string;
}

/** Everything one commit changes. */
export interface Change {
  /** Sequence of the last change in it. */
  readonly position: Sequence;
  readonly added: readonly Row[];
  /** Rows that were committed before and are no more. */
  readonly removed: readonly Row[];
  readonly removals: readonly Removal[];
  /** JSON text, or undefined for a deleted row. */
  readonly tables: ReadonlyMap<EngineTable, ReadonlyMap<string, string | undefined>>;
  /** Written with the rest, if the change came out of a shared log. */
  readonly applied?: Applied;
}

export interface Backend {
  readonly position: Sequence;
  readonly events: number;
  readonly bytesOnDisk: number;
  /** Undefined: it never was a view of a shared log. */
  readonly applied: Applied | undefined;
  /** Entries of indexed rows after a place in the order. May contain rows that are also in a layer. */
  scan(term: string, after: Entry | undefined, since: number, until: number, max: number): Entry[];
  /** True: it is known that nothing is listed under the tag, in layers neither. */
  lacksTag(letter: string, value: string): boolean;
  seqOfId(id: EventId): Sequence | undefined;
  seqOfAddress(address: string): Sequence | undefined;
  /**
   * With `memory` the row lies there, until it is used again. `isWanted` may look at the header (not at the text) of a row
   * that is not copied yet: of large rows only those that are wanted cost their size.
   */
  row(seq: Sequence, memory?: PageMemory, isWanted?: (header: DiskRow) => boolean): DiskRow | undefined;
  /** Ids (32 bytes each) of rows, by ascending sequence numbers; zeros when a row is gone. */
  copyIds(seqs: Float64Array, into: Uint8Array, from: number, to: number): void;
  /** Records with `after < seq ≤ upTo`: at most `max`, and none after one that makes them `maxBytes` of text or more. */
  log(after: Sequence, upTo: Sequence, max: number, maxBytes: number): LogPage;
  tableRow(table: EngineTable, key: string): string | undefined;
  /** In order of the range; `limit` is always given. */
  tableRows(table: EngineTable, range: RowRange & { readonly limit: number }): readonly (readonly [string, string])[];
  /** Whether there is room for writing. */
  hasRoom(): Promise<boolean>;
  /** Waited for before works run, if it answers a promise: rows wait in memory to be indexed, and there are too many. */
  roomInMemory(): Promise<void> | undefined;
  /** Resolves when durable. Rejects with nothing of it written. */
  commit(change: Change): Promise<void>;
  /** Whether that rejection of `commit` means that the disk is full. */
  isFull(error: unknown): boolean;
  /** Called when readers see the newest commit: the time to start indexing in the background. */
  published(): void;
  /** `begun`: later commits are not in the copy. `done`: it is complete and on disk. Both reject when it fails. */
  copyTo(folder: string): { readonly begun: Promise<void>; readonly done: Promise<void> };
  /** Begins to forget the records of removals before that number. What stops it is left to the next time. */
  forgetRemovals(before: Sequence): void;
  compact(progress?: (bytes: number) => void): Promise<void>;
  close(): Promise<void>;
}

const firstBytes = 16 * 1024;
const blockBytes = 128 * 1024;
/** With the small first one, enough for a usual page. */
const mostBlocks = 3;
const mostKept = 4;

/**
 * Where the rows of a page lie for a reader who copies them at once: the same memory for every page. Big answers would
 * otherwise leave megabytes of buffers behind, and the collector would stop everybody for them (performance.md, P2). A
 * reader who rests in the middle of a page keeps hardly more than the page (threats row 25).
 */
export class PageMemory {
  #blocks: Buffer[] = [Buffer.allocUnsafeSlow(firstBytes)];
  #block = 0;
  #used = 0;
  #last = 0;

  /** Everything taken before may be overwritten from now on. */
  reuse(): void {
    if (this.#blocks.some(({ length }) => length > blockBytes)) {
      this.#blocks = this.#blocks.filter(({ length }) => length <= blockBytes);
    }
    if (this.#blocks.length > mostBlocks) this.#blocks.length = mostBlocks;
    this.#block = 0;
    this.#used = 0;
    this.#last = 0;
  }

  take(bytes: number): Buffer {
    if (this.#used + bytes > this.#current.length) {
      this.#block++;
      this.#used = 0;
      const next = this.#blocks[this.#block];
      if (!next || next.length < bytes) {
        this.#blocks.splice(this.#block, 0, Buffer.allocUnsafeSlow(Math.max(bytes, blockBytes)));
      }
    }
    this.#last = this.#used;
    this.#used += bytes;
    return this.#current.subarray(this.#last, this.#used);
  }

  /** What was taken last is not needed after all. */
  untake(): void {
    this.#used = this.#last;
  }

  get #current(): Buffer {
    return this.#blocks[this.#block] as Buffer;
  }
}

/** The memories nobody reads into at the moment. */
export class PageMemories {
  readonly #free: PageMemory[] = [];

  borrow(): PageMemory {
    return this.#free.pop() ?? new PageMemory();
  }

  giveBack(memory: PageMemory): void {
    memory.reuse();
    if (this.#free.length < mostKept) this.#free.push(memory);
  }
}
