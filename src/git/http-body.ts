// Bodies in and out: a request read chunk by chunk (inflated when it is gzip), a response written with back-pressure.
// Both give up on a peer that stands still (git-http.md, Serving; threats.md row 6).

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import type { Clock } from "../base/clock.js";

export class BodyTooLargeError extends Error {
  override readonly name = "BodyTooLargeError";
}

/** The client went away, stood still, or sent bytes that are not what they claim to be. */
export class BodyBrokenError extends Error {
  override readonly name = "BodyBrokenError";
}

const chunkBytes = 256 * 1024;

export class BodyReader {
  #chunks: AsyncIterator<Buffer> | undefined;
  readonly #source: Readable;
  bytes = 0;
  #ended = false;

  constructor(
    readonly request: IncomingMessage,
    readonly clock: Clock,
    readonly idleMs: number,
  ) {
    const encoding = request.headers["content-encoding"] ?? "identity";
    if (encoding === "gzip" || encoding === "x-gzip") {
      const gunzip = createGunzip({ chunkSize: chunkBytes });
      pipeline(request, gunzip, () => undefined);
      this.#source = gunzip;
    } else this.#source = request;
  }

  static understands(request: IncomingMessage): boolean {
    return ["identity", "gzip", "x-gzip"].includes(request.headers["content-encoding"] ?? "identity");
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Undefined at the end. */
  async next(): Promise<Buffer | undefined> {
    if (this.#ended) return undefined;
    const cancel = this.clock.after(this.idleMs, () =>
      this.#source.destroy(new BodyBrokenError("the body stands still")),
    );
    try {
      this.#chunks ??= this.#source[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
      const result = await this.#chunks.next();
      if (result.done) {
        this.#ended = true;
        return undefined;
      }
      this.bytes += result.value.length;
      return result.value;
    } catch (error) {
      this.#ended = true;
      throw new BodyBrokenError(error instanceof Error ? error.message : "the body broke off");
    } finally {
      cancel();
    }
  }

  /** All of it, for requests that are small by nature. Without an iterator: thousands of these come each second. */
  all(maxBytes: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      const source = this.#source;
      const broken = (): void => finish(() => reject(new BodyBrokenError("the body broke off")));
      const stuck = (): void => {
        source.destroy();
        broken();
      };
      let cancel = this.clock.after(this.idleMs, stuck);
      const finish = (settle: () => void): void => {
        cancel();
        this.#ended = true;
        source.removeListener("close", broken);
        settle();
      };
      source.on("data", (chunk: Buffer) => {
        this.bytes += chunk.length;
        if (this.bytes > maxBytes) {
          source.pause();
          source.removeAllListeners("data");
          finish(() => reject(new BodyTooLargeError(`a request may have ${maxBytes} bytes`)));
          return;
        }
        chunks.push(chunk);
        cancel();
        cancel = this.clock.after(this.idleMs, stuck);
      });
      source.once("end", () =>
        finish(() => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks))),
      );
      source.once("error", broken);
      source.once("close", broken);
    });
  }

  /**
   * Reads and forgets the rest as it comes, not inflated, up to so many bytes. Closed on while it sends, a client loses
   * the answer that tells it why.
   */
  discard(maxBytes: number): Promise<void> {
    const { request } = this;
    if (request.readableEnded || request.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      let left = maxBytes;
      const done = (): void => {
        cancel();
        resolve();
      };
      const cancel = this.clock.after(this.idleMs, done);
      request.unpipe();
      request.on("data", (chunk: Buffer) => {
        left -= chunk.length;
        if (left < 0) done();
      });
      request.once("end", done);
      request.once("close", done);
      request.resume();
    });
  }

  /** Reads and forgets the rest; false when it is more than allowed. A report sent before is not read by git. */
  async drain(maxBytes: number): Promise<boolean> {
    while (this.bytes <= maxBytes) if (!(await this.next())) return true;
    return false;
  }
}

/** Resolves when the system has taken the chunk; false when the client is gone or stood still too long. */
export function writeChunk(response: ServerResponse, chunk: Buffer, clock: Clock, idleMs: number): Promise<boolean> {
  if (response.destroyed || response.writableEnded) return Promise.resolve(false);
  return new Promise((resolve) => {
    const settle = (ok: boolean): void => {
      cancel();
      response.removeListener("close", onClose);
      resolve(ok);
    };
    const onClose = (): void => settle(false);
    const cancel = clock.after(idleMs, () => {
      response.destroy();
      settle(false);
    });
    response.once("close", onClose);
    response.write(chunk, (error) => settle(!error));
  });
}
