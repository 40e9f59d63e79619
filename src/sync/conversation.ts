// A link of its own to one relay, over which one question is asked after the other: for what an operator asks for once.
// Nothing is waited for longer than half a minute of silence.

import type { WebSocket } from "ws";
import type { Clock } from "../base/clock.js";
import { authEvent, Entering, RelayClient, type RelayMessage } from "../net/relay-client.js";
import type { RelayDialer } from "../net/relay-dialer.js";
import type { RelayUrl } from "../net/url.js";
import { type EventId, type NostrEvent, parseEvent } from "../nostr/event.js";
import { type Filter, matcherOf } from "../nostr/filter.js";
import type { SecretKey } from "../nostr/keys.js";
import { npubOf } from "../nostr/nip19.js";

export class OneOffFailure extends Error {
  override readonly name = "OneOffFailure";
}

/** What is asked for at once; a larger answer is not listened to. */
const pageEvents = 500;
const silenceMs = 30_000;
const entryMs = 10_000;
/** A hundred events are sent at once. */
const sendMaxBytes = 64 * 2 ** 20;

export async function converse(url: RelayUrl, dialer: RelayDialer, signal: AbortSignal): Promise<Conversation> {
  const dialled = await dialer.dial(url, signal);
  if (!dialled.ok) throw new OneOffFailure(`${url} cannot be reached: ${dialled.message}`);
  const conversation = new Conversation(url, dialer, dialled.socket);
  if (!dialer.entrance || (await conversation.enter(dialer.entrance))) return conversation;
  conversation.close();
  throw new OneOffFailure(
    `${url} does not ask who is there, or does not let this server in: a private server speaks to no other relays`,
  );
}

type Listen<T> = (message: RelayMessage, done: (result: T) => void) => void;

export class Conversation {
  readonly clock: Clock;
  readonly #client: RelayClient;
  readonly #whenAsked: SecretKey | undefined;
  /** The relay asked who is there, was told, and let us in. */
  isKnown = false;
  #challenge: string | undefined;
  #exchange: { heard(message: RelayMessage): void; fail(error: Error): void } | undefined;
  #failure: string | undefined;
  #stopWaiting: () => void = () => undefined;
  #names = 0;

  constructor(
    readonly url: RelayUrl,
    { clock, settings, whenAsked }: RelayDialer,
    socket: WebSocket,
  ) {
    this.clock = clock;
    this.#whenAsked = whenAsked;
    this.#client = new RelayClient(
      socket,
      clock,
      { ...settings(), sendMaxBytes },
      {
        message: (message) => {
          this.#waitForRelay();
          if (message.type === "AUTH") this.#challenge = message.challenge;
          this.#exchange?.heard(message);
        },
        bytes: () => undefined,
        closed: () => this.fail("the relay closed the connection"),
      },
    );
  }

  /** Nothing else is said before: what is asked for names repositories (GRASP-08). */
  enter(key: SecretKey): Promise<boolean> {
    const { clock, url } = this;
    let entering: Entering | undefined;
    return this.exchange<boolean>(
      (done) => {
        const answer = (challenge: string): NostrEvent => {
          const event = authEvent(key, url, challenge, clock);
          this.say((client) => client.authenticate(event));
          return event;
        };
        entering = new Entering({ clock, withinMs: entryMs, answer });
        if (this.#challenge !== undefined) entering.heard({ type: "AUTH", challenge: this.#challenge });
        void entering.done.then(done);
      },
      (message) => entering?.heard(message),
    );
  }

  /** True: the relay wanted to know who is there, was told, and lets us in; what it refused may be asked again. */
  async enterIfAsked(refusal: string): Promise<boolean> {
    const key = this.#whenAsked;
    if (!key || this.isKnown || !/^auth-required:/.test(refusal)) return false;
    this.isKnown = await this.enter(key);
    if (this.isKnown) return true;
    throw new OneOffFailure(`${this.url} does not let ${npubOf(key.pubkey)} in: that key must be a member there`);
  }

  say(speak: (client: RelayClient) => void): void {
    speak(this.#client);
    this.#waitForRelay();
  }

  /** We are busy with our own store: the relay is not waited for until something is said again. */
  rest(): void {
    this.#stopWaiting();
  }

  close(): void {
    this.#client.close();
  }

  name(): string {
    this.#names += 1;
    return `once${this.#names}`;
  }

  fail(why: string): void {
    this.#failure ??= why;
    this.#exchange?.fail(new OneOffFailure(why));
  }

  /** Runs one exchange: `start` speaks, `listen` looks at each message until it calls `done`. Silence counts from speaking. */
  exchange<T>(start: (done: (result: T) => void) => void, listen: Listen<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#failure !== undefined) return reject(new OneOffFailure(this.#failure));
      const end = (): void => {
        this.#stopWaiting();
        this.#exchange = undefined;
      };
      const done = (result: T): void => {
        end();
        resolve(result);
      };
      const fail = (error: Error): void => {
        end();
        reject(error);
      };
      this.#exchange = { heard: (message) => listen(message, done), fail };
      start(done);
    });
  }

  #waitForRelay(): void {
    this.#stopWaiting();
    if (!this.#exchange) return;
    this.#stopWaiting = this.clock.after(silenceMs, () => this.fail(`the relay was silent for ${silenceMs / 1_000} s`));
  }
}

/** One REQ and everything it brings; each event once, and only what matches. */
export async function request(conversation: Conversation, filter: Filter): Promise<NostrEvent[]> {
  const first = await answerOf(conversation, filter);
  const answer =
    typeof first === "string" && (await conversation.enterIfAsked(first))
      ? await answerOf(conversation, filter)
      : first;
  if (typeof answer !== "string") return answer;
  const why = `the relay does not answer: ${answer}`;
  conversation.fail(why);
  throw new OneOffFailure(why);
}

/** The relay's words, if it answers with nothing else. */
async function answerOf(conversation: Conversation, filter: Filter): Promise<NostrEvent[] | string> {
  const name = conversation.name();
  const isAskedFor = matcherOf(filter);
  const events = new Map<EventId, NostrEvent>();
  const refusal = await conversation.exchange<string | undefined>(
    () => conversation.say((client) => client.subscribe(name, [filter])),
    (message, done) => {
      if (!("subscription" in message) || message.subscription !== name) return;
      if (message.type === "EVENT") {
        const parsed = parseEvent(message.event);
        if (parsed.ok && isAskedFor(parsed.event)) events.set(parsed.event.id, parsed.event);
        if (events.size >= pageEvents) done(undefined);
      } else done(message.type === "CLOSED" && events.size === 0 ? message.text : undefined);
    },
  );
  if (refusal !== undefined) return refusal;
  conversation.say((client) => client.unsubscribe(name));
  return [...events.values()];
}

/** Everything a relay answers to a filter, newest first, page by page: for relays that may not know negentropy. */
export async function* pagesOf(
  url: RelayUrl,
  filter: Filter,
  dialer: RelayDialer,
  signal: AbortSignal,
): AsyncGenerator<readonly NostrEvent[]> {
  const conversation = await converse(url, dialer, signal);
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
