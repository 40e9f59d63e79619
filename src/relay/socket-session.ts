// A session on a real socket: `ws` reads and closes, the outbox writes. Threats row 25: a peer that is gone, takes
// nothing or lets too much pile up is closed; a peer that asks faster than we answer is not read.

import type { Duplex } from "node:stream";
import type { RawData, WebSocket } from "ws";
import type { GivesWay, HeldBytes } from "../base/budget/bytes.js";
import type { Clock } from "../base/clock.js";
import { refuse } from "../nostr/refusals.js";
import type { RecordBudget, RelayParts } from "./connection.js";
import type { Live } from "./live.js";
import { noticeOf, type RelayVerb } from "./messages.js";
import { type FlushTurn, Outbox, type OutboxParts } from "./outbox.js";
import { Session, type SessionPlace } from "./session.js";
import type { RelayBudgets, Visit } from "./visitors.js";

/** How long a peer may take to answer our close frame. */
const closeGraceMs = 2_000;

/** Who has taken nothing for so long is slow. */
const slowAfterMs = 1_000;
/** Of a message that is not whole: as much as comes at a time anyway. */
const freeUnfinishedBytes = 16 * 1024;

/** What all sockets share. */
export interface Room {
  readonly parts: RelayParts;
  readonly live: Live;
  readonly records: RecordBudget;
  readonly budgets: RelayBudgets;
  readonly turn: FlushTurn;
  /** The socket is closed, whoever closed it, and so is the session. */
  left(session: SocketSession): void;
}

const ignore = (): void => undefined;

/** There are thousands of these and most are idle: it is itself what its parts call, instead of a closure for each. */
export class SocketSession implements SessionPlace, OutboxParts, GivesWay {
  readonly openedAtMs: number;
  readonly ip: string;
  readonly visit: Visit;
  readonly held: HeldBytes;
  readonly incoming: HeldBytes;
  readonly outbox: Outbox;
  readonly #webSocket: WebSocket;
  readonly #socket: Duplex;
  readonly #room: Room;
  readonly #session: Session;
  #pingedAtMs: number;
  #heard = true;
  /** What came since the last whole message, pings and pongs left out. */
  #unfinishedBytes = 0;
  #unfinishedHeld = 0;
  #unfinishedSinceMs: number | undefined;
  /** Its address has sent more than its share a second: nothing is read from it for a moment. */
  #isHeldBack = false;
  #isOver = false;
  #ended: (() => void)[] | undefined;

  constructor(webSocket: WebSocket, socket: Duplex, room: Room, ip: string, visit: Visit) {
    this.#webSocket = webSocket;
    this.#socket = socket;
    this.#room = room;
    this.ip = ip;
    this.visit = visit;
    this.openedAtMs = room.parts.clock.monotonicMs();
    this.#pingedAtMs = this.openedAtMs;
    this.held = room.budgets.outgoing.open(ip, this);
    this.incoming = room.budgets.incoming.open(ip, {
      waiting: () => this.#unfinishedHeld,
      giveWay: () => this.terminate(),
    });
    this.outbox = new Outbox(this);
    this.#session = new Session(this);
    webSocket.on("message", (data, isBinary) => this.#receive(data, isBinary));
    // Before `ws` looks at it: what is whole afterwards is taken off again.
    socket.prependListener("data", (chunk: Buffer) => this.#arrived(chunk.length));
    webSocket.on("ping", (payload) => {
      this.#heardControl(payload);
      this.outbox.sendPong(payload);
      this.onLoad();
    });
    webSocket.on("pong", (payload) => this.#heardControl(payload));
    webSocket.on("close", () => this.#closed());
    // Protocol violations and resets: `ws` closes the socket itself and "close" follows.
    webSocket.on("error", ignore);
    this.#session.greet();
  }

  membersChanged(): void {
    this.#session.membersChanged();
  }

  get parts(): RelayParts {
    return this.#room.parts;
  }

  get live(): Live {
    return this.#room.live;
  }

  get records(): RecordBudget {
    return this.#room.records;
  }

  get budgets(): RelayBudgets {
    return this.#room.budgets;
  }

  get turn(): FlushTurn {
    return this.#room.turn;
  }

  get clock(): Clock {
    return this.#room.parts.clock;
  }

  /** `ws` writes only whole control frames to this socket, and we only whole frames: they may interleave. */
  write(pieces: readonly Buffer[], done: () => void): void {
    const socket = this.#socket;
    if (!socket.writable) return;
    const last = pieces.length - 1;
    if (last > 0) socket.cork();
    for (let at = 0; at < last; at++) socket.write(pieces[at]);
    socket.write(pieces[last], done);
    if (last > 0) socket.uncork();
  }

  /** Whoever takes nothing goes before whoever is only being sent much. */
  waiting(): number {
    const { heldBytes } = this.outbox;
    return this.outbox.stalledMs() >= slowAfterMs ? heldBytes : heldBytes / 1024;
  }

  giveWay(): void {
    this.outbox.close();
    this.terminate();
  }

  maxHeldBytes(): number {
    return this.parts.limits.sendMaxBytes;
  }

  onOverflow(): void {
    this.terminate();
  }

  onSent(verb: RelayVerb): void {
    this.parts.metrics.sent(verb);
  }

  /** Taking can only make room: a socket that is read stays so. */
  onTaken(): void {
    if (this.#webSocket.isPaused) this.onLoad();
  }

  onLoad(): void {
    if (this.#session.wantsToRead && !this.#isHeldBack) {
      if (this.#webSocket.isPaused) this.#webSocket.resume();
    } else if (!this.#webSocket.isPaused) this.#webSocket.pause();
  }

  /** Resolves when the socket is closed, whoever closed it. */
  ended(): Promise<void> {
    if (this.#isOver) return Promise.resolve();
    this.#ended ??= [];
    const waiting = this.#ended;
    return new Promise((resolve) => waiting.push(resolve));
  }

  tick(nowMs: number): void {
    const limits = this.parts.limits;
    if (this.outbox.stalledMs() >= limits.sendStallSecs * 1_000) {
      this.terminate();
      return;
    }
    this.#session.tick(nowMs);
    if (this.#unfinishedBytes === 0) this.#unfinishedSinceMs = undefined;
    else this.#unfinishedSinceMs ??= nowMs;
    if (nowMs - (this.#unfinishedSinceMs ?? nowMs) >= limits.messageMs) {
      this.terminate();
      return;
    }
    if (nowMs - this.#pingedAtMs < limits.pingIntervalSecs * 1_000) return;
    // A paused socket cannot bring its pong.
    if (!this.#heard && !this.#webSocket.isPaused) {
      this.terminate();
      return;
    }
    this.#pingedAtMs = nowMs;
    this.#heard = false;
    this.#webSocket.ping(undefined, undefined, ignore);
  }

  /** Lets answers under way out, says goodbye, closes. */
  async finish(): Promise<void> {
    await this.#session.finish();
    this.outbox.send(noticeOf(refuse("shutting-down", "the server is shutting down: connect again later")));
    await this.outbox.drained();
    this.#webSocket.resume();
    this.#webSocket.close(1001, "the server is shutting down");
    const cancel = this.clock.after(closeGraceMs, () => this.terminate());
    await this.ended();
    cancel();
  }

  giveUp(reason: string): void {
    // 1008: policy violation. Who does not answer, or does not read it, is ended by force.
    this.#webSocket.pause();
    const cancel = this.clock.after(closeGraceMs, () => this.terminate());
    void this.ended().then(cancel);
    void this.outbox.drained().then(() => {
      this.#webSocket.resume();
      this.#webSocket.close(1008, reason);
    });
  }

  terminate(): void {
    this.#webSocket.terminate();
  }

  #closed(): void {
    this.#isOver = true;
    this.#session.close();
    this.#room.left(this);
    for (const resolve of this.#ended ?? []) resolve();
  }

  /** Fragments that never make a message are held by `ws`: they count, and whoever has most of them goes (row 36). */
  #arrived(bytes: number): void {
    const waitMs = this.visit.arrived(bytes);
    // A socket that is always readable would be read for megabytes before the next has its turn.
    const isTurnOver = this.visit.turns.isLate(performance.now());
    if (!this.#isHeldBack && waitMs > 0) this.#holdBack((goOn) => this.clock.after(waitMs, goOn));
    else if (!this.#isHeldBack && isTurnOver) this.#holdBack(setImmediate);
    this.#unfinishedBytes += bytes;
    if (this.#unfinishedBytes <= freeUnfinishedBytes) return;
    const more = this.#unfinishedBytes - this.#unfinishedHeld;
    if (this.incoming.add(more)) this.#unfinishedHeld += more;
    else this.terminate();
  }

  /** Bytes without end cost processor time, whatever they are. Whoever sends them waits, and others are served. */
  #holdBack(later: (goOn: () => void) => unknown): void {
    this.#isHeldBack = true;
    this.onLoad();
    later(() => {
      this.#isHeldBack = false;
      if (!this.#isOver) this.onLoad();
    });
  }

  #heardControl(payload: Buffer): void {
    this.#heard = true;
    // Two bytes of header, four of mask.
    this.#unfinishedBytes = Math.max(0, this.#unfinishedBytes - 6 - payload.length);
  }

  #receive(data: RawData, isBinary: boolean): void {
    this.#heard = true;
    this.#unfinishedBytes = 0;
    this.#unfinishedSinceMs = undefined;
    if (this.#unfinishedHeld > 0) {
      this.incoming.add(-this.#unfinishedHeld);
      this.#unfinishedHeld = 0;
    }
    const frame = Buffer.isBuffer(data) ? data : Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
    this.#session.receive(frame, isBinary);
    this.onLoad();
  }
}
