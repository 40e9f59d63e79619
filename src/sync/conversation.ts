// A link of its own to one relay, over which one question is asked after the other: for what an operator asks for once.
// Nothing is waited for longer than half a minute of silence.

import type { WebSocket } from "ws";
import type { Clock } from "../base/clock.js";
import type { RelayUrl } from "../net/url.js";
import { type NostrEvent, parseEvent } from "../nostr/event.js";
import { type Filter, filterJson, matcherOf } from "../nostr/filter.js";
import type { EventId } from "../nostr/ids.js";
import { type DialParts, dial, Link, type RelayMessage } from "./relay-client.js";

export class OneOffFailure extends Error {
  override readonly name = "OneOffFailure";
}

/** What is asked for at once; a larger answer is not listened to. */
const pageEvents = 500;
const silenceMs = 30_000;
const linkSettings = { syncPingIntervalSecs: 30, syncSilentLinkSecs: 60, sendMaxBytes: 64 * 2 ** 20 };

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
    this.#link = new Link(socket, clock, linkSettings, {
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

/** Everything a relay answers to a filter, newest first, page by page: for relays that may not know negentropy. */
export async function* pagesOf(
  url: RelayUrl,
  filter: Filter,
  parts: DialParts,
  signal: AbortSignal,
): AsyncGenerator<readonly NostrEvent[]> {
  const conversation = await converse(url, parts, signal);
  try {
    for await (const page of pages(conversation, filter)) {
      yield page;
      signal.throwIfAborted();
    }
  } finally {
    conversation.close();
  }
}

export async function* pages(conversation: Conversation, filter: Filter): AsyncGenerator<readonly NostrEvent[]> {
  let { until } = filter;
  // Ids of the second at which the next page begins: it is asked for again.
  let seen = new Set<string>();
  for (;;) {
    const page = await request(conversation, { ...filter, ...(until !== undefined && { until }), limit: pageEvents });
    if (page.length === 0) return;
    const fresh = page.filter(({ id }) => !seen.has(id));
    if (fresh.length > 0) yield fresh;
    const oldest = Math.min(...page.map(({ created_at }) => created_at));
    seen = new Set(page.filter(({ created_at }) => created_at === oldest).map(({ id }) => id));
    // A second with more events than a page holds cannot be paged through: what lies before it can.
    until = fresh.length === 0 ? oldest - 1 : oldest;
  }
}
