// Where the admin socket is. A Unix socket's path may have 107 bytes at most; a longer one is reached on Linux through
// an open descriptor of its directory.

import { closeSync, openSync } from "node:fs";
import { join } from "node:path";

export const socketFile = "admin.sock";
const maxPathBytes = 100;

export interface SocketPath {
  /** To be given to listen or connect. */
  readonly path: string;
  /** Must be called when the path is no longer used. */
  close(): void;
}

/** Throws as `open` does when the directory is not there. */
export function socketPathIn(directory: string): SocketPath {
  const plain = join(directory, socketFile);
  if (Buffer.byteLength(plain) <= maxPathBytes) return { path: plain, close: () => undefined };
  const descriptor = openSync(directory, "r");
  return { path: `/proc/self/fd/${descriptor}/${socketFile}`, close: () => closeSync(descriptor) };
}
