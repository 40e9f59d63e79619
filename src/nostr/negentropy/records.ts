// One side's events as negentropy sees them: sorted times and ids in flat memory, and sums of ids from the start, so
// that the fingerprint of any range costs the same however long it is. And how a range differs from a peer's list of ids.

import * as crypto from "node:crypto";
import { endianness } from "node:os";
import type { EventId } from "../event.js";
import { type Bound, boundAt, fingerprintBytes, idBytes } from "./wire.js";

/** Creation times and ids of many events, ascending (time, then id bytes): what negentropy compares. Flat, because there may be a million. */
export interface TimedIds {
  readonly length: number;
  readonly times: Float64Array;
  /** 32 bytes each. */
  readonly ids: Uint8Array;
}

const words = 8;
// A sum every 16 ids keeps a million records at 2 MB of sums; a range adds at most 30 ids to the difference of two.
const stride = 16;

const sha256Hex: (bytes: Uint8Array) => string =
  typeof crypto.hash === "function"
    ? (bytes) => crypto.hash("sha256", bytes, "hex")
    : (bytes) => crypto.createHash("sha256").update(bytes).digest("hex");

// A stranger can send a hundred thousand empty ranges in one message.
const emptyFingerprint = sha256Hex(new Uint8Array(idBytes + 1)).slice(0, fingerprintBytes * 2);

/** The same memory seen as words where the machine allows it, a copy otherwise. */
function wordsOf(bytes: Buffer): Uint32Array {
  const count = bytes.length / 4;
  if (endianness() === "LE" && bytes.byteOffset % 4 === 0) {
    return new Uint32Array(bytes.buffer, bytes.byteOffset, count);
  }
  return Uint32Array.from({ length: count }, (_, word) => bytes.readUInt32LE(word * 4));
}

export class NegentropyRecords {
  readonly length: number;
  readonly #times: Float64Array;
  readonly #ids: Buffer;
  /** The ids as 256-bit little-endian numbers, in eight words each. */
  readonly #idWords: Uint32Array;
  /** Sum (mod 2^256) of the first 0, 16, 32, … ids. */
  readonly #sums: Uint32Array;
  readonly #sum = new Uint32Array(words);
  readonly #preimage = Buffer.alloc(idBytes + 9);

  /** Throws when the list is not sorted or has a record twice: that is a mistake of the caller, not of a peer. */
  constructor(list: TimedIds) {
    this.length = list.length;
    this.#times = list.times;
    this.#ids = Buffer.from(list.ids.buffer, list.ids.byteOffset, list.length * idBytes);
    this.#idWords = wordsOf(this.#ids);
    this.#sums = new Uint32Array((Math.floor(list.length / stride) + 1) * words);
    const sum = this.#sum.fill(0);
    for (let index = 0; index < list.length; index++) {
      if (index % stride === 0) this.#sums.set(sum, (index / stride) * words);
      if (index > 0) this.#checkOrder(index);
      this.#add(sum, index);
    }
    if (list.length % stride === 0) this.#sums.set(sum, (list.length / stride) * words);
  }

  #checkOrder(index: number): void {
    const before = this.#times[index - 1]!;
    const time = this.#times[index]!;
    if (before < time || (before === time && this.#compareIds(index - 1, index) < 0)) return;
    throw new RangeError(`records must ascend by time and id: ${index} does not follow ${index - 1}`);
  }

  #compareIds(a: number, b: number): number {
    const from = b * idBytes;
    const own = a * idBytes;
    return this.#ids.compare(this.#ids, from, from + idBytes, own, own + idBytes);
  }

  #add(sum: Uint32Array, index: number, ids = this.#idWords): void {
    let carry = 0;
    const at = index * words;
    for (let word = 0; word < words; word++) {
      const total = sum[word]! + ids[at + word]! + carry;
      sum[word] = total;
      carry = total > 0xffffffff ? 1 : 0;
    }
  }

  #subtract(sum: Uint32Array, index: number, ids = this.#idWords): void {
    let borrow = 0;
    const at = index * words;
    for (let word = 0; word < words; word++) {
      const rest = sum[word]! - ids[at + word]! - borrow;
      sum[word] = rest;
      borrow = rest < 0 ? 1 : 0;
    }
  }

  /** Hex of the first 16 bytes of SHA-256 over the sum of the ids and their number. */
  fingerprint(lower: number, upper: number): string {
    return lower === upper ? emptyFingerprint : this.#hash(this.#sumOf(lower, upper), upper - lower);
  }

  #sumOf(lower: number, upper: number): Uint32Array {
    const sum = this.#sum;
    const low = Math.floor(lower / stride) * words;
    const high = Math.floor(upper / stride) * words;
    let borrow = 0;
    for (let word = 0; word < words; word++) {
      const rest = this.#sums[high + word]! - this.#sums[low + word]! - borrow;
      sum[word] = rest;
      borrow = rest < 0 ? 1 : 0;
    }
    for (let index = upper - (upper % stride); index < upper; index++) this.#add(sum, index);
    for (let index = lower - (lower % stride); index < lower; index++) this.#subtract(sum, index);
    return sum;
  }

  /** The fingerprint of all records without some of them and with others. */
  fingerprintBut(without: Iterable<EventId>, andAlso: Iterable<EventId>): string {
    let count = this.length;
    const sum = this.#sumOf(0, count);
    const read = (id: EventId): Uint32Array => wordsOf(Buffer.from(id, "hex"));
    for (const id of without) {
      this.#subtract(sum, 0, read(id));
      count--;
    }
    for (const id of andAlso) {
      this.#add(sum, 0, read(id));
      count++;
    }
    return this.#hash(sum, count);
  }

  #hash(sum: Uint32Array, count: number): string {
    const preimage = this.#preimage;
    for (let word = 0; word < words; word++) preimage.writeUInt32LE(sum[word]!, word * 4);
    let digits = 1;
    for (let rest = Math.floor(count / 128); rest > 0; rest = Math.floor(rest / 128)) digits++;
    let rest = count;
    for (let at = digits - 1; at >= 0; at--) {
      preimage[idBytes + at] = (rest % 128) + (at === digits - 1 ? 0 : 128);
      rest = Math.floor(rest / 128);
    }
    return sha256Hex(preimage.subarray(0, idBytes + digits)).slice(0, fingerprintBytes * 2);
  }

  /** Index of the first record from `from` on that is not before the bound. */
  lowerBound(from: number, bound: Bound): number {
    let low = from;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#isBefore(middle, bound)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #isBefore(index: number, { time, prefix }: Bound): boolean {
    const own = this.#times[index]!;
    if (own !== time) return own < time;
    const at = index * idBytes;
    return this.#ids.compare(prefix, 0, prefix.length, at, at + prefix.length) < 0;
  }

  /** The shortest bound that has record `index - 1` before it and record `index` after it. */
  boundBefore(index: number): Bound {
    const time = this.#times[index]!;
    if (this.#times[index - 1] !== time) return boundAt(time);
    const at = index * idBytes;
    let shared = 0;
    while (this.#ids[at + shared] === this.#ids[at - idBytes + shared]) shared++;
    return boundAt(time, this.#ids.subarray(at, at + shared + 1));
  }

  /** The ids of a range, one after the other: a view. */
  idsOf(lower: number, upper: number): Uint8Array {
    return this.#ids.subarray(lower * idBytes, upper * idBytes);
  }

  /** Index of the id at `at` in other bytes among the records of a range; -1 when it is not there. */
  indexOf(bytes: Buffer, at: number, lower: number, upper: number): number {
    const firstWord = bytes.readUInt32LE(at);
    for (let index = lower; index < upper; index++) {
      const own = index * idBytes;
      if (this.#idWords[index * words] !== firstWord) continue;
      if (this.#ids.compare(bytes, at, at + idBytes, own, own + idBytes) === 0) return index;
    }
    return -1;
  }

  id(index: number): EventId {
    return this.#ids.toString("hex", index * idBytes, (index + 1) * idBytes) as EventId;
  }
}

/** Two lists of ids of the same range: who lacks what. */
interface Difference {
  readonly have: readonly EventId[];
  readonly need: readonly EventId[];
}

// Honest peers list at most 31 ids a range: comparing each with each is quicker than hashing them. A stranger may
// list thousands that begin alike, so anything larger goes through a set.
const maxComparisons = 1024;

export function differenceOf(records: NegentropyRecords, lower: number, upper: number, theirs: Uint8Array): Difference {
  const comparisons = (upper - lower) * (theirs.length / idBytes);
  return comparisons <= maxComparisons
    ? compareEach(records, lower, upper, theirs)
    : compareBySet(records, lower, upper, theirs);
}

function compareEach(records: NegentropyRecords, lower: number, upper: number, theirs: Uint8Array): Difference {
  const bytes = Buffer.from(theirs.buffer, theirs.byteOffset, theirs.length);
  const need: EventId[] = [];
  const shared = new Uint8Array(upper - lower);
  for (let at = 0; at < bytes.length; at += idBytes) {
    const index = records.indexOf(bytes, at, lower, upper);
    if (index >= 0) shared[index - lower] = 1;
    else need.push(bytes.toString("hex", at, at + idBytes) as EventId);
  }
  const have: EventId[] = [];
  for (let index = lower; index < upper; index++) if (shared[index - lower] === 0) have.push(records.id(index));
  return { have, need };
}

function compareBySet(records: NegentropyRecords, lower: number, upper: number, theirs: Uint8Array): Difference {
  const bytes = Buffer.from(theirs.buffer, theirs.byteOffset, theirs.length);
  const rest = new Set<EventId>();
  for (let at = 0; at < bytes.length; at += idBytes) rest.add(bytes.toString("hex", at, at + idBytes) as EventId);
  const have: EventId[] = [];
  for (let index = lower; index < upper; index++) {
    const id = records.id(index);
    if (!rest.delete(id)) have.push(id);
  }
  return { have, need: [...rest] };
}
