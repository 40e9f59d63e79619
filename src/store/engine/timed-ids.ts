// Builds the flat arrays of times and ids. Index entries have times and half an id; the whole ids are read in the
// order of sequence numbers, which is the order they lie in on disk.

import type { TimedIds } from "../port.js";
import type { Entry } from "./order.js";
import type { Sight } from "./query.js";
import type { Slice } from "./slices.js";

const idBytes = 32;
const idsAtATime = 2_000;

export class TimedIdsBuilder {
  #times = new Float64Array(1_024);
  #seqs = new Float64Array(1_024);
  length = 0;

  /** Entries come in NIP-01 order. */
  add(entry: Pick<Entry, "time" | "seq">): void {
    if (this.length === this.#times.length) {
      this.#times = grown(this.#times);
      this.#seqs = grown(this.#seqs);
    }
    this.#times[this.length] = entry.time;
    this.#seqs[this.length] = entry.seq;
    this.length++;
  }

  async finish({ content }: Sight, slice: Slice, signal: AbortSignal | undefined): Promise<TimedIds> {
    const { length } = this;
    const times = this.#times.subarray(0, length);
    const order = ascending(this.#seqs.subarray(0, length));
    const seqs = Float64Array.from(order, (index) => this.#seqs[index] as number);
    const bySeq = new Uint8Array(length * idBytes);
    for (let from = 0; from < length; from += idsAtATime) {
      const to = Math.min(from + idsAtATime, length);
      content.backend.copyIds(seqs, bySeq, from, to);
      for (let index = from; index < to; index++) {
        const row = content.inMemory(seqs[index] as number);
        if (row) bySeq.set(Buffer.from(row.id, "hex"), index * idBytes);
      }
      if (to < length) await slice.rest(signal);
    }
    return inAscendingTime(times, order, bySeq);
  }
}

function grown(list: Float64Array): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(list.length * 2);
  larger.set(list);
  return larger;
}

/** Indices of a list in the order of its values. Sorting numbers that carry their index needs no callback. */
function ascending(values: Float64Array): Uint32Array {
  const shift = 2 ** Math.ceil(Math.log2(Math.max(2, values.length)));
  const largest = values.reduce((most, value) => Math.max(most, value), 0);
  if (largest * shift > Number.MAX_SAFE_INTEGER) {
    return Uint32Array.from(values.keys()).sort((a, b) => (values[a] as number) - (values[b] as number));
  }
  const packed = Float64Array.from(values, (value, index) => value * shift + index).sort();
  return Uint32Array.from(packed, (value) => value % shift);
}

/**
 * Entries came newest first and ids ascending within a second: seconds are taken from the end, ids of one second
 * in their order. An id that is gone meanwhile is zeros and is left out.
 */
function inAscendingTime(times: Float64Array, order: Uint32Array, bySeq: Uint8Array): TimedIds {
  const { length } = times;
  const placeOf = new Uint32Array(length);
  for (let place = 0; place < length; place++) placeOf[order[place] as number] = place;
  const sortedTimes = new Float64Array(length);
  const ids = new Uint8Array(length * idBytes);
  let out = 0;
  for (let end = length; end > 0; ) {
    let start = end - 1;
    while (start > 0 && times[start - 1] === times[end - 1]) start--;
    for (let index = start; index < end; index++) {
      const from = (placeOf[index] as number) * idBytes;
      if (isZero(bySeq, from)) continue;
      sortedTimes[out] = times[index] as number;
      ids.set(bySeq.subarray(from, from + idBytes), out * idBytes);
      out++;
    }
    end = start;
  }
  return { length: out, times: sortedTimes.subarray(0, out), ids: ids.subarray(0, out * idBytes) };
}

function isZero(bytes: Uint8Array, from: number): boolean {
  for (let index = from; index < from + idBytes; index++) if (bytes[index] !== 0) return false;
  return true;
}
