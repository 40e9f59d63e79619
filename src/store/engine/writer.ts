// The one writer. It takes everything that is queued, runs each work on top of the ones before, commits once, lets
// readers see it, tells listeners, and only then answers. A work that throws loses only its own writes; when a commit
// fails, its works are run again one at a time, so that one bad one cannot take the others with it (threats.md 24).

import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../../base/clock.js";
import type { Pubkey } from "../../nostr/event.js";
import {
  type FeedEntry,
  type Sequence,
  StoreBusyError,
  StoreClosedError,
  StoreFullError,
  type Transaction,
} from "../port.js";
import type { Content } from "./content.js";
import type { UnmarkedAuthors } from "./reading.js";
import { Batch, EngineTransaction } from "./transaction.js";

interface WriterParts {
  readonly content: Content;
  readonly clock: Clock;
  readonly unmarkedAuthors: UnmarkedAuthors;
  readonly maxQueuedWorks: number;
  /** Moves the readers' position; called before anybody is answered. */
  readonly publish: (position: Sequence, entries: readonly FeedEntry[]) => void;
  readonly position: () => Sequence;
}

interface QueuedWork {
  readonly work: (tx: Transaction) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Step = () => Promise<void>;

const maxWorksABatch = 2_000;
/** Works of one batch run without letting sockets in: not for longer than this. */
const maxBatchMs = 20;

export class Writer {
  #queue: QueuedWork[] = [];
  #running: Promise<void> | undefined;
  #isClosed = false;
  #step: Step | undefined;
  #lastCommitWorked = true;

  constructor(readonly parts: WriterParts) {}

  get lastCommitWorked(): boolean {
    return this.#lastCommitWorked;
  }

  get queuedWorks(): number {
    return this.#queue.length;
  }

  transact<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new StoreClosedError("the store is closed"));
    if (this.#queue.length >= this.parts.maxQueuedWorks) {
      return Promise.reject(new StoreBusyError(`more than ${this.parts.maxQueuedWorks} works wait for a commit`));
    }
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, resolve: resolve as (value: unknown) => void, reject });
      this.#start();
    });
  }

  /** One step of a request to vanish. */
  continueVanishing(pubkey: Pubkey): Promise<void> {
    return this.transact(async (tx) => (tx as EngineTransaction).continueVanishing(pubkey));
  }

  /** Runs something while no commit is under way. */
  exclusively(step: Step): Promise<void> {
    if (this.#isClosed) return Promise.reject(new StoreClosedError("the store is closed"));
    if (this.#step) return Promise.reject(new StoreBusyError("the store is being compacted or copied already"));
    return new Promise((resolve, reject) => {
      this.#step = () => step().then(resolve, reject);
      this.#start();
    });
  }

  /** Refuses new works; what is queued is still done. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running;
  }

  #start(): void {
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    // Works that are handed over in the same turn share a commit.
    await Promise.resolve();
    let restedMs = this.parts.clock.monotonicMs();
    let looksForRoom = true;
    while (this.#queue.length > 0 || this.#step) {
      const step = this.#step;
      this.#step = undefined;
      if (step) await step();
      const works = this.#queue;
      this.#queue = [];
      const left = await this.#runTogether(works, looksForRoom);
      looksForRoom = false;
      if (left.length > 0) this.#queue = [...left, ...this.#queue];
      if (this.parts.clock.monotonicMs() - restedMs > maxBatchMs) {
        await nextTurn();
        restedMs = this.parts.clock.monotonicMs();
        looksForRoom = true;
      }
    }
    // In the same turn as the last look at the queue: what comes later starts anew.
    this.#running = undefined;
  }

  /** Returns the works it had no time for. */
  async #runTogether(works: QueuedWork[], looksForRoom: boolean): Promise<QueuedWork[]> {
    const { content, clock } = this.parts;
    try {
      if (looksForRoom && !(await content.backend.hasRoom())) {
        for (const work of works) await this.#runWithoutRoom(work);
        return [];
      }
    } catch (error) {
      for (const work of works) work.reject(error);
      return [];
    }
    const batch = new Batch(content, this.parts.position());
    const startedMs = clock.monotonicMs();
    const done: { readonly item: QueuedWork; readonly value: unknown }[] = [];
    let taken = 0;
    for (const item of works) {
      if (taken >= maxWorksABatch || (taken % 32 === 31 && clock.monotonicMs() - startedMs > maxBatchMs)) break;
      taken++;
      const outcome = await this.#runWork(batch, item);
      if (outcome) done.push({ item, value: outcome.value });
    }
    try {
      await this.#commit(batch);
      for (const { item, value } of done) item.resolve(value);
    } catch (error) {
      await this.#runAgain(
        done.map(({ item }) => item),
        error,
      );
    }
    return taken === works.length ? [] : works.slice(taken);
  }

  async #runWork(batch: Batch, item: QueuedWork): Promise<{ readonly value: unknown } | undefined> {
    const mark = batch.mark;
    const tx = new EngineTransaction(batch, this.parts.clock, this.parts.unmarkedAuthors);
    try {
      return { value: await item.work(tx) };
    } catch (error) {
      batch.rollBackTo(mark);
      item.reject(error);
      return undefined;
    } finally {
      tx.end();
    }
  }

  async #commit(batch: Batch): Promise<void> {
    if (batch.isEmpty) return;
    const change = batch.change();
    try {
      await this.parts.content.backend.commit(change);
    } catch (error) {
      this.#lastCommitWorked = false;
      batch.rollBackTo(0);
      throw error;
    }
    this.#lastCommitWorked = true;
    this.parts.content.vanishing.follow(change.tables.get("deletions"));
    batch.settle();
    this.parts.publish(change.position, batch.entries());
    this.parts.content.backend.published();
  }

  async #runAgain(items: readonly QueuedWork[], error: unknown): Promise<void> {
    const isFull = this.parts.content.backend.isFull(error);
    if (!isFull && items.length === 1) {
      items[0]?.reject(error);
      return;
    }
    for (const item of items) {
      if (isFull) await this.#runWithoutRoom(item);
      else await this.#runAlone(item);
    }
  }

  async #runAlone(item: QueuedWork): Promise<void> {
    const batch = new Batch(this.parts.content, this.parts.position());
    const outcome = await this.#runWork(batch, item);
    if (!outcome) return;
    try {
      await this.#commit(batch);
      item.resolve(outcome.value);
    } catch (error) {
      item.reject(this.parts.content.backend.isFull(error) ? fullError() : error);
    }
  }

  /** A full disk refuses writes, not questions: a work that writes nothing is answered. */
  async #runWithoutRoom(item: QueuedWork): Promise<void> {
    const batch = new Batch(this.parts.content, this.parts.position());
    const outcome = await this.#runWork(batch, item);
    if (!outcome) return;
    if (batch.isEmpty) item.resolve(outcome.value);
    else {
      batch.rollBackTo(0);
      item.reject(fullError());
    }
  }
}

const fullError = (): StoreFullError => new StoreFullError("there is no room on the store's disk");
