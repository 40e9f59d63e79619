// Opens WebSockets to other relays: checked addresses only, no redirects, no compression (a bomb's best friend),
// a limit on message size and on the whole handshake. Says in one word why a dial failed. event-sync.md "Health".

import { WebSocket } from "ws";
import type { Clock } from "../base/clock.js";
import { type DialFailure, failure, failureOf } from "./failure.js";
import type { GuardedUrl } from "./guard.js";
import { pinnedConnection } from "./guard.js";

export interface OpenOptions {
  readonly clock: Clock;
  readonly handshakeMs: number;
  readonly maxPayloadBytes: number;
  readonly userAgent: string;
  readonly signal?: AbortSignal;
  /** Extra trusted certificates (PEM), for private networks and tests. */
  readonly ca?: string | Buffer;
}

type OpenResult = { readonly ok: true; readonly socket: WebSocket } | DialFailure;

/**
 * The socket is handed over paused and starts to deliver one turn of the event loop later: attach listeners before
 * waiting for anything, and no message is lost.
 */
export function openWebSocket(url: GuardedUrl, options: OpenOptions): Promise<OpenResult> {
  if (url.scheme !== "ws" && url.scheme !== "wss") {
    return Promise.resolve(failure("bad-scheme", "a WebSocket needs ws or wss"));
  }
  if (options.signal?.aborted) return Promise.resolve(failure("aborted", "not wanted any more"));
  return new Promise((settle) => {
    const socket = new WebSocket(url.href, {
      followRedirects: false,
      perMessageDeflate: false,
      maxPayload: options.maxPayloadBytes,
      headers: { "user-agent": options.userAgent },
      ...pinnedConnection(url),
      ...(options.ca === undefined ? {} : { ca: options.ca }),
    });
    let settled = false;
    const finish = (result: OpenResult): void => {
      if (settled) return;
      settled = true;
      // A time limit on silence alone would let a server keep a dial open with one header byte at a time.
      cancelTimer();
      options.signal?.removeEventListener("abort", onAbort);
      socket.off("close", onClose);
      if (result.ok) {
        socket.off("error", onError);
        socket.pause();
        setImmediate(() => socket.resume());
      } else {
        socket.terminate();
      }
      settle(result);
    };
    const onAbort = (): void => finish(failure("aborted", "not wanted any more"));
    // Stays attached after a failed dial: terminating a half-open socket emits one more error.
    const onError = (error: Error): void => finish(openFailure(error));
    const onClose = (): void => finish(failure("reset", "closed during the handshake"));
    const cancelTimer = options.clock.after(options.handshakeMs, () =>
      finish(failure("timeout", `no WebSocket within ${options.handshakeMs} ms`)),
    );
    options.signal?.addEventListener("abort", onAbort, { once: true });
    socket.on("error", onError);
    socket.on("close", onClose);
    socket.on("open", () => finish({ ok: true, socket }));
    socket.on("unexpected-response", (_request, response) => {
      response.resume();
      finish(answerFailure(response.statusCode ?? 0));
    });
  });
}

/** A refusal for now, or of us, is no proof that no relay lives there; any other answer than 101 is. */
function answerFailure(status: number): DialFailure {
  const mayBeARelay = status >= 500 || [401, 403, 408, 425, 429].includes(status);
  return failure(mayBeARelay ? "http-status" : "not-a-websocket", `HTTP ${status}`, status);
}

/** ws reports a wrong handshake answer without an error code; sockets always give one. */
function openFailure(error: Error): DialFailure {
  const known = failureOf(error);
  if (known.code === "bad-response" || !("code" in error)) {
    if (!(error instanceof AggregateError)) return failure("not-a-websocket", known.message);
  }
  return known;
}
