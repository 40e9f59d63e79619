// Which relay is due first. An entry may be stale (the relay was armed for an earlier time since): whoever is taken
// out recomputes what it waits for.

interface Entry<T> {
  readonly atMs: number;
  readonly of: T;
}

export class DueHeap<T> {
  #entries: Entry<T>[] = [];

  get size(): number {
    return this.#entries.length;
  }

  /** The earliest time, or Infinity. */
  get nextMs(): number {
    return this.#entries[0]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  add(atMs: number, of: T): void {
    const entries = this.#entries;
    let at = entries.length;
    const entry = { atMs, of };
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (entries[parent]!.atMs <= atMs) break;
      entries[at] = entries[parent]!;
      at = parent;
    }
    entries[at] = entry;
  }

  takeDue(nowMs: number): Entry<T> | undefined {
    const entries = this.#entries;
    const first = entries[0];
    if (!first || first.atMs > nowMs) return undefined;
    const last = entries.pop()!;
    if (entries.length > 0) {
      let at = 0;
      for (;;) {
        let child = at * 2 + 1;
        if (child >= entries.length) break;
        if (child + 1 < entries.length && entries[child + 1]!.atMs < entries[child]!.atMs) child += 1;
        if (entries[child]!.atMs >= last.atMs) break;
        entries[at] = entries[child]!;
        at = child;
      }
      entries[at] = last;
    }
    return first;
  }
}
