// Dials other relays: checked addresses only (threats.md row 4), no redirects, no compression (a bomb's best friend), a
// limit on message size and on the whole handshake. Says in one word why a dial failed (event-sync.md "Health"), and
// asks for the limits that a relay states (NIP-11).

import { WebSocket } from "ws";
import type { Clock } from "../base/clock.js";
import type { Config } from "../config/config.js";
import { isPubkey, type Pubkey } from "../nostr/event.js";
import type { SecretKey } from "../nostr/keys.js";
import type { Reach } from "./address.js";
import { type DialFailure, failure, failureOf } from "./failure.js";
import {
  type GuardedUrl,
  type GuardRefusal,
  guardUrl,
  pinnedConnection,
  type Resolve,
  systemResolver,
} from "./guard.js";
import { httpRequest } from "./http.js";
import type { RelayUrl } from "./url.js";

export type ConnectFailure =
  | "dns-not-found"
  | "dns-temporary"
  | "certificate"
  | "not-websocket"
  | "refused"
  | "timeout"
  | "too-many-requests"
  | "server-error"
  | "blocked-address"
  /** A private service speaks only to relays that ask who is there and let it in. */
  | "no-entry"
  | "other";

/** The part of a relay's NIP-11 document that we obey. */
export interface RelayLimits {
  readonly maxMessageBytes?: number;
  readonly maxSubscriptions?: number;
  readonly maxFilters?: number;
  readonly maxLimit?: number;
  readonly maxFilterValues?: number;
}

/** What a relay says of itself (NIP-11), as far as it matters here. */
interface RelayInformation {
  readonly limits: RelayLimits;
  /** Whose relay it is: the operator's key, and the relay's own where that is another. */
  readonly keys: readonly Pubkey[];
}

type RelaySettings = Pick<
  Config,
  "syncDialTimeoutSecs" | "maxMessageBytes" | "syncPingIntervalSecs" | "syncSilentLinkSecs" | "sendMaxBytes"
>;

type Dialled =
  | { readonly ok: true; readonly socket: WebSocket }
  | { readonly ok: false; readonly kind: ConnectFailure; readonly message: string };

const maxInformationBytes = 256 * 1024;
const informationIdleMs = 5_000;

export class RelayDialer {
  readonly #resolve: Resolve;

  /**
   * `entrance`: nothing is said on a connection before the relay has let this key in (GRASP-08). `whenAsked`: who we are to a
   * relay that answers nothing before it knows; for what is asked once.
   */
  constructor(
    readonly clock: Clock,
    readonly settings: () => RelaySettings,
    private readonly reach: () => Reach,
    private readonly userAgent: string,
    readonly entrance?: SecretKey,
    readonly whenAsked?: SecretKey,
  ) {
    this.#resolve = systemResolver(clock);
  }

  get #timeoutMs(): number {
    return this.settings().syncDialTimeoutSecs * 1_000;
  }

  /** Name look-up and handshake together have the time-out. */
  async dial(url: RelayUrl, signal: AbortSignal): Promise<Dialled> {
    const { clock } = this;
    const startedMs = clock.monotonicMs();
    const checked = await guardUrl(url, { resolve: this.#resolve, reach: this.reach() });
    if (!checked.ok) return { ok: false, kind: connectFailure(checked), message: checked.message };
    const opened = await openWebSocket(checked.url, {
      clock,
      handshakeMs: Math.max(1, this.#timeoutMs - (clock.monotonicMs() - startedMs)),
      maxPayloadBytes: this.settings().maxMessageBytes,
      userAgent: this.userAgent,
      signal,
    });
    return opened.ok ? opened : { ok: false, kind: connectFailure(opened), message: opened.message };
  }

  /** A relay that says nothing about its limits, or nonsense, has told us nothing: the usual limits stand. */
  async lookUp(url: RelayUrl, signal: AbortSignal): Promise<RelayInformation> {
    const checked = await guardUrl(url.replace(/^ws/, "http"), { resolve: this.#resolve, reach: this.reach() });
    if (!checked.ok) return nothingKnown;
    const answer = await httpRequest(checked.url, {
      clock: this.clock,
      totalMs: this.#timeoutMs,
      idleMs: informationIdleMs,
      maxBodyBytes: maxInformationBytes,
      headers: { accept: "application/nostr+json", "user-agent": this.userAgent },
      signal,
    });
    if (!answer.ok || answer.status !== 200) return nothingKnown;
    try {
      const document: unknown = JSON.parse(answer.body.toString("utf8"));
      return { limits: limitsOf(document), keys: keysOf(document) };
    } catch {
      return nothingKnown;
    }
  }
}

export const nothingKnown: RelayInformation = { limits: {}, keys: [] };

function keysOf(document: unknown): Pubkey[] {
  const { pubkey, self } = (document ?? {}) as { readonly pubkey?: unknown; readonly self?: unknown };
  return [...new Set([pubkey, self].filter(isPubkey))];
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
      return answerKind("status" in failure ? (failure.status ?? 0) : 0);
    case "bad-url":
    case "bad-scheme":
    case "has-userinfo":
    case "address-not-allowed":
      return "blocked-address";
    default:
      return "other";
  }
}

const answerKind = (status: number): ConnectFailure =>
  status === 429 ? "too-many-requests" : status >= 500 ? "server-error" : "other";

/** A limit of zero or below would stop all work: whoever writes that does not mean it. */
function limit(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

export function limitsOf(information: unknown): RelayLimits {
  const stated = (information as { limitation?: unknown } | null)?.limitation;
  if (typeof stated !== "object" || stated === null) return {};
  const given = stated as Record<string, unknown>;
  const named: Record<keyof RelayLimits, number | undefined> = {
    maxMessageBytes: limit(given.max_message_length),
    maxSubscriptions: limit(given.max_subscriptions),
    maxFilters: limit(given.max_filters),
    maxLimit: limit(given.max_limit),
    maxFilterValues: limit(given.max_filter_values),
  };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
}

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
