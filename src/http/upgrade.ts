// WebSocket upgrades: who takes them, and how one is refused before the handshake.

import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Refusal } from "../nostr/refusals.js";
import { corsHeaderLines } from "./cors.js";

/** The relay, as far as the server needs it. */
export interface UpgradeTarget {
  accept(request: IncomingMessage, socket: Duplex, head: Buffer, ip: string): { readonly ok: true } | Refusal;
}

/** Node has looked at `Connection` already, whatever else it lists. */
export const wantsWebSocket = (request: IncomingMessage): boolean =>
  request.headers.upgrade?.trim().toLowerCase() === "websocket";

export function refuseUpgrade(socket: Duplex, status: number, sentence: string): void {
  const body = `${sentence}\n`;
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${corsHeaderLines}Connection: close\r\n` +
      `Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}
