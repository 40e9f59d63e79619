// A small request body, read whole.

import type { IncomingMessage } from "node:http";

export const maxBodyBytes = 64 * 1024;

/** Undefined when it is too long (the rest is not read), or when the client went away before its end. */
export async function bodyOf(message: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
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
  }
  return Buffer.concat(chunks);
}
