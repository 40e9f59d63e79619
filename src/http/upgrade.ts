// WebSocket upgrades: who takes them, and how one is refused before the handshake.

import { IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Refusal } from "../nostr/refusals.js";
import { corsHeaderLines } from "./cors.js";

/** The relay, as far as the server needs it. */
export interface UpgradeTarget {
  accept(request: IncomingMessage, socket: Duplex, head: Buffer, ip: string): { readonly ok: true } | Refusal;
}

/**
 * A request that offers another protocol than WebSocket (git and curl offer HTTP/2 that way on plain http) is a request
 * as any other: the offer is not taken up (RFC 9110, 7.8). Node takes every request as an upgrade whose message says so.
 */
export class OfferingMessage extends IncomingMessage {
  declare private offers: unknown;

  get upgrade(): boolean {
    if (this.method === "CONNECT") return true;
    return this.offers === true && /websocket/i.test(this.headers.upgrade ?? "");
  }

  set upgrade(value: unknown) {
    this.offers = value;
  }
}

/**
 * Why this is no WebSocket handshake (RFC 6455, 4.2.1), if it is none. Node has looked at `Connection` already,
 * whatever else that lists. Said here, because the codec would answer without the headers a browser needs.
 */
export function handshakeFault(request: IncomingMessage): string | undefined {
  const { upgrade, "sec-websocket-key": key, "sec-websocket-version": version } = request.headers;
  if (upgrade?.trim().toLowerCase() !== "websocket") return "only WebSocket upgrades are known here";
  if (request.method !== "GET") return "a WebSocket handshake is a GET";
  if (version !== "13" && version !== "8") return "this version of WebSocket is not known here";
  if (typeof key !== "string" || !/^[+/0-9A-Za-z]{22}==$/.test(key)) return "Sec-WebSocket-Key is missing or not a key";
  return undefined;
}

export function refuseUpgrade(socket: Duplex, status: number, sentence: string): void {
  const body = `${sentence}\n`;
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${corsHeaderLines}Connection: close\r\n` +
      `Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}
