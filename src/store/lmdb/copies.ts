// Copies of records, many to a block: an answer of thousands of rows makes few large allocations instead of thousands
// of small ones, which is what the garbage collector pays for. A block lives as long as one of its copies.

/** A copy that is kept keeps its block: rows are read to be sent, and what is kept of them is their parsed event. */
const blockBytes = 64 * 1024;

export class Copies {
  #block = Buffer.alloc(0);
  #used = 0;

  of(bytes: Uint8Array): Buffer {
    const { length } = bytes;
    if (length > this.#block.length - this.#used) {
      if (length > blockBytes / 4) return Buffer.from(bytes.subarray(0, length));
      this.#block = Buffer.allocUnsafeSlow(blockBytes);
      this.#used = 0;
    }
    const copy = this.#block.subarray(this.#used, this.#used + length);
    copy.set(bytes.subarray(0, length));
    this.#used += length;
    return copy;
  }
}
