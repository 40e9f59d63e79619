// Candidates of one filter in NIP-01 order: its term lists in all layers and on disk, merged by a heap. A stream
// keeps a small buffer and the place it has reached, never an open cursor: it can rest for as long as it likes.

import { compareEntries, type Entry } from "./order.js";
import { tagText } from "./terms.js";

/** Where lists are: the backend, a layer, or what a plan found by itself. */
export interface Lists {
  scan(term: string, after: Entry | undefined, since: number, until: number, max: number): Entry[];
}

const smallestChunk = 4;
const usualChunk = 16;
const largestChunk = 512;

/** How much of each list to read first, when `limit` entries of `lists` lists are wanted. */
export const firstChunkOf = (limit: number, lists: number): number =>
  Math.min(usualChunk, Math.max(smallestChunk, Math.ceil((2 * limit) / lists)));

export class Stream {
  #buffer: Entry[];
  #tagText: Buffer | undefined;
  #index = 0;
  #chunk: number;
  #isLast: boolean;
  head: Entry | undefined;

  constructor(
    readonly lists: Lists,
    readonly term: string,
    readonly merged: MergedStreams,
  ) {
    const { since, until, firstChunk } = merged;
    this.#chunk = firstChunk;
    this.#buffer = lists.scan(term, undefined, since, until, firstChunk);
    this.#isLast = this.#buffer.length < firstChunk;
    this.head = this.#buffer[0];
  }

  /** How the tag that the term was made of is written in an event; kept, because every row of the list asks. */
  get tagText(): Buffer {
    this.#tagText ??= Buffer.from(tagText(this.term));
    return this.#tagText;
  }

  advance(): void {
    this.#index++;
    if (this.#index === this.#buffer.length && !this.#isLast) {
      this.#chunk = Math.min(this.#chunk * 4, largestChunk);
      const { since, until } = this.merged;
      this.#buffer = this.lists.scan(this.term, this.head, since, until, this.#chunk);
      this.#isLast = this.#buffer.length < this.#chunk;
      this.#index = 0;
    }
    this.head = this.#buffer[this.#index];
  }
}

/** Merges streams; an entry that is in several comes once. */
export class MergedStreams {
  readonly #heap: Stream[] = [];
  /** Time of each stream's head: most comparisons end here, in one small array instead of thousands of objects. */
  readonly #times: number[] = [];
  #last: Entry | undefined;
  /** The list in which the last entry was found (one of them, when there are several). */
  found: Stream | undefined;

  constructor(
    readonly since: number,
    readonly until: number,
    readonly firstChunk: number = usualChunk,
  ) {}

  /** Opens one more list. */
  add(lists: Lists, term: string): void {
    const stream = new Stream(lists, term, this);
    if (stream.head === undefined) return;
    this.#rise(this.#heap.length, stream, stream.head);
  }

  next(): Entry | undefined {
    for (;;) {
      const top = this.#heap[0];
      const entry = top?.head;
      if (!top || !entry) return undefined;
      top.advance();
      if (top.head !== undefined) this.#sink(top, top.head);
      else {
        const moved = this.#heap.pop() as Stream;
        this.#times.pop();
        if (moved !== top) this.#sink(moved, moved.head as Entry);
      }
      if (this.#last && compareEntries(this.#last, entry) === 0) continue;
      this.#last = entry;
      this.found = top;
      return entry;
    }
  }

  #isBefore(time: number, head: Entry, other: number): boolean {
    const otherTime = this.#times[other] as number;
    return time > otherTime || (time === otherTime && compareEntries(head, this.#heap[other]?.head as Entry) < 0);
  }

  #place(index: number, stream: Stream, time: number): void {
    this.#heap[index] = stream;
    this.#times[index] = time;
  }

  #rise(from: number, stream: Stream, head: Entry): void {
    let index = from;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#isBefore(head.time, head, parent)) break;
      this.#place(index, this.#heap[parent] as Stream, this.#times[parent] as number);
      index = parent;
    }
    this.#place(index, stream, head.time);
  }

  /** Puts a stream in the place of the first one, and then where it belongs. */
  #sink(stream: Stream, head: Entry): void {
    const times = this.#times;
    const { length } = times;
    let index = 0;
    for (let child = 1; child < length; child = index * 2 + 1) {
      let time = times[child] as number;
      if (child + 1 < length && (times[child + 1] as number) >= time) {
        const right = this.#heap[child + 1] as Stream;
        if (this.#isBefore(times[child + 1] as number, right.head as Entry, child)) child++;
        time = times[child] as number;
      }
      if (this.#isBefore(head.time, head, child)) break;
      this.#place(index, this.#heap[child] as Stream, time);
      index = child;
    }
    this.#place(index, stream, head.time);
  }
}
