// One connection: frames in, verbs called, work under way counted. Knows no sockets, so that it can be driven with
// bytes alone. A frame that is not understood is answered and forgotten; only hundreds of them end the connection.

import { isUtf8 } from "node:buffer";
import { perMinute, TokenBucket } from "../base/budget/rates.js";
import { type Filter, readBy } from "../nostr/filter.js";
import { frameFault } from "../nostr/frame-shape.js";
import { type Refusal, refuse } from "../nostr/refusals.js";
import { Connection, type Place, type RelayParts } from "./connection.js";
import {
  type BadMessage,
  type ClientMessage,
  type ClientVerb,
  closedBy,
  negErrorBy,
  noticeOf,
  parseClientMessage,
  type RelayMessage,
} from "./messages.js";
import { needsAuthentication, type Readers } from "./private-events.js";
import { Authenticating, Publishing, refusedEvent } from "./publishing.js";
import { Reconciling } from "./reconciling.js";
import { Subscribing } from "./subscribing.js";

export interface SessionPlace extends Place {
  /** Called whenever `wantsToRead` may have changed. */
  onLoad(): void;
  /** Closes the connection with this reason, when what was sent before is out. */
  giveUp(reason: string): void;
}

export class Session {
  readonly #connection: Connection;
  // What only some connections need is made when it is needed.
  #auth: Authenticating | undefined;
  #asking: Readers | undefined;
  #publishing: Publishing | undefined;
  #subscribing: Subscribing | undefined;
  #reconciling: Reconciling | undefined;
  #idle: (() => void)[] | undefined;
  #badFrames: TokenBucket | undefined;
  #isGivenUp = false;
  #inFlight = 0;
  #inFlightBytes = 0;

  constructor(readonly place: SessionPlace) {
    this.#connection = new Connection(place);
  }

  /** False while more work is under way, or more is waiting to be taken, than this client may have. */
  get wantsToRead(): boolean {
    const limits = this.place.parts.limits;
    // While all together have much under way, each waits for its own to be done.
    if (this.#inFlightBytes > tightInFlightBytes && this.place.incoming.isTight) return false;
    return (
      this.#inFlight < limits.maxInFlight &&
      this.#inFlightBytes < limits.maxInFlightBytes &&
      this.place.outbox.heldBytes < limits.sendPauseBytes
    );
  }

  /** A private relay asks who is there before anything is said (GRASP-08). */
  greet(): void {
    if (this.place.parts.members.isPrivate) this.#authenticating().ask();
  }

  receive(frame: Buffer, isBinary: boolean): void {
    if (this.#isGivenUp) return;
    const message = this.#read(frame, isBinary);
    this.place.parts.metrics.received(message.type === "bad" ? message.verb : message.type);
    const refusal = needsMembership.has(message.type) ? this.#connection.turnedAway() : undefined;
    if (refusal) this.place.outbox.send(refusalOf(this.place.parts, message, refusal));
    const work = refusal ? undefined : this.#dispatch(message);
    if (work) this.#track(work, frame.length);
    if (message.type === "bad" || refusal) this.#charge(frame.length);
  }

  /** Whoever is no member any more loses what is open, at once. */
  membersChanged(): void {
    const refusal = this.#connection.turnedAway();
    if (!refusal) return;
    this.#subscribing?.closeAll(refusal);
    this.#reconciling?.closeAll(refusal);
  }

  /** New events are refused from now on; resolves when the ones under way are answered. */
  async finish(): Promise<void> {
    this.#connection.beginToClose();
    this.#subscribing?.close();
    this.#reconciling?.close();
    if (this.#inFlight === 0) return;
    this.#idle ??= [];
    const idle = this.#idle;
    await new Promise<void>((resolve) => idle.push(resolve));
  }

  tick(nowMs: number): void {
    this.#reconciling?.tick(nowMs);
  }

  close(): void {
    this.#connection.end();
    this.#subscribing?.close();
    this.#reconciling?.close();
    this.place.outbox.close();
    this.place.incoming.close();
    this.place.visit.end();
  }

  #read(frame: Buffer, isBinary: boolean): ClientMessage | BadMessage {
    const limits = this.place.parts.limits;
    if (isBinary) return badFrame("messages are text frames");
    if (frame.length > limits.maxMessageBytes) return badFrame(`at most ${limits.maxMessageBytes} bytes are allowed`);
    if (!isUtf8(frame)) return badFrame("messages are UTF-8 text");
    const text = frame.toString();
    const fault = frameFault(text, limits.frames);
    return fault === undefined ? parseClientMessage(text, limits) : badFrame(fault);
  }

  #dispatch(message: ClientMessage | BadMessage): Promise<void> | undefined {
    switch (message.type) {
      case "bad":
        this.place.outbox.send(message.answer);
        return undefined;
      case "EVENT":
        this.#publishing ??= new Publishing(this.#connection, this.#authenticating());
        return this.#publishing.publish(message.event);
      case "AUTH":
        return this.#authenticating().authenticate(message.event);
      case "REQ": {
        this.#subscribing ??= new Subscribing(this.#connection);
        const { subscription: id, filters } = message;
        if (this.#asksInVain(filters, (refusal) => closedBy(id, refusal))) {
          this.#subscribing.unsubscribe(id);
          return undefined;
        }
        return this.#subscribing.subscribe(
          id,
          filters.map((filter) => readBy(filter, this.#readers)),
        );
      }
      case "COUNT": {
        const { subscription: id, filters } = message;
        if (this.#asksInVain(filters, (refusal) => closedBy(id, refusal))) return undefined;
        return count(
          this.#connection,
          id,
          filters.map((filter) => this.#stored(filter)),
        );
      }
      case "CLOSE":
        this.#subscribing?.unsubscribe(message.subscription);
        return undefined;
      case "NEG-OPEN": {
        const { subscription: id, filter } = message;
        if (this.#asksInVain([filter], (refusal) => negErrorBy(id, refusal))) return undefined;
        return this.#reconciliations().open(id, this.#stored(filter), message.message);
      }
      case "NEG-MSG":
        this.#reconciliations().continue(message.subscription, message.message);
        return undefined;
      case "NEG-CLOSE":
        this.#reconciling?.end(message.subscription);
        return undefined;
    }
  }

  /** Keys that have authenticated by the time an event is looked at. */
  get #readers(): Readers {
    this.#asking ??= { has: (key) => this.#connection.authenticated.has(key) };
    return this.#asking;
  }

  /** What is asked of the store about what it holds now. */
  #stored(filter: Filter): Filter {
    return this.place.live.isPrivateHere ? readBy(filter, this.#readers) : filter;
  }

  /** A stranger who asks for private events is asked to authenticate; true when there is nothing else to answer. */
  #asksInVain(filters: readonly Filter[], answer: (refusal: Refusal) => RelayMessage): boolean {
    const isKnown = this.#connection.authenticated.size > 0;
    const { needed, refusal } = needsAuthentication(filters, isKnown);
    if (needed) this.#authenticating().ask();
    if (refusal) this.place.outbox.send(answer(refusal));
    return refusal !== undefined;
  }

  /** Refusing must not cost us more than asking costs a stranger: bad frames without end cost the connection. */
  #charge(bytes: number): void {
    const { clock, limits } = this.place.parts;
    const { badFramesPerMinutePerConnection, badFrameBytes } = limits;
    const rate = perMinute(badFramesPerMinutePerConnection);
    const nowMs = clock.monotonicMs();
    const cost = Math.ceil((bytes + 1) / badFrameBytes);
    this.#badFrames ??= new TokenBucket(rate, nowMs);
    const isWithinRates = this.#badFrames.take(rate, nowMs, cost);
    if (this.place.visit.takeBadFrame(cost) && isWithinRates) return;
    this.#isGivenUp = true;
    const reason = "too many messages were not understood: the connection is closed";
    this.place.outbox.send(noticeOf(refuse("rate-limited", reason)));
    this.place.giveUp(reason);
  }

  #authenticating(): Authenticating {
    this.#auth ??= new Authenticating(this.#connection);
    return this.#auth;
  }

  #reconciliations(): Reconciling {
    this.#reconciling ??= new Reconciling(this.#connection);
    return this.#reconciling;
  }

  #track(work: Promise<void>, bytes: number): void {
    this.#inFlight++;
    this.#inFlightBytes += bytes;
    const isHeld = this.place.incoming.add(bytes);
    const done = () => {
      this.#inFlight--;
      this.#inFlightBytes -= bytes;
      if (isHeld) this.place.incoming.add(-bytes);
      if (this.#inFlight === 0) for (const resolve of this.#idle?.splice(0) ?? []) resolve();
      this.place.onLoad();
    };
    work.then(done, (error: unknown) => {
      done();
      this.place.parts.onFault(error);
    });
  }
}

const tightInFlightBytes = 64 * 1024;

const needsMembership: ReadonlySet<string> = new Set<ClientVerb>(["EVENT", "REQ", "COUNT", "NEG-OPEN"]);

/** What the answer to a message that is not let through is. */
function refusalOf(parts: RelayParts, message: ClientMessage | BadMessage, refusal: Refusal): RelayMessage {
  switch (message.type) {
    case "EVENT":
      return refusedEvent(parts, message.event, refusal);
    case "REQ":
    case "COUNT":
      return closedBy(message.subscription, refusal);
    case "NEG-OPEN":
      return negErrorBy(message.subscription, refusal);
    default:
      return noticeOf(refusal);
  }
}

const badFrame = (message: string): BadMessage => ({
  type: "bad",
  verb: undefined,
  answer: noticeOf(refuse("bad-message", message)),
});

/** COUNT (NIP-45): exact, over what is stored now. */
async function count(connection: Connection, id: string, filters: readonly Filter[]): Promise<void> {
  const { queries, closed, place } = connection;
  const { outbox, parts } = place;
  try {
    const number = await queries.pass(async () => {
      await parts.store.upToDate();
      return parts.store.count(filters, { signal: closed });
    });
    const refusal = connection.turnedAway();
    if (refusal) return outbox.send(closedBy(id, refusal));
    outbox.send({ type: "COUNT", subscription: id, count: number });
  } catch (error) {
    if (!closed.aborted) outbox.send(closedBy(id, connection.failed(error)));
  }
}
