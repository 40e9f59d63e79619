// A link of its own to one relay, over which one question is asked after the other: for what an operator asks for once.
// Nothing is waited for longer than half a minute of silence.

import type { WebSocket } from "ws";
import type { Clock } from "../base/clock.js";
import type { RelayUrl } from "../net/url.js";
import { type NostrEvent, parseEvent } from "../nostr/event.js";
import { type Filter, filterJson, matcherOf } from "../nostr/filter.js";
import type { EventId } from "../nostr/ids.js";
import { type DialParts, dial } from "./dial.js";
import { Link } from "./link.js";
import type { RelayMessage } from "./wire.js";

export class OneOffFailure extends Error {
  override readonly name = "OneOffFailure";
}

/** What is asked for at once; a larger answer is not listened to. */
export const pageEvents = 500;
const silenceMs = 30_000;
const times = { pingMs: 30_000, silentMs: 60_000, maxUnsentBytes: 64 * 2 ** 20 };

export async function converse(url: RelayUrl, parts: DialParts, signal: AbortSignal): Promise<Conversation> {
  const dialled = await dial(url, parts, signal);
  if (!dialled.ok) throw new OneOffFailure(`${url} cannot be reached: ${dialled.message}`);
  return new Conversation(parts.clock, dialled.socket);
}

export class Conversation {
  readonly #link: Link;
  #listener: ((message: RelayMessage) => void) | undefined;
  #reject: ((error: Error) => void) | undefined;
  #failure: string | undefined;
  #restart: () => void = () => undefined;
  #pause: () => void = () => undefined;
  #names = 0;

  constructor(
    readonly clock: Clock,
    socket: WebSocket,
  ) {
    this.#link = new Link(socket, clock, times, {
      message: (message) => this.#heard(message),
      bytes: () => undefined,
      closed: () => this.fail("the relay closed the connection"),
    });
  }

  send(message: readonly unknown[]): void {
    this.sendText(JSON.stringify(message));
  }

  /** A message that is text already. */
  sendText(text: string): void {
    this.#link.sendText(text);
    this.#restart();
  }

  /** We are busy with our own store: the relay is not waited for until something is sent again. */
  rest(): void {
    this.#pause();
  }

  close(): void {
    this.#link.close();
  }

  name(): string {
    this.#names += 1;
    return `once${this.#names}`;
  }

  #heard(message: RelayMessage): void {
    this.#restart();
    this.#listener?.(message);
  }

  fail(why: string): void {
    this.#failure ??= why;
    this.#reject?.(new OneOffFailure(why));
  }

  /** Runs one exchange: `start` sends, `listen` looks at each message until it calls `done`. Silence counts from sending. */
  exchange<T>(
    start: (done: (result: T) => void) => void,
    listen: (message: RelayMessage, done: (result: T) => void) => void,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#failure !== undefined) return reject(new OneOffFailure(this.#failure));
      let cancel = (): void => undefined;
      const end = (): void => {
        cancel();
        this.#listener = undefined;
        this.#reject = undefined;
        this.#restart = () => undefined;
        this.#pause = () => undefined;
      };
      const done = (result: T): void => {
        end();
        resolve(result);
      };
      this.#reject = (error) => {
        end();
        reject(error);
      };
      this.#restart = () => {
        cancel();
        cancel = this.clock.after(silenceMs, () => this.fail(`the relay was silent for ${silenceMs / 1_000} s`));
      };
      this.#pause = () => cancel();
      this.#listener = (message) => listen(message, done);
      start(done);
    });
  }
}

/** One REQ and everything it brings; each event once, and only what matches. */
export async function request(conversation: Conversation, filter: Filter): Promise<NostrEvent[]> {
  const name = conversation.name();
  const isAskedFor = matcherOf(filter);
  const events = new Map<EventId, NostrEvent>();
  await conversation.exchange<void>(
    () => conversation.send(["REQ", name, filterJson(filter)]),
    (message, done) => {
      if (!("subscription" in message) || message.subscription !== name) return;
      if (message.type === "EVENT") {
        const parsed = parseEvent(message.event);
        if (parsed.ok && isAskedFor(parsed.event)) events.set(parsed.event.id, parsed.event);
        if (events.size >= pageEvents) done();
      } else if (message.type === "CLOSED" && events.size === 0) {
        conversation.fail(`the relay does not answer: ${message.text}`);
      } else done();
    },
  );
  conversation.send(["CLOSE", name]);
  return [...events.values()];
}
