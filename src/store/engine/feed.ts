// The feed: every subscriber reads the log at his own pace and waits at its end. Nothing is buffered for anybody, so
// a slow one costs nothing; recent changes are still in memory and cost no disk.

import type { BeforePage, FeedEntry, FeedSubscription, Sequence } from "../port.js";
import type { Content } from "./content.js";

const pageEntries = 500;
/** A page ends early here: five hundred events may be as many megabytes (threats row 34). */
const pageBytes = 1 << 20;
/** For readers of whom there may be thousands at once. */
const smallPageBytes = 256 * 1024;

interface FeedParts {
  readonly content: Content;
  readonly position: () => Sequence;
  readonly isClosed: () => boolean;
}

interface Reader {
  reached: Sequence;
  readonly signal: AbortSignal;
  readonly beforePage: BeforePage | undefined;
}

export class Feed {
  #waiting = new Set<() => void>();
  readonly #readers = new Set<Reader>();

  constructor(readonly parts: FeedParts) {}

  /** There is something new, or the store closes. */
  wake(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const go of waiting) go();
  }

  /** Everybody who reads has passed this number. */
  get passedByAll(): Sequence {
    const reading = [...this.#readers].filter(({ signal }) => !signal.aborted);
    return reading.reduce((least, { reached }) => Math.min(least, reached), this.parts.position());
  }

  subscribe(after: Sequence, signal: AbortSignal, beforePage?: BeforePage): FeedSubscription {
    return { [Symbol.asyncIterator]: () => this.#read({ reached: after, signal, beforePage }) };
  }

  async *#read(reader: Reader): AsyncGenerator<readonly FeedEntry[]> {
    this.#readers.add(reader);
    try {
      yield* this.#pages(reader);
    } finally {
      this.#readers.delete(reader);
    }
  }

  async *#pages(reader: Reader): AsyncGenerator<readonly FeedEntry[]> {
    const { signal, beforePage } = reader;
    while (!signal.aborted && !this.parts.isClosed()) {
      const position = this.parts.position();
      if (reader.reached >= position) {
        await this.#somethingNew(signal);
        continue;
      }
      const room = beforePage?.();
      if (room) {
        await room;
        if (signal.aborted || this.parts.isClosed()) return;
      }
      const { records, reached: end } = this.parts.content.backend.log(
        reader.reached,
        position,
        pageEntries,
        beforePage ? smallPageBytes : pageBytes,
      );
      const page = records.map(
        (record): FeedEntry =>
          record.type === "removed"
            ? { type: "removed", ...record.removal }
            : { seq: record.row.seq, type: "stored", event: record.row.event },
      );
      reader.reached = end;
      if (page.length > 0) yield page;
    }
  }

  #somethingNew(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const go = (): void => {
        signal.removeEventListener("abort", go);
        this.#waiting.delete(go);
        resolve();
      };
      this.#waiting.add(go);
      signal.addEventListener("abort", go, { once: true });
    });
  }
}
