// The feed: every subscriber reads the log at his own pace and waits at its end. Nothing is buffered for anybody, so
// a slow one costs nothing; recent changes are still in memory and cost no disk.

import type { FeedEntry, FeedSubscription, Sequence } from "../port.js";
import type { Content } from "./content.js";

const pageEntries = 500;
/** A page ends early here: five hundred events may be as many megabytes (threats row 34). */
const pageBytes = 1 << 20;

export interface FeedParts {
  readonly content: Content;
  readonly position: () => Sequence;
  readonly isClosed: () => boolean;
}

export class Feed {
  #waiting = new Set<() => void>();

  constructor(readonly parts: FeedParts) {}

  /** There is something new, or the store closes. */
  wake(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const go of waiting) go();
  }

  subscribe(after: Sequence, signal: AbortSignal): FeedSubscription {
    return { [Symbol.asyncIterator]: () => this.#pages(after, signal) };
  }

  async *#pages(after: Sequence, signal: AbortSignal): AsyncGenerator<readonly FeedEntry[]> {
    let reached = after;
    while (!signal.aborted && !this.parts.isClosed()) {
      const position = this.parts.position();
      if (reached >= position) {
        await this.#somethingNew(signal);
        continue;
      }
      const { records, reached: end } = this.parts.content.backend.log(reached, position, pageEntries, pageBytes);
      const page = records.map(
        (record): FeedEntry =>
          record.type === "removed"
            ? { type: "removed", ...record.removal }
            : { seq: record.row.seq, type: "stored", event: record.row.event },
      );
      reached = end;
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
