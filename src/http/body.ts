// A small request body, read whole.

import type { IncomingMessage } from "node:http";

export const maxBodyBytes = 64 * 1024;

/** Undefined when it is too long; the rest is not read. */
export async function bodyOf(message: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Not destroyed when left early: the refusal must still go out.
  for await (const chunk of message.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
