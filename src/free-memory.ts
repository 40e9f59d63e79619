// Keeps the server small while strangers make it busy. Two things pile up that nobody uses any more: buffers the collector
// has not looked at yet (it looks late, because their wrappers are small), and memory that is free between buffers in use,
// which glibc keeps for as long as the process lives. After a flood of large messages each is a hundred megabytes and more.
// So garbage is collected when the process has grown large, what is kept for a second reader goes if that was not enough,
// and `malloc_trim` gives back what is free. Where there is no glibc nothing is
// trimmed: other allocators give back by themselves.

import { readFileSync } from "node:fs";
import { type Clock, repeatedly } from "./base/clock.js";
import { collectGarbage } from "./base/collect-garbage.js";
import { forgetKeptValues } from "./base/kept-values.js";

const mebibyte = 2 ** 20;
const lookEveryMs = 1_000;
/** A flood fills a hundred megabytes in a second: then it is looked more often. */
const lookCloselyEveryMs = 250;
/** So much must have become free since the last time. */
const worthTrimmingBytes = 16 * mebibyte;
/** Trimming stops a busy server for some 20 ms, and it will want the memory again: while it is small that can wait. */
const leastBetweenTrimsMs = 15_000;
/** Looking at everything stops the server for some 50 ms. */
const leastBetweenMs = 2_000;
/** What was in use after the last look may grow by so much before the next. */
const growth = 1.25;

/** From where on garbage is collected, with `limitBytes` of memory for the process: a usual server never comes there. */
export const largeBytesFor = (limitBytes: number): number =>
  Math.max(128 * mebibyte, Math.min(320 * mebibyte, Math.floor(limitBytes * 0.6)));

export interface MemoryUse {
  /** Without mapped files: those are the store's, and the system's to take back. */
  readonly ownBytes: number;
  readonly bufferBytes: number;
}

/** When something is to be done: pure. */
export class MemoryWatch {
  #bufferBytes = 0;
  #freedBytes = 0;
  #collectAboveBytes: number;
  #collectedAtMs = Number.NEGATIVE_INFINITY;
  #trimmedAtMs = Number.NEGATIVE_INFINITY;

  constructor(readonly largeBytes: number) {
    this.#collectAboveBytes = largeBytes;
  }

  look({ ownBytes, bufferBytes }: MemoryUse, nowMs: number): "collect" | "trim" | "nothing" {
    this.#freedBytes += Math.max(0, this.#bufferBytes - bufferBytes);
    this.#bufferBytes = bufferBytes;
    if (ownBytes < this.largeBytes * 0.8) this.#collectAboveBytes = this.largeBytes;
    if (ownBytes > this.#collectAboveBytes && nowMs - this.#collectedAtMs >= leastBetweenMs) return "collect";
    const mayTrim = this.#isHalfLarge(ownBytes) || nowMs - this.#trimmedAtMs >= leastBetweenTrimsMs;
    return mayTrim && this.#freedBytes >= worthTrimmingBytes ? "trim" : "nothing";
  }

  trimmed(nowMs: number): void {
    this.#freedBytes = 0;
    this.#trimmedAtMs = nowMs;
  }

  /** True: it is still large, so what can be made again should go. */
  collected({ ownBytes, bufferBytes }: MemoryUse, nowMs: number): boolean {
    this.#bufferBytes = bufferBytes;
    this.#collectedAtMs = nowMs;
    this.#collectAboveBytes = Math.max(this.largeBytes, Math.floor(ownBytes * growth));
    return ownBytes > this.largeBytes;
  }

  nextLookMs({ ownBytes }: MemoryUse): number {
    return this.#isHalfLarge(ownBytes) ? lookCloselyEveryMs : lookEveryMs;
  }

  #isHalfLarge(ownBytes: number): boolean {
    return ownBytes > this.largeBytes / 2;
  }
}

/** What is done to the process; a test may put another in its place. */
interface ProcessMemory {
  readonly limitBytes: number;
  use(): MemoryUse;
  collect(): void;
  trim(): Promise<void>;
  forgetKept(): void;
}

export function returnFreeMemory(
  clock: Clock,
  onFault: (error: unknown) => void,
  memory: ProcessMemory = processMemory,
): { close(): Promise<void> } {
  const watch = new MemoryWatch(largeBytesFor(memory.limitBytes));
  let everyMs = lookEveryMs;
  const look = async (): Promise<void> => {
    const use = memory.use();
    everyMs = watch.nextLookMs(use);
    const wanted = watch.look(use, clock.monotonicMs());
    if (wanted === "nothing") return;
    if (wanted === "collect") memory.collect();
    watch.trimmed(clock.monotonicMs());
    await memory.trim();
    if (wanted === "collect" && watch.collected(memory.use(), clock.monotonicMs())) memory.forgetKept();
  };
  return repeatedly(clock, () => everyMs, look, onFault);
}

/** V8 lets go of code that was not run between several collections, such as that of a start. */
const collectionsAfterStart = 6;

/** What a start leaves behind is more than what the server needs afterwards. Returns how to cancel it. */
export function giveBackAfterStart(clock: Clock, delayMs: number, onFault: (error: unknown) => void): () => void {
  let left = collectionsAfterStart;
  const turn = (): void => {
    processMemory.collect();
    left -= 1;
    if (left > 0) cancel = clock.after(lookEveryMs, turn);
    else processMemory.trim().catch(onFault);
  };
  let cancel = clock.after(delayMs, turn);
  return () => cancel();
}

const processMemory: ProcessMemory = {
  // 0 where nothing limits it; more than there is where the limit is the system's own.
  limitBytes: process.constrainedMemory() || Number.POSITIVE_INFINITY,
  use() {
    const { rss, arrayBuffers } = process.memoryUsage();
    return { ownBytes: anonymousBytes() ?? rss, bufferBytes: arrayBuffers };
  },
  collect: collectGarbage,
  trim: async () => (await trimmer())?.(),
  forgetKept: forgetKeptValues,
};

function anonymousBytes(): number | undefined {
  try {
    const [, kibibytes] = /^RssAnon:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "latin1")) ?? [];
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1024;
  } catch {
    return undefined;
  }
}

// Loaded when it is needed first: most servers are never flooded.
let loading: Promise<(() => void) | undefined> | undefined;

function trimmer(): Promise<(() => void) | undefined> {
  loading ??= import("koffi")
    .then(({ load }) => {
      const trim = load("libc.so.6").func("int malloc_trim(size_t pad)");
      return () => void trim(0);
    })
    .catch(() => undefined);
  return loading;
}
