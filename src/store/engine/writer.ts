// The one writer. It takes everything that is queued, runs each work on top of the ones before, commits once, lets
// readers see it, tells listeners, and only then answers. A work that throws loses only its own writes; when a commit
// fails, its works are run again one at a time, so that one bad one cannot take the others with it (threats.md 24).

import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../../base/clock.js";
import type { Pubkey } from "../../nostr/event.js";
import {
  SharedLogError,
  StoreBusyError,
  StoreClosedError,
  StoreFullError,
  type Transaction,
  type TransactOptions,
} from "../port.js";
import { EngineTransaction } from "./transaction.js";
import type { Batch, Order, View } from "./view.js";

interface WriterParts {
  readonly view: View;
  readonly order: Order;
  readonly clock: Clock;
  readonly maxQueuedWorks: number;
}

interface QueuedWork {
  readonly work: (tx: Transaction) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly isLocal: boolean;
  readonly epoch: number | undefined;
}

/** A work that ran, and what it answers once its commit is durable. */
interface DoneWork {
  readonly item: QueuedWork;
  readonly value: unknown;
}

type Step = () => Promise<void>;

const maxWorksABatch = 2_000;
/** Works of one batch run without letting sockets in: not for longer than this. */
const maxBatchMs = 20;

export class Writer {
  #queue: QueuedWork[] = [];
  /** Works that wait for another's commit. */
  #riders: QueuedWork[] = [];
  /** Works that need no other machine. */
  #local: QueuedWork[] = [];
  #cancelRide: (() => void) | undefined;
  #running: Promise<void> | undefined;
  #isClosed = false;
  #step: Step | undefined;
  #catchingUp: { readonly promise: Promise<void>; readonly start: () => Promise<void> } | undefined;
  #lastCommitWorked = true;

  constructor(readonly parts: WriterParts) {}

  get lastCommitWorked(): boolean {
    return this.#lastCommitWorked;
  }

  get queuedWorks(): number {
    return this.#queue.length + this.#riders.length + this.#local.length;
  }

  transact<T>(work: (tx: Transaction) => Promise<T>, options: TransactOptions = {}): Promise<T> {
    if (this.#isClosed) return Promise.reject(new StoreClosedError("the store is closed"));
    if (this.queuedWorks >= this.parts.maxQueuedWorks) {
      return Promise.reject(new StoreBusyError(`more than ${this.parts.maxQueuedWorks} works wait for a commit`));
    }
    const { order, clock } = this.parts;
    return new Promise<T>((resolve, reject) => {
      const isLocal = options.isLocal === true;
      const item = { work, resolve: resolve as (value: unknown) => void, reject, isLocal, epoch: options.epoch };
      if (isLocal && order.isShared) this.#local.push(item);
      else if (options.mayWait && order.ridersWaitMs > 0) {
        this.#riders.push(item);
        this.#cancelRide ??= clock.after(order.ridersWaitMs, () => this.#takeRiders());
        return;
      } else this.#queue.push(item);
      this.#start();
    });
  }

  /** Brings what other machines have committed into the view; works wait meanwhile. */
  catchUp(): Promise<void> {
    if (this.#isClosed) return Promise.reject(new StoreClosedError("the store is closed"));
    if (!this.#catchingUp) {
      let start: () => Promise<void> = async () => undefined;
      const promise = new Promise<void>((resolve, reject) => {
        start = () => this.parts.order.catchUp().then(resolve, reject);
      });
      this.#catchingUp = { promise, start };
      this.#start();
    }
    return this.#catchingUp.promise;
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
    this.#takeRiders();
    await this.#running;
  }

  #takeRiders(): void {
    this.#cancelRide?.();
    this.#cancelRide = undefined;
    if (this.#riders.length === 0) return;
    this.#queue.push(...this.#riders.splice(0));
    this.#start();
  }

  #start(): void {
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    // Works that are handed over in the same turn share a commit.
    await Promise.resolve();
    let restedMs = this.parts.clock.monotonicMs();
    let looksForRoom = true;
    while (this.#queue.length > 0 || this.#local.length > 0 || this.#step || this.#catchingUp) {
      const step = this.#step;
      this.#step = undefined;
      if (step) await step();
      const catchingUp = this.#catchingUp;
      this.#catchingUp = undefined;
      if (catchingUp) await catchingUp.start();
      const local = this.#local;
      this.#local = [];
      if (local.length > 0) await this.#runLocal(local);
      if (this.#queue.length > 0) this.#takeRiders();
      const works = this.#queue;
      this.#queue = [];
      const left = works.length === 0 ? [] : await this.#runTogether(works, looksForRoom);
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
    const { view, clock, order } = this.parts;
    const { backend } = view.content;
    let done: DoneWork[] = [];
    let taken = 0;
    let hasBegun = false;
    // The works do not wait for it: that is a turn of the event loop, which may be long.
    const room = looksForRoom ? backend.hasRoom() : undefined;
    room?.catch(() => undefined);
    try {
      await backend.roomInMemory();
      await this.#commit(async () => {
        hasBegun = true;
        const batch = view.begin();
        const startedMs = clock.monotonicMs();
        done = [];
        taken = 0;
        for (const item of works) {
          if (taken >= maxWorksABatch || batch.textLength >= order.batchBytes) break;
          if (taken % 32 === 31 && clock.monotonicMs() - startedMs > maxBatchMs) break;
          taken++;
          const outcome = await this.#runWork(batch, item);
          if (outcome) done.push({ item, value: outcome.value });
        }
        if (room && !batch.isEmpty) await roomOrNothing(room, batch);
        return batch;
      });
      for (const { item, value } of done) item.resolve(value);
    } catch (error) {
      if (!hasBegun) {
        for (const work of works) work.reject(error);
        return [];
      }
      await this.#afterFailure(
        done.map(({ item }) => item),
        error,
      );
    }
    return taken === works.length ? [] : works.slice(taken);
  }

  async #runWork(batch: Batch, item: QueuedWork): Promise<{ readonly value: unknown } | undefined> {
    const mark = batch.mark;
    const { clock, view, order } = this.parts;
    if (item.epoch !== undefined && order.epoch !== undefined && item.epoch !== order.epoch) {
      item.reject(new SharedLogError("not-leader", "another server leads by now"));
      return undefined;
    }
    const tx = new EngineTransaction(batch, clock, view.unmarkedAuthors, item.isLocal);
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

  async #commit(run: () => Promise<Batch>): Promise<void> {
    let isWritten = false;
    try {
      await this.parts.order.commit(async () => {
        const batch = await run();
        isWritten = !batch.isEmpty;
        return isWritten ? batch : undefined;
      });
    } catch (error) {
      this.#lastCommitWorked = false;
      throw error;
    }
    if (isWritten) this.#lastCommitWorked = true;
  }

  async #afterFailure(items: readonly QueuedWork[], error: unknown): Promise<void> {
    const isFull = this.#isFull(error);
    const isOver = !this.parts.order.mayRunAgain(error);
    if (isOver || (!isFull && items.length === 1)) {
      for (const item of items) item.reject(isFull ? fullError() : error);
      return;
    }
    for (const item of items) {
      if (isFull) await this.#runWithoutRoom(item);
      else await this.#runAlone(item);
    }
  }

  #isFull(error: unknown): boolean {
    // What is in the shared log was not refused, however full this disk is.
    if (error instanceof SharedLogError) return false;
    return error instanceof StoreFullError || this.parts.view.content.backend.isFull(error);
  }

  async #runAlone(item: QueuedWork): Promise<void> {
    let outcome: { readonly value: unknown } | undefined;
    let hasBegun = false;
    try {
      await this.#commit(async () => {
        hasBegun = true;
        const batch = this.parts.view.begin();
        outcome = await this.#runWork(batch, item);
        return batch;
      });
      if (outcome) item.resolve(outcome.value);
    } catch (error) {
      if (outcome || !hasBegun) item.reject(this.#isFull(error) ? fullError() : error);
    }
  }

  /** Works of this machine alone: the shared order is not asked. */
  async #runLocal(works: readonly QueuedWork[]): Promise<void> {
    const { view } = this.parts;
    const batch = view.begin();
    const done: DoneWork[] = [];
    for (const item of works) {
      const outcome = await this.#runWork(batch, item);
      if (outcome) done.push({ item, value: outcome.value });
    }
    try {
      if (!batch.isEmpty) await view.commit(batch);
      for (const { item, value } of done) item.resolve(value);
    } catch (error) {
      for (const { item } of done) item.reject(this.#isFull(error) ? fullError() : error);
    }
  }

  /** A full disk refuses writes, not questions: a work that writes nothing is answered, and an ephemeral event is passed on. */
  async #runWithoutRoom(item: QueuedWork): Promise<void> {
    const { view, order } = this.parts;
    const batch = view.begin();
    const outcome = await this.#runWork(batch, item);
    if (!outcome) return;
    if (batch.isLasting || (order.isShared && !batch.isEmpty)) {
      batch.rollBackTo(0);
      item.reject(fullError());
      return;
    }
    if (!batch.isEmpty) await view.commit(batch);
    item.resolve(outcome.value);
  }
}

/** Throws where there is none, with everything taken back that the works of the batch have written. */
async function roomOrNothing(room: Promise<boolean>, batch: Batch): Promise<void> {
  try {
    if (!(await room)) throw fullError();
  } catch (error) {
    batch.rollBackTo(0);
    throw error;
  }
}

const fullError = (): StoreFullError => new StoreFullError("there is no room on the store's disk");
