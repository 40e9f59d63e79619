// Opens a connection to another relay through the outbound guard (threats.md row 4), and says in the core's words why
// it did not come to be. Keeps nothing.

import type { WebSocket } from "ws";
import type { Clock } from "../base/clock.js";
import type { Reach } from "../net/address.js";
import type { DialFailure } from "../net/failure.js";
import { type GuardRefusal, guardUrl } from "../net/guard.js";
import type { Resolve } from "../net/resolve.js";
import type { RelayUrl } from "../net/url.js";
import { openWebSocket } from "../net/websocket.js";
import type { ConnectFailure } from "./core/messages.js";

export interface DialParts {
  readonly clock: Clock;
  readonly resolve: Resolve;
  readonly reach: () => Reach;
  /** For name look-up and handshake together. */
  readonly dialTimeoutMs: () => number;
  readonly maxPayloadBytes: () => number;
  readonly userAgent: string;
}

export type Dialled =
  | { readonly ok: true; readonly socket: WebSocket }
  | { readonly ok: false; readonly kind: ConnectFailure; readonly message: string };

export async function dial(url: RelayUrl, parts: DialParts, signal: AbortSignal): Promise<Dialled> {
  const { clock } = parts;
  const startedMs = clock.monotonicMs();
  const checked = await guardUrl(url, { resolve: parts.resolve, reach: parts.reach() });
  if (!checked.ok) return { ok: false, kind: connectFailure(checked), message: checked.message };
  const opened = await openWebSocket(checked.url, {
    clock,
    handshakeMs: Math.max(1, parts.dialTimeoutMs() - (clock.monotonicMs() - startedMs)),
    maxPayloadBytes: parts.maxPayloadBytes(),
    userAgent: parts.userAgent,
    signal,
  });
  return opened.ok ? opened : { ok: false, kind: connectFailure(opened), message: opened.message };
}

export function connectFailure(failure: DialFailure | GuardRefusal): ConnectFailure {
  switch (failure.code) {
    case "dns-missing":
      return "dns-not-found";
    case "dns-temporary":
      return "dns-temporary";
    case "certificate":
      return "certificate";
    case "not-a-websocket":
      return "not-websocket";
    case "refused":
      return "refused";
    case "timeout":
      return "timeout";
    case "http-status":
      return answerFailure("status" in failure ? (failure.status ?? 0) : 0);
    case "bad-url":
    case "bad-scheme":
    case "has-userinfo":
    case "address-not-allowed":
      return "blocked-address";
    default:
      return "other";
  }
}

const answerFailure = (status: number): ConnectFailure =>
  status === 429 ? "too-many-requests" : status >= 500 ? "server-error" : "other";
