// A binary heap of moments. Entries are never removed early: the owner checks at the moment whether it still means anything.

export interface Moment<T> {
  readonly atMs: number;
  readonly value: T;
}

export class DueTimes<T> {
  readonly #heap: Moment<T>[] = [];

  get size(): number {
    return this.#heap.length;
  }

  peek(): Moment<T> | undefined {
    return this.#heap[0];
  }

  add(atMs: number, value: T): void {
    const heap = this.#heap;
    const moment = { atMs, value };
    let index = heap.push(moment) - 1;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = heap[above];
      if (!parent || parent.atMs <= atMs) break;
      heap[index] = parent;
      index = above;
    }
    heap[index] = moment;
  }

  pop(): Moment<T> | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first && last && heap.length > 0) this.#sink(last);
    return first;
  }

  #sink(moment: Moment<T>): void {
    const heap = this.#heap;
    let index = 0;
    for (;;) {
      const left = heap[2 * index + 1];
      const right = heap[2 * index + 2];
      const rightIsFirst = left && right && right.atMs < left.atMs;
      const child = rightIsFirst ? right : left;
      if (!child || child.atMs >= moment.atMs) break;
      heap[index] = child;
      index = 2 * index + (rightIsFirst ? 2 : 1);
    }
    heap[index] = moment;
  }
}
