// Bytes that come in pieces, kept as one. A list of pieces costs a stranger one byte each and us an object each: an
// answer of sixteen megabytes in chunks of one byte would take gigabytes (threats.md rows 6 and 7).

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
