// Spreads verification over worker threads. What arrived within one turn of the event loop travels together, because
// a message costs as much as half a signature. Owns its threads and a bounded queue; knows nothing of policy.
//   verify → queue → (end of turn) → batches to the least busy threads → answers in order
// One that came alone, while no thread has work, is checked at once: it would wait for a message there and one back.
// Started as a thread, this file is the thread: packed signatures in, one byte each out, in the order they came.
// A thread that dies is replaced when there is work again; what it held is tried once more, then fails.

import { parentPort, Worker, workerData } from "node:worker_threads";
import type { NostrEvent, VerifiedEvent } from "../event.js";
import { chooseEngine, type EngineChoice, packSignatures, type SchnorrEngine, verifyPacked } from "./engines.js";

export interface Verifier {
  /** For the start banner, `doctor` and the metric: `native libsecp256k1.so.1`, `prebuilt libsecp256k1` or `wasm`. */
  readonly engine: string;
  /**
   * The event, proven; or undefined when its signature is not by its pubkey over its id. Takes only what parseEvent
   * made: the id it checks was computed from the content. Rejects with VerifierBusyError when too much waits.
   */
  verify(event: NostrEvent): Promise<VerifiedEvent | undefined>;
  close(): Promise<void>;
}

/** More waits for verification than the pool may hold. The sender should try again in a moment. */
export class VerifierBusyError extends Error {
  override readonly name = "VerifierBusyError";
}

export class VerifierClosedError extends Error {
  override readonly name = "VerifierClosedError";
}

/** Threads died over some events; others go on being checked, and the same events may be offered again. */
export class VerifierDiedError extends Error {
  override readonly name = "VerifierDiedError";
}

export interface VerifierPoolOptions {
  /** Threads. 0: verify on the calling thread. */
  readonly workers: number;
  readonly engine?: EngineChoice;
  /** Signatures in one message. */
  readonly maxBatchEvents?: number;
  /** Events held at a time, waiting or with a thread. */
  readonly maxHeldEvents?: number;
  /** Characters of their text: big events fill memory before the count does. */
  readonly maxHeldChars?: number;
  /** What the threads run; tests put one that dies here. */
  readonly workerModule?: URL;
}

export interface VerifierPool extends Verifier {
  /** Events waiting or with a thread. */
  readonly held: number;
  /** Resolves as soon as less than half of what may be held is: readers of sockets wait for it before reading on. */
  whenRoom(): Promise<void>;
}

export async function createVerifierPool(options: VerifierPoolOptions): Promise<VerifierPool> {
  const engine = await chooseEngine(options.engine);
  return options.workers > 0 ? new ThreadPool(engine, options) : new InlineVerifier(engine);
}

class InlineVerifier implements VerifierPool {
  readonly engine: string;
  readonly held = 0;
  readonly #schnorr: SchnorrEngine;
  #closed = false;

  constructor(schnorr: SchnorrEngine) {
    this.#schnorr = schnorr;
    this.engine = schnorr.name;
  }

  async verify(event: NostrEvent): Promise<VerifiedEvent | undefined> {
    if (this.#closed) throw new VerifierClosedError("the verifier is closed");
    return verifyPacked(this.#schnorr, packSignatures([event]))[0] === 1 ? (event as VerifiedEvent) : undefined;
  }

  async whenRoom(): Promise<void> {}

  async close(): Promise<void> {
    this.#closed = true;
  }
}

interface Waiting {
  readonly event: NostrEvent;
  readonly resolve: (verified: VerifiedEvent | undefined) => void;
  readonly reject: (error: Error) => void;
}

interface Batch {
  readonly waiting: readonly Waiting[];
  deaths: number;
}

/** A place for a thread. It answers its batches in order; the second is there so that it need not wait for us. */
interface Seat {
  worker: Worker | undefined;
  readonly batches: Batch[];
}

const maxBatchesASeat = 2;
/** A thread that has work is not given less than this: it is not waiting, and more may come meanwhile. */
const minSecondBatchEvents = 32;
const maxDeathsABatch = 2;

class ThreadPool implements VerifierPool {
  readonly engine: string;
  readonly #schnorr: SchnorrEngine;
  readonly #workerModule: URL;
  readonly #maxBatchEvents: number;
  readonly #maxHeldEvents: number;
  readonly #maxHeldChars: number;
  readonly #seats: readonly Seat[];
  #queue: Waiting[] = [];
  readonly #again: Batch[] = [];
  #held = 0;
  #heldChars = 0;
  #flushScheduled = false;
  #roomWaiters: (() => void)[] = [];
  #emptyWaiters: (() => void)[] = [];
  #closing: Promise<void> | undefined;

  constructor(engine: SchnorrEngine, options: VerifierPoolOptions) {
    this.engine = engine.name;
    this.#schnorr = engine;
    this.#workerModule = options.workerModule ?? new URL(import.meta.url);
    this.#maxBatchEvents = options.maxBatchEvents ?? 128;
    this.#maxHeldEvents = options.maxHeldEvents ?? 20_000;
    this.#maxHeldChars = options.maxHeldChars ?? 64 * 1024 * 1024;
    this.#seats = Array.from({ length: options.workers }, () => ({ worker: undefined, batches: [] }));
    for (const seat of this.#seats) seat.worker = this.#startWorker(seat);
  }

  get held(): number {
    return this.#held;
  }

  verify(event: NostrEvent): Promise<VerifiedEvent | undefined> {
    if (this.#closing) return Promise.reject(new VerifierClosedError("the verifier is closed"));
    if (this.#held >= this.#maxHeldEvents || this.#heldChars >= this.#maxHeldChars) {
      return Promise.reject(new VerifierBusyError(`${this.#held} events wait for verification`));
    }
    this.#held++;
    this.#heldChars += event.raw.length;
    return new Promise((resolve, reject) => {
      this.#queue.push({ event, resolve, reject });
      if (this.#flushScheduled) return;
      this.#flushScheduled = true;
      setImmediate(() => {
        this.#flushScheduled = false;
        this.#verifyOneHere();
        this.#flush();
      });
    });
  }

  whenRoom(): Promise<void> {
    return this.#hasRoom() ? Promise.resolve() : new Promise((resolve) => this.#roomWaiters.push(resolve));
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    if (this.#held > 0) await new Promise<void>((resolve) => this.#emptyWaiters.push(resolve));
    await Promise.all(
      this.#seats.map((seat) => {
        const worker = seat.worker;
        seat.worker = undefined;
        return worker?.terminate();
      }),
    );
  }

  #hasRoom(): boolean {
    return this.#held < this.#maxHeldEvents / 2 && this.#heldChars < this.#maxHeldChars / 2;
  }

  /** In WebAssembly one takes longer than the messages. */
  #verifyOneHere(): void {
    const isAlone = this.#queue.length === 1 && this.#held === 1;
    const [one] = isAlone && this.#schnorr.kind !== "wasm" ? this.#queue.splice(0) : [];
    if (!one) return;
    const isGood = verifyPacked(this.#schnorr, packSignatures([one.event]))[0] === 1;
    one.resolve(isGood ? (one.event as VerifiedEvent) : undefined);
    this.#release({ waiting: [one], deaths: 0 });
  }

  #flush(): void {
    for (;;) {
      const seat = this.#leastBusySeat();
      const batch = seat && this.#nextBatch();
      if (!batch) return;
      seat.worker ??= this.#startWorker(seat);
      seat.batches.push(batch);
      const packed = packSignatures(batch.waiting.map(({ event }) => event));
      seat.worker.postMessage(packed, [packed.buffer]);
    }
  }

  #leastBusySeat(): Seat | undefined {
    let best: Seat | undefined;
    for (const seat of this.#seats) if (!best || seat.batches.length < best.batches.length) best = seat;
    if (!best || best.batches.length >= maxBatchesASeat) return undefined;
    const isEnough =
      this.#again.length > 0 || this.#queue.length >= Math.min(minSecondBatchEvents, this.#maxBatchEvents);
    return best.batches.length === 0 || isEnough ? best : undefined;
  }

  #nextBatch(): Batch | undefined {
    const again = this.#again.shift();
    if (again || this.#queue.length === 0) return again;
    const idle = this.#seats.filter((seat) => seat.batches.length === 0).length;
    const share = Math.ceil(this.#queue.length / Math.max(1, idle));
    return { waiting: this.#queue.splice(0, Math.min(share, this.#maxBatchEvents)), deaths: 0 };
  }

  #startWorker(seat: Seat): Worker {
    // What the banner says: it is not chosen again.
    const work: ThreadWork = { verifyWith: this.#schnorr.kind };
    const worker = new Worker(this.#workerModule, { workerData: work });
    let cause: unknown;
    worker.on("message", (answers: Uint8Array) => this.#answered(seat, answers));
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", () => {
      if (seat.worker === worker) this.#died(seat, cause);
    });
    return worker;
  }

  #answered(seat: Seat, answers: Uint8Array): void {
    const batch = seat.batches.shift();
    batch?.waiting.forEach(({ event, resolve }, index) => {
      resolve(answers[index] === 1 ? (event as VerifiedEvent) : undefined);
    });
    if (batch) this.#release(batch);
    this.#flush();
  }

  #died(seat: Seat, cause: unknown): void {
    seat.worker = undefined;
    const [working, ...untouched] = seat.batches.splice(0);
    if (working && ++working.deaths >= maxDeathsABatch) {
      const error = new VerifierDiedError("a verifying thread died twice over the same events", { cause });
      for (const { reject } of working.waiting) reject(error);
      this.#release(working);
    } else if (working) {
      this.#again.push(working);
    }
    this.#again.push(...untouched);
    this.#flush();
  }

  #release(batch: Batch): void {
    this.#held -= batch.waiting.length;
    for (const { event } of batch.waiting) this.#heldChars -= event.raw.length;
    if (this.#hasRoom()) for (const wake of this.#roomWaiters.splice(0)) wake();
    if (this.#held === 0) for (const wake of this.#emptyWaiters.splice(0)) wake();
  }
}

interface ThreadWork {
  readonly verifyWith: EngineChoice;
}

const threadWork = workerData as Partial<ThreadWork> | undefined;
if (parentPort && threadWork?.verifyWith) {
  const port = parentPort;
  // Not awaited here: a module that waits cannot be part of one file. What arrives before is kept by the port.
  void chooseEngine(threadWork.verifyWith).then((engine) => {
    port.on("message", (packed: Uint8Array) => port.postMessage(verifyPacked(engine, packed)));
  });
}
