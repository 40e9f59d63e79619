// How rooms add addresses to the server: an ordered table, first match answers. No logic of its own.

import type { IncomingMessage, ServerResponse } from "node:http";

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

/** GET and HEAD of one local path. */
export const isRead = (request: RouteRequest, localPath: string): boolean =>
  request.localPath === localPath && (request.method === "GET" || request.method === "HEAD");

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
