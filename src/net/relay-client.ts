// A connection to another relay, as a client: the one place where messages to relays are written and theirs are read. A
// ping every half minute, and an end when nothing was heard for a minute (event-sync.md "Connections"). What is not a
// message comes out as nothing; events are parsed later. Keeps nothing.

import { randomBytes } from "node:crypto";
import type { RawData, WebSocket } from "ws";
import { type Clock, unixSeconds } from "../base/clock.js";
import type { Config } from "../config/config.js";
import { kinds, type NostrEvent } from "../nostr/event.js";
import { type Filter, filterJson } from "../nostr/filter.js";
import { frameFault, usualFrameBounds } from "../nostr/frame-shape.js";
import { type SecretKey, signEvent } from "../nostr/keys.js";

/** A relay that takes nothing of what we send is given up when `sendMaxBytes` wait. */
type LinkSettings = Pick<Config, "syncPingIntervalSecs" | "syncSilentLinkSecs" | "sendMaxBytes">;

/** NIP-77; what is compared is hex. */
export type NegentropyMessage =
  | readonly ["NEG-OPEN", session: string, filter: object, message: string]
  | readonly ["NEG-MSG", session: string, message: string]
  | readonly ["NEG-CLOSE", session: string];

interface LinkHooks {
  message(message: RelayMessage): void;
  bytes(direction: "in" | "out", count: number): void;
  /** Once, however it ended, with the time since the last frame; not after `close()`. */
  closed(silentMs: number): void;
}

/** One open WebSocket: frames, bytes counted, pings. A link that we ourselves do not read is not called silent. */
export class RelayClient {
  readonly #socket: WebSocket;
  readonly #clock: Clock;
  readonly #settings: LinkSettings;
  readonly #hooks: LinkHooks;
  /** The last frame, or the moment at which we began to read again. */
  #heardMs: number;
  #frameMs: number;
  #pingedMs: number;
  #paused = false;
  #ended = false;
  #cancelPing: () => void = () => undefined;

  constructor(socket: WebSocket, clock: Clock, settings: LinkSettings, hooks: LinkHooks) {
    this.#socket = socket;
    this.#clock = clock;
    this.#settings = settings;
    this.#hooks = hooks;
    this.#heardMs = clock.monotonicMs();
    this.#frameMs = this.#heardMs;
    this.#pingedMs = this.#heardMs;
    socket.on("message", (data: RawData, isBinary: boolean) => this.#onFrame(data, isBinary));
    socket.on("pong", () => this.#heard());
    // `ws` has answered already: answers nobody reads pile up like everything else (threats.md row 36).
    socket.on("ping", () => {
      this.#heard();
      this.#endIfUnread();
    });
    socket.on("close", () => this.#end());
    // A broken frame, or one above the limit: ws closes by itself, and `close` follows.
    socket.on("error", () => socket.terminate());
    this.#pingLater();
  }

  subscribe(subscription: string, filters: readonly Filter[]): void {
    this.#send(JSON.stringify(["REQ", subscription, ...filters.map(filterJson)]));
  }

  unsubscribe(subscription: string): void {
    this.#send(JSON.stringify(["CLOSE", subscription]));
  }

  /** An event as it was stored. */
  publish(text: string): void {
    this.#send(`["EVENT",${text}]`);
  }

  authenticate({ raw: _raw, ...event }: NostrEvent): void {
    this.#send(JSON.stringify(["AUTH", event]));
  }

  reconcile(message: NegentropyMessage): void {
    this.#send(JSON.stringify(message));
  }

  #send(text: string): void {
    if (this.#ended) return;
    this.#hooks.bytes("out", text.length);
    this.#socket.send(text);
    this.#endIfUnread();
  }

  #endIfUnread(): void {
    if (this.#socket.bufferedAmount > this.#settings.sendMaxBytes) this.#end();
  }

  pause(): void {
    if (this.#paused || this.#ended) return;
    this.#paused = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#paused || this.#ended) return;
    this.#paused = false;
    this.#heardMs = this.#clock.monotonicMs();
    this.#socket.resume();
  }

  /** Closes without telling `closed`. */
  close(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cancelPing();
    // A paused socket would never see the answer to its close frame.
    this.#socket.resume();
    this.#socket.close();
    this.#clock.after(2_000, () => this.#socket.terminate());
  }

  #onFrame(data: RawData, isBinary: boolean): void {
    if (this.#ended) return;
    this.#heard();
    const bytes = Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer);
    this.#hooks.bytes("in", bytes.length);
    const message = isBinary ? undefined : parseRelayFrame(bytes);
    if (message) this.#hooks.message(message);
  }

  #heard(): void {
    this.#heardMs = this.#clock.monotonicMs();
    this.#frameMs = this.#heardMs;
  }

  /** Looks again when a ping is due, or when the relay will have been silent for too long, whichever comes first. */
  #pingLater(): void {
    const pingMs = this.#settings.syncPingIntervalSecs * 1_000;
    const silentMs = this.#settings.syncSilentLinkSecs * 1_000;
    const nowMs = this.#clock.monotonicMs();
    const pingDueMs = this.#pingedMs + pingMs;
    const dueMs = this.#paused ? pingDueMs : Math.min(pingDueMs, this.#heardMs + silentMs);
    this.#cancelPing = this.#clock.after(Math.max(0, dueMs - nowMs), () => {
      if (this.#ended) return;
      const laterMs = this.#clock.monotonicMs();
      // A look that comes far too late: we stood still, and what the relay said may wait in the socket.
      if (laterMs - dueMs > pingMs) this.#heardMs = laterMs;
      if (!this.#paused && laterMs - this.#heardMs >= silentMs) {
        this.#end();
        return;
      }
      if (laterMs >= pingDueMs) {
        this.#pingedMs = laterMs;
        this.#socket.ping();
      }
      this.#pingLater();
    });
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cancelPing();
    this.#socket.terminate();
    this.#hooks.closed(this.#clock.monotonicMs() - this.#frameMs);
  }
}

/**
 * The beginning of a private service's connection (GRASP-08): the relay asks who is there, we answer, it lets us in; until then
 * nothing else is said, because filters name repositories. `heard` takes what the relay says meanwhile.
 */
export class Entering {
  readonly done: Promise<boolean>;
  readonly #parts: EnteringParts;
  #end: (isIn: boolean) => void = () => undefined;
  #cancel: () => void = () => undefined;
  #sent: string | undefined;

  constructor(parts: EnteringParts) {
    this.#parts = parts;
    this.done = new Promise((resolve) => {
      this.#end = (isIn) => {
        this.#cancel();
        resolve(isIn);
      };
    });
    this.#wait();
  }

  heard(message: RelayMessage): void {
    if (message.type === "AUTH" && this.#sent === undefined) {
      this.#sent = this.#parts.answer(message.challenge).id;
      this.#wait();
    } else if (message.type === "OK" && message.id === this.#sent) this.#end(message.ok);
  }

  /** The connection ended. */
  fail(): void {
    this.#end(false);
  }

  #wait(): void {
    this.#cancel();
    this.#cancel = this.#parts.clock.after(this.#parts.withinMs, () => this.#end(false));
  }
}

interface EnteringParts {
  readonly clock: Clock;
  /** How long a relay may take to ask who we are, and again to answer. */
  readonly withinMs: number;
  /** Sends the answer to a challenge, and tells which it was. */
  readonly answer: (challenge: string) => NostrEvent;
}

/** What a relay is sent when it asks who is there (NIP-42). */
export function authEvent(key: SecretKey, url: string, challenge: string, clock: Clock): NostrEvent {
  const tags = [
    ["relay", url],
    ["challenge", challenge],
  ];
  return signEvent(key, { kind: kinds.auth, created_at: unixSeconds(clock), tags, content: "" }, randomBytes);
}

/** What relays say to a client. */
export type RelayMessage =
  | { readonly type: "EVENT"; readonly subscription: string; readonly event: unknown }
  | { readonly type: "EOSE"; readonly subscription: string }
  | { readonly type: "CLOSED"; readonly subscription: string; readonly text: string }
  | { readonly type: "NOTICE"; readonly text: string }
  | { readonly type: "AUTH"; readonly challenge: string }
  | { readonly type: "OK"; readonly id: string; readonly ok: boolean; readonly text: string }
  | { readonly type: "NEG-MSG"; readonly subscription: string; readonly message: Uint8Array }
  | { readonly type: "NEG-ERR"; readonly subscription: string; readonly text: string };

const maxChallengeChars = 1_000;
const evenHex = /^(?:[0-9a-f]{2})+$/i;

/** A relay we follow is a stranger too: what would keep the parser busy is not parsed (threats.md row 37). */
export function parseRelayFrame(frame: Buffer): RelayMessage | undefined {
  const text = frame.toString("utf8");
  return frameFault(text, usualFrameBounds) === undefined ? parseRelayMessage(text) : undefined;
}

export function parseRelayMessage(data: string): RelayMessage | undefined {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    return undefined;
  }
  if (!Array.isArray(value)) return undefined;
  const [verb, first, second, third] = value as unknown[];
  const text = (item: unknown): string => (typeof item === "string" ? item : "");
  if (typeof first !== "string") return undefined;
  switch (verb) {
    case "EVENT":
      return { type: "EVENT", subscription: first, event: second };
    case "EOSE":
      return { type: "EOSE", subscription: first };
    case "CLOSED":
      return { type: "CLOSED", subscription: first, text: text(second) };
    case "NOTICE":
      return { type: "NOTICE", text: first };
    case "AUTH":
      return first.length <= maxChallengeChars ? { type: "AUTH", challenge: first } : undefined;
    case "OK":
      return { type: "OK", id: first, ok: second === true, text: text(third) };
    case "NEG-MSG":
      if (!evenHex.test(text(second))) return { type: "NEG-ERR", subscription: first, text: "invalid: not hex" };
      return { type: "NEG-MSG", subscription: first, message: Buffer.from(text(second), "hex") };
    case "NEG-ERR":
      return { type: "NEG-ERR", subscription: first, text: text(second) };
    default:
      return undefined;
  }
}
