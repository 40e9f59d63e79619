// Terms in about the order of their keys, for an index run: neighbours share pages. The order only saves work, so a part
// of the hash is enough. Numbers, not objects: a run has tens of thousands of terms, and all of them would outlive
// several collections of garbage.

import { termKeyOf } from "./keys.js";

const hashBits = 25;

export class TermOrder {
  readonly #terms: readonly string[];
  readonly #seed: number;
  /** Type and beginning of the hash in the upper half, place in `#terms` in the lower one. */
  readonly #order: BigUint64Array;
  readonly #halves: Uint32Array;
  #prepared = 0;

  constructor(terms: readonly string[], seed: number) {
    this.#terms = terms;
    this.#seed = seed;
    this.#order = new BigUint64Array(terms.length);
    this.#halves = new Uint32Array(this.#order.buffer);
  }

  get length(): number {
    return this.#terms.length;
  }

  /** Hashes up to `max` more terms; true when all are done and in order. */
  prepare(max: number): boolean {
    if (this.#prepared === this.length) return true;
    const end = Math.min(this.#prepared + max, this.length);
    for (; this.#prepared < end; this.#prepared++) {
      const { type, high } = termKeyOf(this.#terms[this.#prepared] as string, this.#seed);
      this.#halves[2 * this.#prepared + lower] = this.#prepared;
      this.#halves[2 * this.#prepared + upper] = ((type << hashBits) | (high >>> (32 - hashBits))) >>> 0;
    }
    if (this.#prepared < this.length) return false;
    this.#order.sort();
    return true;
  }

  at(index: number): string {
    return this.#terms[this.#halves[2 * index + lower] as number] as string;
  }
}

/** Which half of a 64-bit number comes first in this machine's memory. */
const lower = new Uint32Array(BigUint64Array.of(1n).buffer)[0] === 1 ? 0 : 1;
const upper = 1 - lower;
