// Writes lines to a descriptor (standard error) without ever making the server wait: what waits is bounded, and lines beyond
// that are dropped and counted. Nobody may read any more: a terminal that was closed, a pipe whose reader ended or stands
// still, a full disk. Then lines are lost, and nothing else: flushing at the end of the process has a bound too.

import { write, writeSync } from "node:fs";

const maxWaitingBytes = 8 * 2 ** 20;
const tryAgainMs = 100;
const flushWithinMs = 1_000;
const writeOnItsWayMs = 50;

const isNotReady = (error: unknown): boolean =>
  ["EAGAIN", "EBUSY"].includes((error as NodeJS.ErrnoException | null)?.code ?? "");

/** For the end of the process: nothing else may happen meanwhile. */
const pauseThread = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

export class LogWriter {
  #waiting: string[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  #isWriting = false;
  /** The descriptor takes nothing at the moment; this is tried again. */
  #stuck: Buffer | undefined;

  constructor(
    private readonly descriptor: number,
    /** Stands in the log where lines are missing. */
    private readonly droppedLine: (count: number) => string,
  ) {}

  write(line: string): void {
    if (this.#waitingBytes + line.length > maxWaitingBytes) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    if (!this.#isWriting) this.#writeOn(this.#taken());
  }

  #taken(): Buffer {
    const lost = this.#dropped > 0 ? [this.droppedLine(this.#dropped)] : [];
    const text = Buffer.from([...this.#waiting, ...lost].join(""));
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#dropped = 0;
    return text;
  }

  #writeOn(text: Buffer): void {
    this.#isWriting = true;
    write(this.descriptor, text, (error, written) => {
      if (isNotReady(error)) return this.#tryLater(text);
      // What cannot be written is lost; the next lines are tried again, because a reader may come back.
      const rest = error ? Buffer.alloc(0) : text.subarray(written);
      if (rest.length > 0) return this.#writeOn(rest);
      this.#isWriting = false;
      if (this.#waiting.length > 0) this.#writeOn(this.#taken());
    });
  }

  #tryLater(text: Buffer): void {
    this.#stuck = text;
    setTimeout(() => {
      this.#stuck = undefined;
      this.#writeOn(text);
    }, tryAgainMs).unref();
  }

  /** Writes out what waits, as far as that is possible within a second. */
  flush(): void {
    // A write that is on its way is another thread's: nothing tells that it is done, but a moment is enough.
    pauseThread(writeOnItsWayMs);
    let text = Buffer.concat([this.#stuck ?? Buffer.alloc(0), this.#taken()]);
    const endMs = performance.now() + flushWithinMs;
    while (text.length > 0 && performance.now() < endMs) {
      try {
        text = text.subarray(writeSync(this.descriptor, text));
      } catch (error) {
        if (!isNotReady(error)) return;
        pauseThread(writeOnItsWayMs);
      }
    }
  }
}
