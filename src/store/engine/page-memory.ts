// Where the rows of a page lie for a reader who copies them at once: the same memory for every page. Big answers would
// otherwise leave megabytes of buffers behind, and the collector would stop everybody for them (performance.md, P2).

const firstBytes = 16 * 1024;
/** More than a usual page; a block that had to be larger is not kept. */
const largestBytes = 512 * 1024;
const mostKept = 4;

export class PageMemory {
  #block = Buffer.allocUnsafeSlow(firstBytes);
  #used = 0;
  #last = 0;

  /** Everything taken before may be overwritten from now on. */
  reuse(): void {
    this.#used = 0;
    if (this.#block.length > largestBytes) this.#block = Buffer.allocUnsafeSlow(largestBytes);
  }

  take(bytes: number): Buffer {
    if (this.#used + bytes > this.#block.length) {
      // What lies in the old block is kept by those who took it.
      this.#block = Buffer.allocUnsafeSlow(Math.max(bytes, Math.min(this.#block.length * 4, largestBytes)));
      this.#used = 0;
    }
    this.#last = this.#used;
    this.#used += bytes;
    return this.#block.subarray(this.#last, this.#used);
  }

  /** What was taken last is not needed after all. */
  untake(): void {
    this.#used = this.#last;
  }
}

/** The memories nobody reads into at the moment. */
export class PageMemories {
  readonly #free: PageMemory[] = [];

  borrow(): PageMemory {
    return this.#free.pop() ?? new PageMemory();
  }

  giveBack(memory: PageMemory): void {
    memory.reuse();
    if (this.#free.length < mostKept) this.#free.push(memory);
  }
}
