// One open WebSocket to a relay: frames in and out, bytes counted, a ping every half minute, and an end when nothing
// was heard for a minute (event-sync.md "Connections"). A link that we ourselves do not read is not called silent.

import type { RawData, WebSocket } from "ws";
import type { Clock } from "../base/clock.js";
import { parseRelayFrame, type RelayMessage } from "./wire.js";

export interface LinkTimes {
  readonly pingMs: number;
  readonly silentMs: number;
  /** A relay that takes nothing of what we send is given up when this much waits. */
  readonly maxUnsentBytes: number;
}

export interface LinkHooks {
  message(message: RelayMessage): void;
  bytes(direction: "in" | "out", count: number): void;
  /** Once, however it ended, with the time since the last frame; not after `close()`. */
  closed(silentMs: number): void;
}

export class Link {
  readonly #socket: WebSocket;
  readonly #clock: Clock;
  readonly #times: LinkTimes;
  readonly #hooks: LinkHooks;
  /** The last frame, or the moment at which we began to read again. */
  #heardMs: number;
  #frameMs: number;
  #pingedMs: number;
  #paused = false;
  #ended = false;
  #cancelPing: () => void = () => undefined;

  constructor(socket: WebSocket, clock: Clock, times: LinkTimes, hooks: LinkHooks) {
    this.#socket = socket;
    this.#clock = clock;
    this.#times = times;
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

  send(message: readonly unknown[]): void {
    this.sendText(JSON.stringify(message));
  }

  /** A message that is text already: an event as it was stored. */
  sendText(text: string): void {
    if (this.#ended) return;
    this.#hooks.bytes("out", text.length);
    this.#socket.send(text);
    this.#endIfUnread();
  }

  #endIfUnread(): void {
    if (this.#socket.bufferedAmount > this.#times.maxUnsentBytes) this.#end();
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
    const { pingMs, silentMs } = this.#times;
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
