// Documents for people: the headers each one carries, and 304 for who has it already. Nothing inline is ever allowed:
// style and script come from files of this server (threats row 14), and nothing of a page comes from elsewhere.

import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { RouteRequest } from "./routes.js";

export interface Document {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** `no-cache` if not given: kept, but asked about again each time. */
  readonly cacheControl?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

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

export function sendDocument(request: RouteRequest, response: ServerResponse, document: Document): void {
  const { status, contentType, body, cacheControl = "no-cache" } = document;
  const tag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
  const headers = {
    ETag: tag,
    "Cache-Control": cacheControl,
    "Content-Security-Policy": contentSecurityPolicy,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    // `/` is also the relay information document.
    Vary: "Accept",
    ...document.headers,
  };
  if (status === 200 && isKnownTag(request.message.headers["if-none-match"], tag)) {
    response.writeHead(304, headers);
    response.end();
    return;
  }
  response.writeHead(status, { ...headers, "Content-Type": contentType, "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}
