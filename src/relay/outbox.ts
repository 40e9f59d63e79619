// What is on its way to one client. Frames are written into slabs once and handed to the socket together, at most once
// a turn of the event loop and one batch at a time, so that a write that does not end shows a client that takes nothing.
// Never holds more than its owner lets it: `heldBytes` is what the limits of slow readers are compared with. What it
// holds alone counts in the budget of all that is on its way out; answers to pings do too.

import type { HeldBytes } from "../base/budget/bytes.js";
import type { Clock } from "../base/clock.js";
import { encodeRelayMessage, type RelayMessage, type RelayVerb } from "./messages.js";
import { SharedText } from "./shared-text.js";

/** What waits to be written: frames of this client, or a text that others wait for too. */
type Piece = Buffer | SharedText;

/** Small enough for Node's buffer pool: most clients get one short frame at a time. */
const firstSlabBytes = 1024;
/** Handed over at once: more would hide from us whether the client takes anything. A full slab is a whole batch. */
const fullSlabBytes = 128 * 1024;
const closingBracket = 0x5d;
const ending = Buffer.from([closingBracket]);
/** What may wait for one client while all together wait for much. */
const tightPauseBytes = 64 * 1024;

/** Slabs of these sizes are used again, as Node uses small ones: an answer is several, and the collector would stop for them. */
const slabSizes = [4 * 1024, 16 * 1024, 64 * 1024, fullSlabBytes];
const freeSlabs = new Map<number, Buffer[]>(slabSizes.map((bytes) => [bytes, []]));
const mostFreeSlabs = 16;
/** Their memory. A frame that several clients get may be as large, and is nobody's to use again. */
const slabs = new WeakSet<ArrayBufferLike>();

function newSlab(bytes: number): Buffer {
  const free = freeSlabs.get(bytes);
  if (!free) return Buffer.allocUnsafe(bytes);
  const slab = free.pop() ?? Buffer.allocUnsafeSlow(bytes);
  slabs.add(slab.buffer);
  return slab;
}

/** Nobody refers to it any more. */
function giveBack({ buffer }: Buffer): void {
  // Most buffers are small ones of Node's pool: that is seen by their size.
  const free = freeSlabs.get(buffer.byteLength);
  if (free && free.length < mostFreeSlabs && slabs.has(buffer)) free.push(Buffer.from(buffer));
}

/** One after the other, in a slab of their own. */
function joined(pieces: readonly Buffer[], bytes: number): Buffer {
  const slab = newSlab(slabSizes.find((size) => size >= bytes) ?? bytes);
  let at = 0;
  for (const piece of pieces) {
    at += piece.copy(slab, at);
    giveBack(piece);
  }
  return slab.subarray(0, bytes);
}

export interface OutboxParts {
  /** To the socket: all pieces in order, and one call when all are with the kernel. The list is used again after that call. */
  write(pieces: readonly Buffer[], done: () => void): void;
  readonly turn: FlushTurn;
  readonly clock: Clock;
  /** Its place in the budget of all that is on its way out. */
  readonly held: HeldBytes;
  /** Beyond this the client is given up: `onOverflow` is called, once, and nothing more is kept. */
  maxHeldBytes(): number;
  onOverflow(): void;
  onSent(verb: RelayVerb): void;
  /** Something was taken: a paused reader may go on. */
  onTaken(): void;
}

export class Outbox {
  readonly #parts: OutboxParts;
  #full: Piece[] = [];
  #slab: Buffer | undefined;
  #used = 0;
  #nextSlabBytes = firstSlabBytes;
  #queuedBytes = 0;
  #writingBytes = 0;
  /** The same array for every batch, like the one above: a new one for each delivery is what the collector would stop for. */
  readonly #writing: Piece[] = [];
  /** Of what waits or is being written: texts that are shared, which count once for all. */
  #sharedBytes = 0;
  #writingSinceMs = 0;
  #flushScheduled = false;
  #closed = false;
  #waiting: { below: number; resolve: () => void }[] = [];
  /** Made for the first write: many sockets never get one. */
  #written: (() => void) | undefined;

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
    const at = this.#reserve(headerBytes(bytes) + bytes);
    const slab = this.#slab;
    if (at < 0 || !slab) return;
    this.#parts.onSent(message.type);
    slab.write(text, writeHeader(slab, at, bytes));
  }

  /** `prefix` is `eventPrefix(subscription)`; `json` is copied now and may be reused by its owner. */
  sendEvent(prefix: Buffer, json: Buffer | string): void {
    const payloadBytes = prefix.length + (typeof json === "string" ? Buffer.byteLength(json) : json.length) + 1;
    const at = this.#reserve(headerBytes(payloadBytes) + payloadBytes);
    const slab = this.#slab;
    if (at < 0 || !slab) return;
    this.#parts.onSent("EVENT");
    writeEventFrame(slab, at, payloadBytes, prefix, json);
  }

  /** Nothing waits to be written: a frame that others get too would be alone, and need not be copied. */
  get isEmpty(): boolean {
    return this.#queuedBytes === 0;
  }

  /** A frame that `eventFrame` made; not copied, so that it may be shared but not changed. For an empty outbox. */
  sendFrame(frame: Buffer): void {
    if (!this.#hasRoomFor(frame.length)) return;
    this.#closeSlab();
    this.#full.push(frame);
    this.#queued(frame.length);
    if (!this.#closed) this.#parts.onSent("EVENT");
  }

  /** A large text is not copied: one copy serves everybody, however long each takes. */
  sendShared(prefix: Buffer, text: SharedText): void {
    const payloadBytes = prefix.length + text.length + 1;
    if (!this.#hasRoomFor(headerBytes(payloadBytes) + payloadBytes)) return;
    if (!text.hold()) {
      this.#giveUp();
      return;
    }
    // Holding it may have cost the slowest their place, and this may be one of them.
    if (this.#closed) {
      text.letGo();
      return;
    }
    const beginning = Buffer.allocUnsafe(headerBytes(payloadBytes) + prefix.length);
    prefix.copy(beginning, writeHeader(beginning, 0, payloadBytes));
    this.#trimSlab();
    this.#full.push(beginning, text, ending);
    this.#sharedBytes += text.length;
    this.#queued(beginning.length + text.length + ending.length);
    if (!this.#closed) this.#parts.onSent("EVENT");
  }

  /** The answer to a ping: it waits its turn and counts like everything else (threats.md row 36). */
  sendPong(payload: Buffer): void {
    const at = this.#reserve(2 + payload.length);
    if (at < 0 || !this.#slab) return;
    this.#slab[at] = 0x8a;
    this.#slab[at + 1] = payload.length;
    payload.copy(this.#slab, at + 2);
  }

  /** Resolves when more may be read from the store for this client: it has taken enough, or the outbox is closed. */
  roomToRead(usualBytes: number): Promise<void> | undefined {
    if (this.heldBytes < tightPauseBytes) return undefined;
    return this.room(this.#parts.held.isTight ? Math.min(usualBytes, tightPauseBytes) : usualBytes);
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
    if (this.#closed) return;
    this.#closed = true;
    for (const piece of [...this.#full, ...this.#writing]) if (piece instanceof SharedText) piece.letGo();
    this.#full = [];
    this.#writing.length = 0;
    this.#slab = undefined;
    this.#queuedBytes = 0;
    this.#sharedBytes = 0;
    this.#parts.held.close();
    this.#wake();
  }

  /** Makes place for one whole frame; returns where in the slab it begins, or -1. */
  #reserve(frameBytes: number): number {
    if (!this.#hasRoomFor(frameBytes)) return -1;
    if (!this.#slab || this.#slab.length - this.#used < frameBytes) {
      this.#closeSlab();
      this.#slab = newSlab(Math.max(frameBytes, this.#nextSlabBytes));
      this.#nextSlabBytes = Math.min(this.#nextSlabBytes * 4, fullSlabBytes);
    }
    const at = this.#used;
    this.#used += frameBytes;
    this.#queued(frameBytes);
    return this.#closed ? -1 : at;
  }

  #hasRoomFor(frameBytes: number): boolean {
    if (this.#closed) return false;
    if (this.heldBytes + frameBytes <= this.#parts.maxHeldBytes()) return true;
    return this.#giveUp();
  }

  #giveUp(): false {
    if (this.#closed) return false;
    this.close();
    this.#parts.onOverflow();
    return false;
  }

  #queued(frameBytes: number): void {
    this.#queuedBytes += frameBytes;
    if (!this.#parts.held.hold(this.heldBytes - this.#sharedBytes)) {
      this.#giveUp();
      return;
    }
    if (this.#flushScheduled || this.#writingBytes > 0) return;
    this.#flushScheduled = true;
    this.#parts.turn.add(this);
  }

  #closeSlab(): void {
    if (this.#slab && this.#used > 0) this.#full.push(this.#slab.subarray(0, this.#used));
    this.#slab = undefined;
    this.#used = 0;
  }

  /** Closes the slab and keeps only what is used of it: it may wait for long. */
  #trimSlab(): void {
    if (this.#slab && this.#used > 0) this.#full.push(Buffer.from(this.#slab.subarray(0, this.#used)));
    if (this.#slab) giveBack(this.#slab);
    this.#slab = undefined;
    this.#used = 0;
    this.#nextSlabBytes = firstSlabBytes;
  }

  /** Hands the next batch to the socket, unless one is under way. */
  flush(nowMs: number): void {
    this.#flushScheduled = false;
    if (this.#closed || this.#writingBytes > 0 || this.#queuedBytes === 0) return;
    this.#closeSlab();
    const bytes = this.#takeBatch();
    // Who is getting a long answer gets its rest in full slabs, which nobody has to join.
    this.#nextSlabBytes = bytes * 4 > fullSlabBytes ? fullSlabBytes : firstSlabBytes;
    this.#queuedBytes -= bytes;
    this.#writingBytes = bytes;
    this.#writingSinceMs = nowMs;
    this.#written ??= () => this.#taken();
    this.#parts.write(buffersOf(this.#writing), this.#written);
  }

  /**
   * About a full slab, and a shared text whole, to be written now; answers its bytes. Frames of our own are joined: the
   * kernel is asked once for them all.
   */
  #takeBatch(): number {
    if (this.#full.length === 1) {
      const only = this.#full.pop() as Piece;
      this.#writing.push(only);
      return only.length;
    }
    let bytes = 0;
    let count = 0;
    let isShared = false;
    for (let next = this.#full[0]; next && bytes < fullSlabBytes; next = this.#full[count]) {
      const isText = next instanceof SharedText;
      if (count > 0 && !isText && bytes + next.length > fullSlabBytes) break;
      isShared ||= isText;
      bytes += next.length;
      count++;
    }
    const taken = this.#full.splice(0, count);
    if (count < 2 || isShared) this.#writing.push(...taken);
    else this.#writing.push(joined(taken as Buffer[], bytes));
    return bytes;
  }

  #taken(): void {
    this.#writingBytes = 0;
    for (let piece = this.#writing.pop(); piece; piece = this.#writing.pop()) {
      if (piece instanceof SharedText) {
        this.#sharedBytes -= piece.length;
        piece.letGo();
      } else giveBack(piece);
    }
    if (!this.#closed) this.#parts.held.hold(this.#queuedBytes - this.#sharedBytes);
    if (this.#queuedBytes > 0) this.flush(this.#parts.clock.monotonicMs());
    this.#wake();
    if (!this.#closed) this.#parts.onTaken();
  }

  #wake(): void {
    if (this.#waiting.length === 0) return;
    const held = this.heldBytes;
    const ready = this.#waiting.filter((waiter) => this.#closed || held < waiter.below);
    if (ready.length === 0) return;
    this.#waiting = this.#waiting.filter((waiter) => !ready.includes(waiter));
    for (const waiter of ready) waiter.resolve();
  }
}

const buffersOf = (pieces: readonly Piece[]): readonly Buffer[] =>
  pieces.length === 1 && pieces[0] instanceof Buffer
    ? (pieces as readonly Buffer[])
    : pieces.map((piece) => (piece instanceof SharedText ? piece.bytes : piece));

const headerBytes = (payloadBytes: number): number => (payloadBytes < 126 ? 2 : payloadBytes < 65_536 ? 4 : 10);

function writeEventFrame(slab: Buffer, at: number, payloadBytes: number, prefix: Buffer, json: Buffer | string): void {
  const start = writeHeader(slab, at, payloadBytes);
  prefix.copy(slab, start);
  if (typeof json === "string") slab.write(json, start + prefix.length);
  else json.copy(slab, start + prefix.length);
  slab[start + payloadBytes - 1] = closingBracket;
}

/** A whole EVENT frame, for `sendFrame`. */
export function eventFrame(prefix: Buffer, json: Buffer): Buffer {
  const payloadBytes = prefix.length + json.length + 1;
  const frame = Buffer.allocUnsafe(headerBytes(payloadBytes) + payloadBytes);
  writeEventFrame(frame, 0, payloadBytes, prefix, json);
  return frame;
}

/** RFC 6455: one final text frame, not masked. Returns where its payload begins. */
function writeHeader(slab: Buffer, at: number, payloadBytes: number): number {
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
  return at + headerBytes(payloadBytes);
}

/**
 * When outboxes hand their frames to the sockets: all of them together, once a turn of the event loop. One event for a
 * thousand sockets is one wake-up, not a thousand with Node's own work between each two.
 */
export class FlushTurn {
  #waiting: Outbox[] = [];

  constructor(readonly clock: Pick<Clock, "monotonicMs">) {}

  /** Flushes `one` at the end of this turn. Each outbox asks once a turn: what waits is bounded by the connections. */
  add(one: Outbox): void {
    if (this.#waiting.push(one) === 1) setImmediate(this.#run);
  }

  readonly #run = (): void => {
    const waiting = this.#waiting;
    this.#waiting = [];
    const nowMs = this.clock.monotonicMs();
    for (const one of waiting) one.flush(nowMs);
  };
}
