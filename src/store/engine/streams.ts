// Candidates of one filter in NIP-01 order: its term lists in all layers and on disk, merged by a heap. A stream
// keeps a small buffer and the place it has reached, never an open cursor: it can rest for as long as it likes.

import { compareEntries, type Entry } from "./order.js";

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

class Stream {
  #buffer: Entry[];
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
  #last: Entry | undefined;
  /** The term in whose list the last entry was found (one of them, when there are several). */
  term = "";

  constructor(
    readonly since: number,
    readonly until: number,
    readonly firstChunk: number = usualChunk,
  ) {}

  /** Opens one more list. */
  add(lists: Lists, term: string): void {
    const stream = new Stream(lists, term, this);
    if (stream.head === undefined) return;
    this.#heap.push(stream);
    this.#rise(this.#heap.length - 1);
  }

  next(): Entry | undefined {
    for (;;) {
      const top = this.#heap[0];
      const entry = top?.head;
      if (!top || !entry) return undefined;
      top.advance();
      if (top.head === undefined) {
        const moved = this.#heap.pop() as Stream;
        if (moved !== top) this.#heap[0] = moved;
      }
      if (this.#heap.length > 1) this.#sink();
      if (this.#last && compareEntries(this.#last, entry) === 0) continue;
      this.#last = entry;
      this.term = top.term;
      return entry;
    }
  }

  #rise(start: number): void {
    const heap = this.#heap;
    const risen = heap[start] as Stream;
    let index = start;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(risen, heap[parent] as Stream)) break;
      heap[index] = heap[parent] as Stream;
      index = parent;
    }
    heap[index] = risen;
  }

  #sink(): void {
    const heap = this.#heap;
    const { length } = heap;
    const sunk = heap[0] as Stream;
    let index = 0;
    for (let child = 1; child < length; child = index * 2 + 1) {
      if (child + 1 < length && isBefore(heap[child + 1] as Stream, heap[child] as Stream)) child++;
      if (!isBefore(heap[child] as Stream, sunk)) break;
      heap[index] = heap[child] as Stream;
      index = child;
    }
    heap[index] = sunk;
  }
}

/** Streams in the heap have a head. */
const isBefore = (a: Stream, b: Stream): boolean => compareEntries(a.head as Entry, b.head as Entry) < 0;
