// What is on its way to one client. Frames are written into slabs once and handed to the socket together, at most once
// a turn of the event loop and one batch at a time, so that a write that does not end shows a client that takes nothing.
// Never holds more than its owner lets it: `heldBytes` is what the limits of slow readers are compared with.

import type { Clock } from "../base/clock.js";
import type { FlushTurn } from "./flush-turn.js";
import { encodeRelayMessage, type RelayMessage, type RelayVerb } from "./messages.js";

/** The socket, as far as an outbox needs it: bytes in order, and a call when they are with the kernel. */
export interface ByteSink {
  write(bytes: Buffer, done: () => void): void;
}

/** Small enough for Node's buffer pool: most clients get one short frame at a time. */
const firstSlabBytes = 1024;
/** Handed over at once: more would hide from us whether the client takes anything. A full slab is a whole batch. */
const fullSlabBytes = 128 * 1024;
const closingBracket = 0x5d;

/** Full slabs nobody uses, as Node keeps small ones: a long answer is dozens, and the collector would stop for them. */
const freeSlabs: Buffer[] = [];
const mostFreeSlabs = 16;

function newSlab(bytes: number): Buffer {
  return bytes === fullSlabBytes
    ? (freeSlabs.pop() ?? Buffer.allocUnsafeSlow(fullSlabBytes))
    : Buffer.allocUnsafe(bytes);
}

export interface OutboxParts {
  readonly sink: ByteSink;
  readonly turn: FlushTurn;
  readonly clock: Clock;
  /** Beyond this the client is given up: `onOverflow` is called, once, and nothing more is kept. */
  readonly maxHeldBytes: () => number;
  readonly onOverflow: () => void;
  readonly onSent: (verb: RelayVerb) => void;
  /** Something was taken: a paused reader may go on. */
  readonly onTaken: () => void;
}

export class Outbox {
  readonly #parts: OutboxParts;
  #full: Buffer[] = [];
  #slab: Buffer | undefined;
  #used = 0;
  #nextSlabBytes = firstSlabBytes;
  #queuedBytes = 0;
  #writingBytes = 0;
  #writing: Buffer | undefined;
  #writingSinceMs = 0;
  #flushScheduled = false;
  #closed = false;
  #waiting: { below: number; resolve: () => void }[] = [];

  constructor(parts: OutboxParts) {
    this.#parts = parts;
  }

  get heldBytes(): number {
    return this.#queuedBytes + this.#writingBytes;
  }

  /** For how long the batch under way has not been taken; 0 when nothing is. */
  stalledMs(): number {
    return this.#writingBytes === 0 ? 0 : this.#parts.clock.monotonicMs() - this.#writingSinceMs;
  }

  send(message: RelayMessage): void {
    const text = encodeRelayMessage(message);
    const bytes = Buffer.byteLength(text);
    const at = this.#reserve(bytes);
    if (at < 0) return;
    this.#parts.onSent(message.type);
    this.#slab?.write(text, at);
  }

  /** `prefix` is `eventPrefix(subscription)`; `json` is copied now and may be reused by its owner. */
  sendEvent(prefix: Buffer, json: Buffer): void {
    const at = this.#reserve(prefix.length + json.length + 1);
    const slab = this.#slab;
    if (at < 0 || !slab) return;
    this.#parts.onSent("EVENT");
    prefix.copy(slab, at);
    json.copy(slab, at + prefix.length);
    slab[at + prefix.length + json.length] = closingBracket;
  }

  /** Resolves when less than `bytes` are held, or when the outbox is closed. */
  room(bytes: number): Promise<void> | undefined {
    if (this.#closed || this.heldBytes < bytes) return undefined;
    return new Promise((resolve) => this.#waiting.push({ below: bytes, resolve }));
  }

  /** Resolves when everything is with the kernel, or when the outbox is closed. */
  async drained(): Promise<void> {
    await this.room(1);
  }

  close(): void {
    this.#closed = true;
    this.#full = [];
    this.#slab = undefined;
    this.#queuedBytes = 0;
    this.#wake();
  }

  /** Makes place for one whole text frame of `payloadBytes`, writes its header; returns where the payload begins, or -1. */
  #reserve(payloadBytes: number): number {
    if (this.#closed) return -1;
    const headerBytes = payloadBytes < 126 ? 2 : payloadBytes < 65_536 ? 4 : 10;
    const frameBytes = headerBytes + payloadBytes;
    if (this.heldBytes + frameBytes > this.#parts.maxHeldBytes()) {
      this.close();
      this.#parts.onOverflow();
      return -1;
    }
    if (!this.#slab || this.#slab.length - this.#used < frameBytes) {
      this.#closeSlab();
      this.#slab = newSlab(Math.max(frameBytes, this.#nextSlabBytes));
      this.#nextSlabBytes = Math.min(this.#nextSlabBytes * 4, fullSlabBytes);
    }
    const at = this.#used;
    writeHeader(this.#slab, at, payloadBytes);
    this.#used += frameBytes;
    this.#queuedBytes += frameBytes;
    if (!this.#flushScheduled && this.#writingBytes === 0) {
      this.#flushScheduled = true;
      this.#parts.turn.add(this.#flush);
    }
    return at + headerBytes;
  }

  #closeSlab(): void {
    if (this.#slab && this.#used > 0) this.#full.push(this.#slab.subarray(0, this.#used));
    this.#slab = undefined;
    this.#used = 0;
  }

  readonly #flush = (): void => {
    this.#flushScheduled = false;
    if (this.#closed || this.#writingBytes > 0) return;
    this.#closeSlab();
    const batch = this.#takeBatch();
    if (batch.length === 0) return;
    // Who is getting a long answer gets its rest in full slabs, which nobody has to join.
    this.#nextSlabBytes = batch.length * 4 > fullSlabBytes ? fullSlabBytes : firstSlabBytes;
    this.#queuedBytes -= batch.length;
    this.#writingBytes = batch.length;
    this.#writing = batch;
    this.#writingSinceMs = this.#parts.clock.monotonicMs();
    this.#parts.sink.write(batch, this.#written);
  };

  #takeBatch(): Buffer {
    let bytes = this.#full[0]?.length ?? 0;
    let slabs = 1;
    for (let next = this.#full[1]; next && bytes + next.length <= fullSlabBytes; next = this.#full[++slabs]) {
      bytes += next.length;
    }
    const taken = this.#full.splice(0, slabs);
    return taken.length === 1 && taken[0] ? taken[0] : Buffer.concat(taken, bytes);
  }

  readonly #written = (): void => {
    this.#writingBytes = 0;
    const written = this.#writing?.buffer;
    this.#writing = undefined;
    if (written?.byteLength === fullSlabBytes && freeSlabs.length < mostFreeSlabs) {
      freeSlabs.push(Buffer.from(written));
    }
    this.#flush();
    this.#wake();
    if (!this.#closed) this.#parts.onTaken();
  };

  #wake(): void {
    if (this.#waiting.length === 0) return;
    const held = this.heldBytes;
    const ready = this.#waiting.filter((waiter) => this.#closed || held < waiter.below);
    if (ready.length === 0) return;
    this.#waiting = this.#waiting.filter((waiter) => !ready.includes(waiter));
    for (const waiter of ready) waiter.resolve();
  }
}

/** RFC 6455: one final text frame, not masked. */
function writeHeader(slab: Buffer, at: number, payloadBytes: number): void {
  slab[at] = 0x81;
  if (payloadBytes < 126) slab[at + 1] = payloadBytes;
  else if (payloadBytes < 65_536) {
    slab[at + 1] = 126;
    slab.writeUInt16BE(payloadBytes, at + 2);
  } else {
    slab[at + 1] = 127;
    slab.writeUInt32BE(0, at + 2);
    slab.writeUInt32BE(payloadBytes, at + 6);
  }
}
