// A binary heap of moments; of equal ones the first added comes first. Entries are never removed early: the owner checks at the moment whether it still means anything.

export interface Moment<T> {
  readonly atMs: number;
  readonly value: T;
}

interface Entry<T> extends Moment<T> {
  readonly order: number;
}

const isBefore = <T>(a: Entry<T>, b: Entry<T>): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

export class DueTimes<T> {
  readonly #heap: Entry<T>[] = [];
  #added = 0;

  get size(): number {
    return this.#heap.length;
  }

  peek(): Moment<T> | undefined {
    return this.#heap[0];
  }

  add(atMs: number, value: T): void {
    const heap = this.#heap;
    const entry = { atMs, value, order: this.#added++ };
    let index = heap.push(entry) - 1;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = heap[above];
      if (!parent || isBefore(parent, entry)) break;
      heap[index] = parent;
      index = above;
    }
    heap[index] = entry;
  }

  pop(): Moment<T> | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first && last && heap.length > 0) this.#sink(last);
    return first;
  }

  #sink(entry: Entry<T>): void {
    const heap = this.#heap;
    let index = 0;
    for (;;) {
      const left = heap[2 * index + 1];
      const right = heap[2 * index + 2];
      const rightIsFirst = left && right && isBefore(right, left);
      const child = rightIsFirst ? right : left;
      if (!child || isBefore(entry, child)) break;
      heap[index] = child;
      index = 2 * index + (rightIsFirst ? 2 : 1);
    }
    heap[index] = entry;
  }
}
