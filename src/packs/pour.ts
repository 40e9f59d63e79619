// Bytes on their way between a file and the pack store, counted and hashed as they pass.

import { createHash } from "node:crypto";
import { open, rm } from "node:fs/promises";
import type { Moved } from "./port.js";

export const chunkBytes = 1 << 20;

/** What passed through it. */
export class Tally {
  readonly #hash = createHash("sha256");
  #bytes = 0;

  /** Between chunks it is asked whether to go on: a stream that is given a signal that was used throws where nobody listens. */
  async *pass(source: AsyncIterable<Buffer>, signal?: AbortSignal): AsyncGenerator<Buffer> {
    signal?.throwIfAborted();
    for await (const chunk of source) {
      signal?.throwIfAborted();
      this.#hash.update(chunk);
      this.#bytes += chunk.length;
      yield chunk;
    }
  }

  /** Once, at the end. */
  moved(): Moved {
    return { bytes: this.#bytes, sha256: this.#hash.digest("hex") };
  }
}

/** Faults of the source are turned into what they are for its owner; what the reader does with a chunk is not its fault. */
export async function* reading(
  source: AsyncIterable<Buffer>,
  faultOf: (error: unknown) => Promise<unknown>,
): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      let next: IteratorResult<Buffer>;
      try {
        next = await chunks.next();
      } catch (error) {
        throw await faultOf(error);
      }
      if (next.done) return;
      yield next.value;
    }
  } finally {
    await chunks.return?.().catch(() => undefined);
  }
}

/** Into a file that must not be there yet: synced when it resolves, gone when it throws. */
export async function pourInto(
  file: string,
  source: () => Promise<AsyncIterable<Buffer>>,
  signal?: AbortSignal,
): Promise<Moved> {
  const target = await open(file, "wx", 0o640);
  try {
    const tally = new Tally();
    for await (const chunk of tally.pass(await source(), signal)) await target.writeFile(chunk);
    await target.sync();
    return tally.moved();
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  } finally {
    await target.close();
  }
}
