// Browsers may use everything here (spec/interop.md "CORS"). The headers are set before any handler runs, so each
// response has them once, errors included; OPTIONS is answered on every path.

import type { ServerResponse } from "node:http";

export const corsHeaders: Readonly<Record<string, string>> = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Allow-Headers":
    "Authorization, Content-Type, Git-Protocol, Accept, Content-Encoding, X-Requested-With",
  "Access-Control-Allow-Methods": "GET, POST, PUT, OPTIONS",
  "Access-Control-Expose-Headers":
    "Content-Type, Content-Length, Content-Encoding, ETag, Retry-After, WWW-Authenticate",
};

const preflightSeconds = 24 * 60 * 60;

export function setCorsHeaders(response: ServerResponse): void {
  for (const [name, value] of Object.entries(corsHeaders)) response.setHeader(name, value);
}

export function answerPreflight(response: ServerResponse): void {
  response.writeHead(204, { "Access-Control-Max-Age": String(preflightSeconds) });
  response.end();
}

/** For answers written to a bare socket, where there is no response object. */
export const corsHeaderLines = Object.entries(corsHeaders)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join("");
