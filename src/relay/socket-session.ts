// A session on a real socket: `ws` reads and closes, the outbox writes. Threats row 25: a peer that is gone, takes
// nothing or lets too much pile up is closed; a peer that asks faster than we answer is not read.

import type { Duplex } from "node:stream";
import type { RawData, WebSocket } from "ws";
import { refuse } from "../nostr/refusals.js";
import type { FlushTurn } from "./flush-turn.js";
import { noticeOf } from "./messages.js";
import { Outbox } from "./outbox.js";
import { Session, type SessionPlace } from "./session.js";

/** How long a peer may take to answer our close frame. */
const closeGraceMs = 2_000;

export class SocketSession {
  readonly #webSocket: WebSocket;
  readonly #outbox: Outbox;
  readonly #session: Session;
  readonly #place: Omit<SessionPlace, "outbox" | "onLoad">;
  #pingedAtMs: number;
  #heard = true;
  /** Resolves when the socket is closed, whoever closed it. */
  readonly ended: Promise<void>;

  constructor(webSocket: WebSocket, socket: Duplex, turn: FlushTurn, place: Omit<SessionPlace, "outbox" | "onLoad">) {
    const { clock, metrics } = place.parts;
    this.#webSocket = webSocket;
    this.#place = place;
    this.#pingedAtMs = clock.monotonicMs();
    const adjust = () => this.#adjustReading();
    const sink = {
      // `ws` writes only whole control frames to this socket, and we only whole text frames: they may interleave.
      write: (bytes: Buffer, done: () => void) => {
        if (socket.writable) socket.write(bytes, done);
      },
    };
    this.#outbox = new Outbox({
      sink,
      turn,
      clock,
      maxHeldBytes: () => place.parts.limits().closeAtBytes,
      onOverflow: () => this.terminate(),
      onSent: (verb) => metrics.sent(verb),
      // Taking can only make room: a socket that is read stays so.
      onTaken: () => {
        if (webSocket.isPaused) adjust();
      },
    });
    this.#session = new Session({ ...place, outbox: this.#outbox, onLoad: adjust });
    this.ended = new Promise((resolve) => webSocket.once("close", () => resolve()));
    webSocket.on("message", (data, isBinary) => this.#receive(data, isBinary));
    webSocket.on("pong", () => {
      this.#heard = true;
    });
    // Protocol violations and resets: `ws` closes the socket itself and "close" follows.
    webSocket.on("error", () => undefined);
  }

  tick(nowMs: number): void {
    const limits = this.#place.parts.limits();
    if (this.#outbox.stalledMs() >= limits.stalledMs) {
      this.terminate();
      return;
    }
    this.#session.tick(nowMs);
    if (nowMs - this.#pingedAtMs < limits.pingMs) return;
    // A paused socket cannot bring its pong.
    if (!this.#heard && !this.#webSocket.isPaused) {
      this.terminate();
      return;
    }
    this.#pingedAtMs = nowMs;
    this.#heard = false;
    this.#webSocket.ping(undefined, undefined, () => undefined);
  }

  /** Lets answers under way out, says goodbye, closes. */
  async finish(): Promise<void> {
    await this.#session.finish();
    this.#outbox.send(noticeOf(refuse("shutting-down", "the server is shutting down: connect again later")));
    await this.#outbox.drained();
    this.#webSocket.resume();
    this.#webSocket.close(1001, "the server is shutting down");
    const cancel = this.#place.parts.clock.after(closeGraceMs, () => this.terminate());
    await this.ended;
    cancel();
  }

  terminate(): void {
    this.#webSocket.terminate();
  }

  close(): void {
    this.#session.close();
  }

  #receive(data: RawData, isBinary: boolean): void {
    this.#heard = true;
    const frame = Buffer.isBuffer(data) ? data : Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
    this.#session.receive(frame, isBinary);
    this.#adjustReading();
  }

  #adjustReading(): void {
    if (this.#session.wantsToRead) {
      if (this.#webSocket.isPaused) this.#webSocket.resume();
    } else if (!this.#webSocket.isPaused) this.#webSocket.pause();
  }
}
