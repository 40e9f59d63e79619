// One comparison with one relay, asked for by the operator (`holdfast sync`): what the two sides lack, fetched or sent
// until both agree. Uses negentropy only; a relay that says a range is too large is asked by halves of time.

import type { Clock } from "../base/clock.js";
import type { RelayUrl } from "../net/url.js";
import { type NostrEvent, parseEvent } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import type { EventId } from "../nostr/ids.js";
import { type DialParts, dial } from "./dial.js";
import { Link } from "./link.js";
import { type OwnSide, type ReconcileResult, Reconciliation } from "./reconciliation.js";
import type { RelayMessage } from "./wire.js";

export interface OneOffSide extends OwnSide {
  /** Those of these events that we hold, as text. */
  events(ids: readonly EventId[]): Promise<readonly { readonly id: EventId; readonly text: string }[]>;
  /** Takes an event in; the refusal's code when it is not wanted, `known` when it was here already. */
  take(event: NostrEvent): Promise<"stored" | "known" | string>;
}

export interface OneOffOptions {
  readonly url: RelayUrl;
  readonly filters: readonly Filter[];
  readonly direction: "up" | "down" | "both";
  readonly dial: DialParts;
  readonly own: OneOffSide;
  readonly progress: (phase: "down" | "up", done: number, total: number) => void;
  readonly signal: AbortSignal;
}

export interface OneOffTally {
  missingHere: number;
  missingThere: number;
  stored: number;
  known: number;
  sent: number;
  refusedHere: Record<string, number>;
  refusedThere: number;
}

export class OneOffFailure extends Error {
  override readonly name = "OneOffFailure";
}

const idsAtOnce = 100;
const silenceMs = 30_000;
const maxMissing = 1_000_000;
const times = { pingMs: 30_000, silentMs: 60_000, maxUnsentBytes: 64 * 2 ** 20 };

export async function converse(url: RelayUrl, parts: DialParts, signal: AbortSignal): Promise<Conversation> {
  const dialled = await dial(url, parts, signal);
  if (!dialled.ok) throw new OneOffFailure(`${url} cannot be reached: ${dialled.message}`);
  const conversation = new Conversation(parts.clock);
  conversation.link = new Link(dialled.socket, parts.clock, times, {
    message: (message) => conversation.heard(message),
    bytes: () => undefined,
    closed: () => conversation.fail("the relay closed the connection"),
  });
  return conversation;
}

export async function syncOnce(options: OneOffOptions): Promise<OneOffTally> {
  const conversation = await converse(options.url, options.dial, options.signal);
  const tally: OneOffTally = {
    missingHere: 0,
    missingThere: 0,
    stored: 0,
    known: 0,
    sent: 0,
    refusedHere: {},
    refusedThere: 0,
  };
  try {
    const missing = new Set<EventId>();
    const peerMissing = new Set<EventId>();
    for (const { limit: _limit, ...filter } of options.filters) {
      await compare(conversation, options.own, filter, missing, peerMissing);
    }
    tally.missingHere = missing.size;
    tally.missingThere = peerMissing.size;
    if (options.direction !== "up") await fetchAll(conversation, options, [...missing], tally);
    if (options.direction !== "down") await sendAll(conversation, options, [...peerMissing], tally);
    return tally;
  } finally {
    conversation.link?.close();
  }
}

/** Requests and their answers over one link; nothing is waited for longer than half a minute of silence. */
export class Conversation {
  link: Link | undefined;
  #listener: ((message: RelayMessage) => void) | undefined;
  #reject: ((error: Error) => void) | undefined;
  #failure: string | undefined;
  #restart: () => void = () => undefined;
  #names = 0;

  constructor(readonly clock: Clock) {}

  name(): string {
    this.#names += 1;
    return `once${this.#names}`;
  }

  heard(message: RelayMessage): void {
    this.#restart();
    this.#listener?.(message);
  }

  fail(why: string): void {
    this.#failure ??= why;
    this.#reject?.(new OneOffFailure(why));
  }

  /** Runs one exchange: `start` sends, `listen` looks at each message until it calls `done`. */
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
      this.#restart();
      this.#listener = (message) => listen(message, done);
      start(done);
    });
  }
}

async function compare(
  conversation: Conversation,
  own: OwnSide,
  filter: Filter,
  missing: Set<EventId>,
  peerMissing: Set<EventId>,
): Promise<void> {
  const result = await reconcileOnce(conversation, own, filter);
  if (result.ok) {
    for (const id of result.missing) missing.add(id);
    for (const id of result.peerMissing) peerMissing.add(id);
    return;
  }
  const since = filter.since ?? 0;
  const until = filter.until ?? Math.floor(conversation.clock.nowMs() / 1_000) + 86_400;
  if (result.kind !== "too-many" || until <= since)
    throw new OneOffFailure(`the relay does not reconcile: ${result.text}`);
  const middle = Math.floor((since + until) / 2);
  await compare(conversation, own, { ...filter, since, until: middle }, missing, peerMissing);
  await compare(conversation, own, { ...filter, since: middle + 1, until }, missing, peerMissing);
}

function reconcileOnce(conversation: Conversation, own: OwnSide, filter: Filter): Promise<ReconcileResult> {
  const session = conversation.name();
  let reconciliation: Reconciliation | undefined;
  return conversation.exchange<ReconcileResult>(
    (done) => {
      reconciliation = new Reconciliation(session, maxMissing, own, {
        send: (message) => conversation.link?.send(message),
        progress: () => undefined,
        ended: done,
        fault: (error) => conversation.fail(String(error)),
      });
      void reconciliation.open(filter);
    },
    (message) => {
      if (message.type === "NEG-MSG") reconciliation?.onMessage(message.message);
      else if (message.type === "NEG-ERR" || message.type === "CLOSED") reconciliation?.onRefused(message.text);
      else if (message.type === "NOTICE") reconciliation?.onRefused(message.text);
    },
  );
}

async function fetchAll(
  conversation: Conversation,
  { own, progress }: OneOffOptions,
  ids: readonly EventId[],
  tally: OneOffTally,
): Promise<void> {
  for (let from = 0; from < ids.length; from += idsAtOnce) {
    const asked = new Set<string>(ids.slice(from, from + idsAtOnce));
    const name = conversation.name();
    const events: NostrEvent[] = [];
    await conversation.exchange<void>(
      () => conversation.link?.send(["REQ", name, { ids: [...asked] }]),
      (message, done) => {
        if (!("subscription" in message) || message.subscription !== name) return;
        if (message.type === "EVENT") {
          const parsed = parseEvent(message.event);
          // Each once, and only what was asked for.
          if (parsed.ok && asked.delete(parsed.event.id)) events.push(parsed.event);
        } else done();
      },
    );
    conversation.link?.send(["CLOSE", name]);
    for (const outcome of await Promise.all(events.map((event) => own.take(event)))) {
      if (outcome === "stored") tally.stored += 1;
      else if (outcome === "known") tally.known += 1;
      else tally.refusedHere[outcome] = (tally.refusedHere[outcome] ?? 0) + 1;
    }
    progress("down", Math.min(from + idsAtOnce, ids.length), ids.length);
  }
}

async function sendAll(
  conversation: Conversation,
  { own, progress }: OneOffOptions,
  ids: readonly EventId[],
  tally: OneOffTally,
): Promise<void> {
  for (let from = 0; from < ids.length; from += idsAtOnce) {
    const events = await own.events(ids.slice(from, from + idsAtOnce));
    const open = new Set<string>(events.map(({ id }) => id));
    if (open.size > 0) {
      await conversation.exchange<void>(
        () => {
          for (const { text } of events) conversation.link?.sendText(`["EVENT",${text}]`);
        },
        (message, done) => {
          if (message.type !== "OK" || !open.delete(message.id)) return;
          if (message.ok) tally.sent += 1;
          else tally.refusedThere += 1;
          if (open.size === 0) done();
        },
      );
    }
    progress("up", Math.min(from + idsAtOnce, ids.length), ids.length);
  }
}
