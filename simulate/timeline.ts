// Virtual time: things to do, in the order of their time and, within a moment, in the order they were planned.

interface Planned {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

const before = (a: Planned, b: Planned): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

export class Timeline {
  nowMs = 0;
  #heap: Planned[] = [];
  #order = 0;

  get nextMs(): number {
    return this.#heap[0]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  at(atMs: number, run: () => void): void {
    const planned = { atMs: Math.max(atMs, this.nowMs), order: this.#order++, run };
    const heap = this.#heap;
    let at = heap.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(planned, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = planned;
  }

  after(delayMs: number, run: () => void): void {
    this.at(this.nowMs + delayMs, run);
  }

  /** Runs the next thing and moves the time to it. */
  runNext(): void {
    const heap = this.#heap;
    const first = heap[0];
    if (!first) return;
    const last = heap.pop()!;
    if (heap.length > 0) {
      let at = 0;
      for (;;) {
        let child = at * 2 + 1;
        if (child >= heap.length) break;
        if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child += 1;
        if (!before(heap[child]!, last)) break;
        heap[at] = heap[child]!;
        at = child;
      }
      heap[at] = last;
    }
    this.nowMs = first.atMs;
    first.run();
  }
}
