// `/raw/`: the bytes of a file, as something a browser never runs. Text is plain text whatever its name says; pictures are
// pictures; the rest is a download. A sandbox and an empty policy stand beside all of it.

import type { ServerResponse } from "node:http";
import type { Clock } from "../../base/clock.js";
import { writeChunk } from "../../git/http-body.js";
import { isBinary } from "../../git/reading/objects.js";
import { isKnownTag, type RouteRequest } from "../../http/routes.js";
import type { Looking, Shown } from "./looking.js";
import { type Place, textOfName } from "./paths.js";

const pictures: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  avif: "image/avif",
  ico: "image/x-icon",
  bmp: "image/bmp",
  // Opened by itself it could run script: it is only given as a download, which pictures on pages do not mind.
  svg: "image/svg+xml",
};

const suffixOf = (name: string): string => (/\.([A-Za-z0-9]{1,8})$/.exec(name)?.[1] ?? "").toLowerCase();

export const isPicture = (name: string): boolean => pictures[suffixOf(name)] !== undefined;

/** What is kept in memory; larger files are passed on as git reads them. */
const maxWholeBytes = 2 ** 20;
const yearSeconds = 365 * 24 * 60 * 60;
export const idleMs = 30_000;

/** How a file is handed out, by its name and its first bytes. */
export function deliveryOf(name: string, start: Buffer): { readonly type: string; readonly isDownload: boolean } {
  const picture = pictures[suffixOf(name)];
  if (picture) return { type: picture, isDownload: picture === "image/svg+xml" };
  return isBinary(start)
    ? { type: "application/octet-stream", isDownload: true }
    : { type: "text/plain; charset=utf-8", isDownload: false };
}

/** What strangers' bytes are sent with: nothing runs, and only what an id names is kept for ever. */
export const rawHeaders = (tag: string, isById: boolean) => ({
  ETag: tag,
  "Cache-Control": isById ? `public, max-age=${yearSeconds}, immutable` : "no-cache",
  "Content-Security-Policy": "default-src 'none'; sandbox",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "X-Robots-Tag": "noindex",
});

/** Answers by itself; a value: nothing was sent yet. */
export async function sendRaw(
  looking: Looking,
  place: Place,
  request: RouteRequest,
  response: ServerResponse,
  clock: Clock,
): Promise<Shown | "sent"> {
  const { room, found, visitor } = looking;
  const commit = await room.commit(found.repository, place.commit);
  const there = commit && (await room.entryAt(found.repository, commit.tree, place.path, visitor));
  if (there && !there.ok) return there.code;
  const entry = there?.value;
  const name = place.path.at(-1);
  if (!entry || !name || entry.kind === "folder" || entry.kind === "module") return "missing";
  const tag = `"${entry.oid}"`;
  const headers = rawHeaders(tag, place.kind === "commit");
  if (isKnownTag(request.message.headers["if-none-match"], tag)) {
    response.writeHead(304, headers).end();
    return "sent";
  }
  const blob = await room.blob(found.repository, entry.oid, maxWholeBytes);
  if (!blob) return "missing";
  const describe = (start: Buffer): void => {
    const { type, isDownload } = deliveryOf(textOfName(name), start);
    response.writeHead(200, {
      ...headers,
      "Content-Type": type,
      "Content-Length": blob.bytes,
      ...(isDownload && { "Content-Disposition": "attachment" }),
    });
  };
  if (blob.content) {
    describe(blob.content);
    response.end(request.method === "HEAD" ? undefined : blob.content);
    return "sent";
  }
  const send = async (piece: Buffer): Promise<boolean> => {
    if (!response.headersSent) describe(piece);
    return request.method !== "HEAD" && (await writeChunk(response, piece, clock, idleMs));
  };
  const looked = await room.streams.blob(found.repository, entry.oid, visitor, send);
  if (!looked.ok) return looked.code;
  if (looked.value || request.method === "HEAD") response.end();
  else response.destroy();
  return "sent";
}
