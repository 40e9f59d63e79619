// One comparison with one relay, asked for by the operator (`holdfast sync`, `holdfast mirror`): what the two sides
// lack, fetched or sent until both agree. Uses negentropy; a relay that says a range is too large is asked by halves of
// time. Where only fetching is asked for and `orRead` allows it, a relay without negentropy is read page by page.

import type { Clock } from "../base/clock.js";
import type { RelayUrl } from "../net/url.js";
import { type NostrEvent, parseEvent } from "../nostr/event.js";
import { type Filter, filterJson, matcherOf } from "../nostr/filter.js";
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
  /** A relay that does not reconcile is read page by page. Only for `down`. */
  readonly orRead?: boolean;
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
const reconcileSilenceMs = 10_000;
const pageEvents = 500;
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
      const refusal = await compare(conversation, options.own, filter, missing, peerMissing);
      if (refusal === undefined) continue;
      if (!options.orRead) throw new OneOffFailure(refusal);
      await readAll(conversation, options, filter, tally);
    }
    tally.missingHere += missing.size;
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

/** Why the relay does not reconcile; undefined when it did. */
async function compare(
  conversation: Conversation,
  own: OwnSide,
  filter: Filter,
  missing: Set<EventId>,
  peerMissing: Set<EventId>,
): Promise<string | undefined> {
  const result = await reconcileOnce(conversation, own, filter);
  if (result.ok) {
    for (const id of result.missing) missing.add(id);
    for (const id of result.peerMissing) peerMissing.add(id);
    return undefined;
  }
  const since = filter.since ?? 0;
  const until = filter.until ?? Math.floor(conversation.clock.nowMs() / 1_000) + 86_400;
  if (result.kind !== "too-many" || until <= since) return `the relay does not reconcile: ${result.text}`;
  const middle = Math.floor((since + until) / 2);
  return (
    (await compare(conversation, own, { ...filter, since, until: middle }, missing, peerMissing)) ??
    (await compare(conversation, own, { ...filter, since: middle + 1, until }, missing, peerMissing))
  );
}

function reconcileOnce(conversation: Conversation, own: OwnSide, filter: Filter): Promise<ReconcileResult> {
  const session = conversation.name();
  let reconciliation: Reconciliation | undefined;
  let cancel = (): void => undefined;
  return conversation.exchange<ReconcileResult>(
    (done) => {
      reconciliation = new Reconciliation(session, maxMissing, own, {
        send: (message) => conversation.link?.send(message),
        progress: () => undefined,
        ended: done,
        fault: (error) => conversation.fail(String(error)),
      });
      // Some relays answer nothing at all to what they do not know.
      cancel = conversation.clock.after(reconcileSilenceMs, () => reconciliation?.onRefused("it does not answer"));
      void reconciliation.open(filter);
    },
    (message) => {
      cancel();
      if (message.type === "NEG-MSG") reconciliation?.onMessage(message.message);
      else if (message.type === "NEG-ERR" || message.type === "CLOSED") reconciliation?.onRefused(message.text);
      else if (message.type === "NOTICE") reconciliation?.onRefused(message.text);
    },
  );
}

/** Newest first, by `until`, until a page brings nothing new. */
async function readAll(
  conversation: Conversation,
  { own, progress }: OneOffOptions,
  filter: Filter,
  tally: OneOffTally,
): Promise<void> {
  const seen = new Set<EventId>();
  for (let until = filter.until; ; ) {
    const page = { ...filter, ...(until === undefined ? {} : { until }), limit: pageEvents };
    const events = (await request(conversation, page)).filter(({ id }) => !seen.has(id));
    for (const { id, created_at } of events) {
      seen.add(id);
      until = Math.min(until ?? created_at, created_at);
    }
    if (events.length === 0 || seen.size > maxMissing) return;
    const unheld = new Set(await own.notHeld(events.map(({ id }) => id)));
    tally.missingHere += unheld.size;
    const wanted = events.filter(({ id }) => unheld.has(id));
    await takeAll(own, wanted, tally);
    progress("down", seen.size, seen.size);
  }
}

/** One REQ and everything it brings; each event once, and only what matches. */
async function request(conversation: Conversation, filter: Filter): Promise<NostrEvent[]> {
  const name = conversation.name();
  const isAskedFor = matcherOf(filter);
  const events = new Map<EventId, NostrEvent>();
  await conversation.exchange<void>(
    () => conversation.link?.send(["REQ", name, filterJson(filter)]),
    (message, done) => {
      if (!("subscription" in message) || message.subscription !== name) return;
      if (message.type !== "EVENT") return done();
      const parsed = parseEvent(message.event);
      if (parsed.ok && isAskedFor(parsed.event)) events.set(parsed.event.id, parsed.event);
      // No page is larger: who goes on sending is not listened to.
      if (events.size >= pageEvents) done();
    },
  );
  conversation.link?.send(["CLOSE", name]);
  return [...events.values()];
}

async function takeAll(own: OneOffSide, events: readonly NostrEvent[], tally: OneOffTally): Promise<void> {
  for (const outcome of await Promise.all(events.map((event) => own.take(event)))) {
    if (outcome === "stored") tally.stored += 1;
    else if (outcome === "known") tally.known += 1;
    else tally.refusedHere[outcome] = (tally.refusedHere[outcome] ?? 0) + 1;
  }
}

async function fetchAll(
  conversation: Conversation,
  { own, progress }: OneOffOptions,
  ids: readonly EventId[],
  tally: OneOffTally,
): Promise<void> {
  for (let from = 0; from < ids.length; from += idsAtOnce) {
    await takeAll(own, await request(conversation, { ids: ids.slice(from, from + idsAtOnce) }), tally);
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
