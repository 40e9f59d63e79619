// Bodies in and out: a request read chunk by chunk (inflated when it is gzip), a response written with back-pressure.
// Both give up on a peer that stands still (git-http.md, Serving; threats.md row 6).

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { HeldBytes } from "../base/budget/bytes.js";
import type { Clock } from "../base/clock.js";
import { GatheredBytes } from "../base/collections.js";

export class BodyTooLargeError extends Error {
  override readonly name = "BodyTooLargeError";
}

/** The client went away, stood still, or sent bytes that are not what they claim to be. */
export class BodyBrokenError extends Error {
  override readonly name = "BodyBrokenError";
}

/** There is no room for what is held of unfinished bodies. */
export class BodyCrowdedError extends Error {
  override readonly name = "BodyCrowdedError";
}

const chunkBytes = 256 * 1024;
/** What is read of a refused body, so that the client reads why: more of it would be work for nothing. */
const refused = { maxBytes: 64 * 2 ** 20, maxMs: 30_000, paceMs: 5_000 };
/** What an unfinished body costs besides its bytes: its connection, its place in the tables. */
const bodyWeight = 16 * 1024;

export class BodyReader {
  #chunks: AsyncIterator<Buffer> | undefined;
  readonly #source: Readable;
  readonly #pace: Pace;
  bytes = 0;
  #ended = false;

  /** A peer that stands still for `idleMs` is given up at the latest; one that dribbles no later. */
  constructor(
    readonly request: IncomingMessage,
    readonly clock: Clock,
    readonly idleMs: number,
  ) {
    this.#pace = new Pace(idleMs / 2);
    const encoding = request.headers["content-encoding"] ?? "identity";
    if (encoding === "gzip" || encoding === "x-gzip") {
      const gunzip = createGunzip({ chunkSize: chunkBytes });
      // Not a pipeline: of a refused body nothing more is inflated, while its bytes are still read.
      request.pipe(gunzip);
      const cut = (): void => void (request.readableEnded || gunzip.destroy(new BodyBrokenError("the body broke off")));
      request.once("error", cut).once("close", cut);
      this.#source = gunzip;
    } else this.#source = request;
  }

  static understands(request: IncomingMessage): boolean {
    return ["identity", "gzip", "x-gzip"].includes(request.headers["content-encoding"] ?? "identity");
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Gives up on it while somebody waits for more. */
  #giveUp(why: string): void {
    this.#source.destroy(new BodyBrokenError(why));
    if (this.#source !== this.request) this.request.destroy();
  }

  /** Judges the peer as long as it lets us wait. */
  #watch(): (bytes: number) => void {
    let since = this.clock.monotonicMs();
    let cancel = (): void => undefined;
    const took = (bytes: number): boolean => {
      const now = this.clock.monotonicMs();
      const isQuick = this.#pace.took(now - since, bytes);
      since = now;
      return isQuick;
    };
    const arm = (): void => {
      cancel = this.clock.after(this.#pace.leftMs, () => (took(0) ? arm() : this.#giveUp("the body stands still")));
    };
    arm();
    return (bytes) => {
      cancel();
      if (!took(bytes)) this.#giveUp("the body comes too slowly");
    };
  }

  /** Undefined at the end. */
  async next(): Promise<Buffer | undefined> {
    if (this.#ended) return undefined;
    const came = this.#watch();
    let length = 0;
    try {
      this.#chunks ??= this.#source[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
      const result = await this.#chunks.next();
      if (result.done) {
        this.#ended = true;
        return undefined;
      }
      length = result.value.length;
      this.bytes += length;
      return result.value;
    } catch (error) {
      this.#ended = true;
      throw new BodyBrokenError(error instanceof Error ? error.message : "the body broke off");
    } finally {
      came(this.#ended ? Number.MAX_SAFE_INTEGER : length);
    }
  }

  /**
   * All of it, for requests that are small by nature. Without an iterator: thousands of these come each second. What an
   * unfinished one holds is counted.
   */
  all(maxBytes: number, held: HeldBytes): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      let gathered = new GatheredBytes();
      const source = this.#source;
      let came = this.#watch();
      const broken = (): void => finish(() => reject(new BodyBrokenError("the body broke off")));
      const finish = (settle: () => void): void => {
        came(Number.MAX_SAFE_INTEGER);
        this.#ended = true;
        source.removeListener("close", broken);
        settle();
      };
      const stop = (error: Error): void => {
        source.pause();
        source.removeAllListeners("data");
        gathered = new GatheredBytes();
        finish(() => reject(error));
      };
      source.on("data", (chunk: Buffer) => {
        this.bytes += chunk.length;
        if (this.bytes > maxBytes) stop(new BodyTooLargeError(`a request may have ${maxBytes} bytes`));
        else if (!held.hold(bodyWeight + this.bytes)) stop(new BodyCrowdedError("too many unfinished requests"));
        else {
          gathered.add(chunk);
          came(chunk.length);
          came = this.#watch();
        }
      });
      source.once("end", () => finish(() => resolve(gathered.all)));
      source.once("error", broken);
      source.once("close", broken);
    });
  }

  /**
   * Reads and forgets what still comes on the wire: a client that is cut off while it writes does not read the refusal. Nothing is
   * inflated any more. False when it was not all: too much, too long or too slow.
   */
  drain(): Promise<boolean> {
    const { request, clock } = this;
    this.#ended = true;
    return new Promise((resolve) => {
      if (request.readableEnded || request.destroyed) return resolve(request.readableEnded);
      const endMs = clock.monotonicMs() + refused.maxMs;
      const pace = new Pace(refused.paceMs);
      let bytes = 0;
      let unjudged = 0;
      const settle = (isAll: boolean): void => {
        cancel();
        request.off("data", count).off("end", ended).off("close", ended);
        if (!isAll) request.pause();
        resolve(isAll);
      };
      const ended = (): void => settle(request.readableEnded);
      const count = (chunk: Buffer): void => {
        bytes += chunk.length;
        unjudged += chunk.length;
        if (bytes > refused.maxBytes) settle(false);
      };
      const judge = (): void => {
        const isGood = pace.took(refused.paceMs, unjudged) && clock.monotonicMs() < endMs;
        unjudged = 0;
        if (isGood) cancel = clock.after(refused.paceMs, judge);
        else settle(false);
      };
      let cancel = clock.after(refused.paceMs, judge);
      request.unpipe();
      if (this.#source !== request) this.#source.destroy();
      request.removeAllListeners("readable");
      request.on("data", count).on("end", ended).on("close", ended);
      request.resume();
    });
  }
}

/** A client that holds a place others wait for loses it when it has not taken one chunk within `afterMs`. */
interface GiveWay {
  readonly afterMs: number;
  readonly isAskedFor: () => boolean;
}

/** Resolves when the system has taken the chunk; false when the client is gone or stood still too long. */
export function writeChunk(
  response: ServerResponse,
  chunk: Buffer,
  clock: Clock,
  idleMs: number,
  giveWay?: GiveWay,
): Promise<boolean> {
  if (response.destroyed || response.writableEnded) return Promise.resolve(false);
  return new Promise((resolve) => {
    const settle = (ok: boolean): void => {
      cancel();
      cancelInUse();
      response.removeListener("close", onClose);
      resolve(ok);
    };
    const onClose = (): void => settle(false);
    const giveUp = (): void => {
      response.destroy();
      settle(false);
    };
    const cancel = clock.after(idleMs, giveUp);
    let cancelInUse = (): void => undefined;
    const look = ({ afterMs, isAskedFor }: GiveWay): void => {
      cancelInUse = clock.after(afterMs, () => (isAskedFor() ? giveUp() : look({ afterMs, isAskedFor })));
    };
    if (giveWay) look(giveWay);
    response.once("close", onClose);
    response.write(chunk, (error) => settle(!error));
  });
}

/** A modem of 1990 does more. */
const minBytesPerSecond = 1_000;

/**
 * Whether a peer keeps a minimum rate (threats.md rows 41 to 43). Judged over the time the peer let us wait, so that our
 * own slowness is never its fault.
 */
export class Pace {
  #waitedMs = 0;
  #bytes = 0;

  constructor(
    readonly windowMs: number,
    readonly bytesPerSecond = minBytesPerSecond,
  ) {}

  /** Until it is judged again, if nothing comes. */
  get leftMs(): number {
    return this.windowMs - this.#waitedMs;
  }

  /** We waited so long and got so much. False: over the last window it was too slow. */
  took(waitedMs: number, bytes: number): boolean {
    this.#waitedMs += waitedMs;
    this.#bytes += bytes;
    if (this.#waitedMs < this.windowMs) return true;
    const isQuick = this.#bytes * 1_000 >= this.bytesPerSecond * this.#waitedMs;
    this.#waitedMs = 0;
    this.#bytes = 0;
    return isQuick;
  }
}
