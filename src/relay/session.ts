// One connection: frames in, verbs called, work under way counted. Knows no sockets, so that it can be driven with
// bytes alone. A frame that is not understood is answered and forgotten; it never ends the connection.

import { isUtf8 } from "node:buffer";
import { refuse } from "../nostr/refusals.js";
import { Authenticating } from "./authenticating.js";
import { type Connection, failureOf, noLongerWanted, type RelayParts } from "./connection.js";
import { count } from "./counting.js";
import { Gate } from "./gate.js";
import type { Live } from "./live.js";
import { type BadMessage, type ClientMessage, noticeOf, parseClientMessage } from "./messages.js";
import type { RecordBudget } from "./negentropy-session.js";
import type { Outbox } from "./outbox.js";
import { Publishing } from "./publishing.js";
import { Reconciling } from "./reconciling.js";
import { Subscribing } from "./subscribing.js";
import type { Visit } from "./visitors.js";

export interface SessionPlace {
  readonly parts: RelayParts;
  readonly live: Live;
  readonly records: RecordBudget;
  readonly ip: string;
  readonly visit: Visit;
  readonly outbox: Outbox;
  /** Called whenever `wantsToRead` may have changed. */
  readonly onLoad: () => void;
}

export class Session {
  readonly #connection: Connection;
  readonly #onLoad: () => void;
  // Most connections listen and do nothing else: what only some need is made when it is needed.
  #end: AbortController | undefined;
  readonly #auth: Authenticating;
  readonly #publishing: Publishing;
  readonly #subscribing: Subscribing;
  #reconciling: Reconciling | undefined;
  #closing = false;
  #inFlight = 0;
  #inFlightBytes = 0;
  #idle: (() => void)[] = [];

  constructor(place: SessionPlace) {
    const { parts, onLoad, ...shared } = place;
    this.#onLoad = onLoad;
    const signal = () => this.#ending().signal;
    this.#connection = {
      ...shared,
      parts,
      queries: new Gate(parts.limits().maxParallelQueries),
      get closed() {
        return signal();
      },
      isClosing: () => this.#closing,
      failed: (error) => failureOf(error, parts.onFault),
    };
    this.#auth = new Authenticating(this.#connection);
    this.#publishing = new Publishing(this.#connection, this.#auth);
    this.#subscribing = new Subscribing(this.#connection);
  }

  /** False while more work is under way, or more is waiting to be taken, than this client may have. */
  get wantsToRead(): boolean {
    const limits = this.#connection.parts.limits();
    return (
      this.#inFlight < limits.maxInFlight &&
      this.#inFlightBytes < limits.maxInFlightBytes &&
      this.#connection.outbox.heldBytes < limits.pauseAtBytes
    );
  }

  receive(frame: Buffer, isBinary: boolean): void {
    const { parts } = this.#connection;
    const message = this.#read(frame, isBinary);
    parts.metrics.received(message.type === "bad" ? message.verb : message.type);
    const work = this.#dispatch(message);
    if (work) this.#track(work, frame.length);
  }

  /** New events are refused from now on; resolves when the ones under way are answered. */
  async finish(): Promise<void> {
    this.#closing = true;
    this.#subscribing.close();
    this.#reconciling?.close();
    if (this.#inFlight > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  tick(nowMs: number): void {
    this.#reconciling?.tick(nowMs);
  }

  close(): void {
    this.#ending().abort(noLongerWanted);
    this.#subscribing.close();
    this.#reconciling?.close();
    this.#connection.outbox.close();
    this.#connection.visit.end();
  }

  #read(frame: Buffer, isBinary: boolean): ClientMessage | BadMessage {
    const limits = this.#connection.parts.limits();
    if (isBinary) return badFrame("messages are text frames");
    if (frame.length > limits.maxMessageBytes) return badFrame(`at most ${limits.maxMessageBytes} bytes are allowed`);
    if (!isUtf8(frame)) return badFrame("messages are UTF-8 text");
    return parseClientMessage(frame.toString(), limits);
  }

  #dispatch(message: ClientMessage | BadMessage): Promise<void> | undefined {
    switch (message.type) {
      case "bad":
        this.#connection.outbox.send(message.answer);
        return undefined;
      case "EVENT":
        return this.#publishing.publish(message.event);
      case "AUTH":
        return this.#auth.authenticate(message.event);
      case "REQ":
        return this.#subscribing.subscribe(message.subscription, message.filters);
      case "COUNT":
        return count(this.#connection, message.subscription, message.filters);
      case "CLOSE":
        this.#subscribing.unsubscribe(message.subscription);
        return undefined;
      case "NEG-OPEN":
        return this.#reconciliations().open(message.subscription, message.filter, message.message);
      case "NEG-MSG":
        this.#reconciliations().continue(message.subscription, message.message);
        return undefined;
      case "NEG-CLOSE":
        this.#reconciling?.end(message.subscription);
        return undefined;
    }
  }

  #ending(): AbortController {
    this.#end ??= new AbortController();
    return this.#end;
  }

  #reconciliations(): Reconciling {
    this.#reconciling ??= new Reconciling(this.#connection);
    return this.#reconciling;
  }

  #track(work: Promise<void>, bytes: number): void {
    this.#inFlight++;
    this.#inFlightBytes += bytes;
    const done = () => {
      this.#inFlight--;
      this.#inFlightBytes -= bytes;
      if (this.#inFlight === 0) for (const resolve of this.#idle.splice(0)) resolve();
      this.#onLoad();
    };
    work.then(done, (error: unknown) => {
      done();
      this.#connection.parts.onFault(error);
    });
  }
}

const badFrame = (message: string): BadMessage => ({
  type: "bad",
  verb: undefined,
  answer: noticeOf(refuse("bad-message", message)),
});
