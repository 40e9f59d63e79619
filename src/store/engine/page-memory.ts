// Where the rows of a page lie for a reader who copies them at once: the same memory for every page. Big answers would
// otherwise leave megabytes of buffers behind, and the collector would stop everybody for them (performance.md, P2).
// A reader who rests in the middle of a page keeps hardly more than the page (threats row 25).

const firstBytes = 16 * 1024;
const blockBytes = 128 * 1024;
/** With the small first one, enough for a usual page. */
const mostBlocks = 3;
const mostKept = 4;

export class PageMemory {
  #blocks: Buffer[] = [Buffer.allocUnsafeSlow(firstBytes)];
  #block = 0;
  #used = 0;
  #last = 0;

  /** Everything taken before may be overwritten from now on. */
  reuse(): void {
    if (this.#blocks.some(({ length }) => length > blockBytes)) {
      this.#blocks = this.#blocks.filter(({ length }) => length <= blockBytes);
    }
    if (this.#blocks.length > mostBlocks) this.#blocks.length = mostBlocks;
    this.#block = 0;
    this.#used = 0;
    this.#last = 0;
  }

  take(bytes: number): Buffer {
    if (this.#used + bytes > this.#current.length) {
      this.#block++;
      this.#used = 0;
      const next = this.#blocks[this.#block];
      if (!next || next.length < bytes) {
        this.#blocks.splice(this.#block, 0, Buffer.allocUnsafeSlow(Math.max(bytes, blockBytes)));
      }
    }
    this.#last = this.#used;
    this.#used += bytes;
    return this.#current.subarray(this.#last, this.#used);
  }

  /** What was taken last is not needed after all. */
  untake(): void {
    this.#used = this.#last;
  }

  get #current(): Buffer {
    return this.#blocks[this.#block] as Buffer;
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
