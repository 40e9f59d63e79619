// A small request body, read whole.

import type { IncomingMessage } from "node:http";
import type { Clock } from "../base/clock.js";

export const maxBodyBytes = 64 * 1024;
/** Nobody needs longer for so little: a body that was promised and does not come would hold a socket for an hour. */
const maxBodyMs = 10_000;

/** Undefined when it is too long (the rest is not read), or when the client went away before its end. */
export async function bodyOf(message: IncomingMessage, clock: Clock): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const cancel = clock.after(maxBodyMs, () => message.destroy(new Error("the body did not come in time")));
  try {
    // Not destroyed when left early: the refusal must still go out.
    for await (const chunk of message.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBodyBytes) return undefined;
      chunks.push(chunk);
    }
  } catch (error) {
    // Anybody can cut his own connection: that must not be a fault of ours, which would end the process.
    if (!message.complete) return undefined;
    throw error;
  } finally {
    cancel();
  }
  return Buffer.concat(chunks);
}
