// Sends one large file, whole or from some byte on (git-lfs resumes what broke off), to a client that takes it at its own
// pace. Used by LFS downloads and by the look-up by hash.

import { open } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../base/clock.js";
import { ifPresent } from "../base/durable-files.js";
import { writeChunk } from "../git/http-body.js";

const chunkBytes = 256 * 1024;

interface Range {
  readonly from: number;
  /** Behind the last byte. */
  readonly to: number;
}

/** The one range of a request. `whole` where none is asked for or several are, which a server may ignore. */
export function rangeOf(header: string | undefined, size: number): Range | "whole" | "none" {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "");
  const [, first = "", last = ""] = match ?? [];
  if (!match || (first === "" && last === "")) return "whole";
  if (first === "") return Number(last) === 0 ? "none" : { from: Math.max(0, size - Number(last)), to: size };
  const to = last === "" ? size : Math.min(size, Number(last) + 1);
  return Number(first) < to ? { from: Number(first), to } : "none";
}

interface Sent {
  readonly bytes: number;
  /** The client took all that it asked for. */
  readonly isWhole: boolean;
}

/** Undefined: there is no such file; nothing was sent. */
export async function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  options: { readonly clock: Clock; readonly idleMs: number; readonly etag: string },
): Promise<Sent | undefined> {
  const handle = await ifPresent(open(path, "r"));
  if (!handle) return undefined;
  try {
    const { size } = await handle.stat();
    const range = rangeOf(request.headers.range, size);
    response.setHeader("Accept-Ranges", "bytes");
    response.setHeader("Content-Type", "application/octet-stream");
    // A browser must never run what a stranger stored (threats.md row 14).
    response.setHeader("X-Content-Type-Options", "nosniff");
    response.setHeader("Content-Disposition", "attachment");
    response.setHeader("Content-Security-Policy", "default-src 'none'; sandbox");
    response.setHeader("ETag", `"${options.etag}"`);
    if (range === "none") {
      response.writeHead(416, { "Content-Range": `bytes */${size}` }).end();
      return { bytes: 0, isWhole: true };
    }
    const { from, to } = range === "whole" ? { from: 0, to: size } : range;
    response.setHeader("Content-Length", to - from);
    if (range === "whole") response.writeHead(200);
    else response.writeHead(206, { "Content-Range": `bytes ${from}-${to - 1}/${size}` });
    if (request.method === "HEAD") {
      response.end();
      return { bytes: 0, isWhole: true };
    }
    let at = from;
    while (at < to) {
      const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, to - at));
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, at);
      // Cut off on disk: the client sees that the length is wrong.
      if (bytesRead === 0) break;
      at += bytesRead;
      const isTaken = await writeChunk(response, buffer.subarray(0, bytesRead), options.clock, options.idleMs);
      if (!isTaken) return { bytes: at - from, isWhole: false };
    }
    if (at < to) response.destroy();
    else response.end();
    return { bytes: at - from, isWhole: at === to };
  } finally {
    await handle.close();
  }
}
