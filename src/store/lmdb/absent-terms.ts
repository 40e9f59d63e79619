// Which tags nobody has used, known without asking the disk. Who follows a thousand threads asks for a thousand tags, and
// most of them have nothing: each look-up in vain costs as much as one that finds something. A Bloom filter over the
// hashed terms of tags, in memory and on disk; it is made when enough look-ups were in vain, from what is listed, a little
// at a time. What is removed stays in it: it may say "perhaps" where there is nothing, never the other way round.

import { setImmediate as nextTurn } from "node:timers/promises";
import { isOfTag, ofTag } from "../engine/row.js";
import type { Database } from "./database.js";
import { type TermKey, tagKeyOf, termKeyOf } from "./rows.js";

/** Of terms that `ofTag` makes: the only ones that are asked for by the thousand. */
const tagType = ofTag("", "").charCodeAt(0);
/** Terms looked at in one turn of the event loop. */
const termsATurn = 500;
const probes = 4;
const bitsAnEntry = 8;
const fewestBits = 2 ** 20;
/** 16 MiB. Beyond it the filter says "perhaps" more often. */
const mostBits = 2 ** 27;

export interface AbsentTermsOptions {
  readonly database: () => Database;
  readonly seed: number;
  /** All terms of rows in memory; later ones are told by `add`. */
  readonly inMemory: () => Iterable<string>;
}

export class AbsentTerms {
  readonly #options: AbsentTermsOptions;
  readonly #bits: Uint32Array;
  readonly #mask: number;
  readonly #making: Promise<void>;
  #isComplete = false;
  #isClosed = false;

  /** Begins to look at what is listed. */
  constructor(options: AbsentTermsOptions) {
    this.#options = options;
    const wanted = options.database().entryCount() * bitsAnEntry;
    let bits = fewestBits;
    while (bits < wanted && bits < mostBits) bits *= 2;
    this.#mask = bits - 1;
    this.#bits = new Uint32Array(bits / 32);
    for (const term of options.inMemory()) this.add(term);
    this.#making = this.#readDisk();
  }

  /** True: nothing is listed under the tag, in memory or on disk. */
  hasTag(letter: string, value: string): boolean {
    if (!this.#isComplete) return false;
    const bits = this.#bits;
    const { high, low } = tagKeyOf(letter, value, this.#options.seed);
    const step = high | 1;
    for (let probe = 0, place = low; probe < probes; probe++, place = (place + step) | 0) {
      const bit = place & this.#mask;
      if (((bits[bit >>> 5] as number) & (1 << (bit & 31))) === 0) return true;
    }
    return false;
  }

  /** Before anything is listed under a term. */
  add(term: string): void {
    if (isOfTag(term)) this.#mark(termKeyOf(term, this.#options.seed));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#making;
  }

  #mark({ high, low }: Pick<TermKey, "high" | "low">): void {
    const bits = this.#bits;
    const step = high | 1;
    for (let probe = 0, place = low; probe < probes; probe++, place = (place + step) | 0) {
      const bit = place & this.#mask;
      bits[bit >>> 5] = (bits[bit >>> 5] as number) | (1 << (bit & 31));
    }
  }

  async #readDisk(): Promise<void> {
    const { database } = this.#options;
    const found = (term: TermKey): void => this.#mark(term);
    for (let from: Buffer | undefined = Buffer.of(tagType); from; ) {
      await nextTurn();
      if (this.#isClosed) return;
      from = database().termsFrom(from, termsATurn, found);
    }
    this.#isComplete = true;
  }
}
