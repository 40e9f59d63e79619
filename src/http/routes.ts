// How rooms add addresses to the server: an ordered table, first match answers; and what its handlers share: reading a
// small body, sending text, sending a document. No logic of its own.

import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../base/clock.js";
import { othersFirst } from "../base/others-first.js";
import { sharedAbort } from "../base/shared-abort.js";

export interface RouteRequest {
  readonly message: IncomingMessage;
  readonly method: string;
  /** The path as it was sent, still percent-encoded, without the query; never decoded here. */
  readonly path: string;
  /** The same without the base path, when the service has one and the request used it. */
  readonly localPath: string;
  readonly query: URLSearchParams;
  /** The client's address, through trusted proxies. */
  readonly ip: string;
}

export interface Route {
  matches(request: RouteRequest): boolean;
  handle(request: RouteRequest, response: ServerResponse): void | Promise<void>;
}

export const isReading = ({ method }: RouteRequest): boolean => method === "GET" || method === "HEAD";

/** GET and HEAD of one local path. */
export const isRead = (request: RouteRequest, localPath: string): boolean =>
  request.localPath === localPath && isReading(request);

function refuseToWrite(response: ServerResponse): void {
  const body = "pages answer GET and HEAD\n";
  const headers = { Allow: "GET, HEAD", "Content-Type": "text/plain; charset=utf-8" };
  response.writeHead(405, { ...headers, "Content-Length": Buffer.byteLength(body) }).end(body);
}

/** For addresses that can only be read: every other method gets 405, and not the 404 of an address that is not there. */
export const onlyToRead = ({ matches, handle }: Route): Route => ({
  matches,
  handle: (request, response) => (isReading(request) ? handle(request, response) : refuseToWrite(response)),
});

/** Aborted when the client has its answer or is gone. */
export function untilClosed(response: ServerResponse): AbortSignal {
  const closed = sharedAbort();
  response.once("close", () => closed.abort());
  return closed.signal;
}

/** Sends a whole body with its type and length; HEAD gets the headers only. */
export function sendText(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, {
    "Content-Type": contentType,
    "Content-Length": Buffer.byteLength(body),
    "X-Content-Type-Options": "nosniff",
  });
  response.end(body);
}

export const sendPlain = (response: ServerResponse, status: number, body: string): void =>
  sendText(response, status, "text/plain; charset=utf-8", `${body}\n`);

export const maxBodyBytes = 64 * 1024;
/** Nobody needs longer for so little: a body that was promised and does not come would hold a socket for an hour. */
const maxBodyMs = 10_000;

/** A small body, read whole. Undefined when it is too long (the rest is not read) or the client left before its end. */
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

/** A page, a style sheet or a script for people's browsers. */
export interface Document {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** `no-cache` if not given: kept, but asked about again each time. */
  readonly cacheControl?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Nothing inline: style and script come from files of this server (threats row 14), and nothing comes from elsewhere. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Whether one of the tags in If-None-Match is this one; weak ones count, a body sent twice is the same body. */
export function isKnownTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.split(",").some((item) => item.trim() === "*" || item.trim().replace(/^W\//, "") === tag);
}

/** With the headers every document carries; 304 for a client that has it already. */
export function sendDocument(request: RouteRequest, response: ServerResponse, document: Document): void {
  const body = Buffer.from(document.body);
  sendPieces(request, response, document, [body], createHash("sha256").update(body).digest("base64url"));
}

const charactersATime = 128 * 1024;

/** The same for one that may be of megabytes: everybody else has turns in between. */
export async function sendLongDocument(
  request: RouteRequest,
  response: ServerResponse,
  document: Document,
): Promise<void> {
  const { body } = document;
  const pieces: Buffer[] = [];
  const hash = createHash("sha256");
  for (let at = 0, end = 0; at < body.length; at = end) {
    await othersFirst();
    end = at + charactersATime;
    // Both halves of a character stay together.
    if (/[\ud800-\udbff]/.test(body[end - 1] ?? "")) end += 1;
    const piece = Buffer.from(body.slice(at, end));
    hash.update(piece);
    pieces.push(piece);
  }
  sendPieces(request, response, document, pieces, hash.digest("base64url"));
}

function sendPieces(
  request: RouteRequest,
  response: ServerResponse,
  { status, contentType, cacheControl = "no-cache", headers: own }: Document,
  pieces: readonly Buffer[],
  digest: string,
): void {
  const tag = `"${digest.slice(0, 22)}"`;
  const headers = {
    ETag: tag,
    "Cache-Control": cacheControl,
    "Content-Security-Policy": contentSecurityPolicy,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    // `/` is also the relay information document.
    Vary: "Accept",
    ...own,
  };
  if (status === 200 && isKnownTag(request.message.headers["if-none-match"], tag)) {
    response.writeHead(304, headers);
    response.end();
    return;
  }
  const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
  response.writeHead(status, { ...headers, "Content-Type": contentType, "Content-Length": bytes });
  const last = pieces.at(-1);
  for (const piece of pieces) if (piece !== last) response.write(piece);
  response.end(last);
}
