// Collections as several rooms need them: sets by key that keep nothing for keys without members, lists in groups, a heap,
// and bytes that come in pieces.

export class SetsByKey<Key, Value> extends Map<Key, Set<Value>> {
  add(key: Key, value: Value): void {
    const members = this.get(key);
    if (members) members.add(value);
    else this.set(key, new Set([value]));
  }

  remove(key: Key, value: Value): void {
    const members = this.get(key);
    members?.delete(value);
    if (members?.size === 0) this.delete(key);
  }
}

/** The list in order, in groups of `size`; the last may be smaller. */
export const groupsOf = <T>(list: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(list.length / size) }, (_, at) => list.slice(at * size, (at + 1) * size));

/**
 * A binary heap: the value with the smallest key comes first; among equal keys `isBefore` decides. Keys are kept in an
 * array of their own: most comparisons end there, without a look at the values.
 */
export class Heap<T> {
  readonly #keys: number[] = [];
  readonly #values: T[] = [];

  constructor(private readonly isBefore: (a: T, b: T) => boolean) {}

  get size(): number {
    return this.#values.length;
  }

  get first(): T | undefined {
    return this.#values[0];
  }

  add(key: number, value: T): void {
    let index = this.#values.length;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#isBefore(key, value, parent)) break;
      this.#put(index, this.#keys[parent] as number, this.#values[parent] as T);
      index = parent;
    }
    this.#put(index, key, value);
  }

  removeFirst(): T | undefined {
    const first = this.#values[0];
    const key = this.#keys.pop();
    const value = this.#values.pop();
    if (key !== undefined && this.#values.length > 0) this.replaceFirst(key, value as T);
    return first;
  }

  /** Takes the first value out and puts another, or the same with another key, where it belongs. */
  replaceFirst(key: number, value: T): void {
    const keys = this.#keys;
    const { length } = keys;
    let index = 0;
    for (let child = 1; child < length; child = index * 2 + 1) {
      const right = child + 1;
      if (right < length && (keys[right] as number) <= (keys[child] as number)) {
        if (this.#isBefore(keys[right] as number, this.#values[right] as T, child)) child = right;
      }
      if (this.#isBefore(key, value, child)) break;
      this.#put(index, keys[child] as number, this.#values[child] as T);
      index = child;
    }
    this.#put(index, key, value);
  }

  #isBefore(key: number, value: T, other: number): boolean {
    const otherKey = this.#keys[other] as number;
    return key < otherKey || (key === otherKey && this.isBefore(value, this.#values[other] as T));
  }

  #put(index: number, key: number, value: T): void {
    this.#keys[index] = key;
    this.#values[index] = value;
  }
}

/**
 * Bytes that come in pieces, kept as one. A list of pieces costs a stranger one byte each and us an object each: an
 * answer of sixteen megabytes in chunks of one byte would take gigabytes (threats.md rows 6 and 7).
 */
export class GatheredBytes {
  #bytes: Buffer = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(piece: Buffer): void {
    const length = this.#length + piece.length;
    if (this.#length === 0) {
      // Nearly always the only one: not copied.
      this.#bytes = piece;
    } else {
      if (length > this.#bytes.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(length, this.#length * 2));
        this.#bytes.copy(larger, 0, 0, this.#length);
        this.#bytes = larger;
      }
      piece.copy(this.#bytes, this.#length);
    }
    this.#length = length;
  }

  get all(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }
}
