// One REQ, exactly once (spec/relay.md): the feed position divides stored from live. Stored events up to it are sent,
// then EOSE, then what came after it: from a bounded buffer, or, if that overflowed, read again from the feed.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { LoopTurns } from "../base/clock.js";
import type { VerifiedEvent } from "../nostr/event.js";
import { type Filter, type Matcher, matcherOf, matchesNothing } from "../nostr/filter.js";
import type { Sequence, StopSign, Store, StoredRow } from "../store/port.js";
import { noLongerWanted } from "./connection.js";
import type { RelayLimits } from "./limits.js";
import type { Live, LiveEvent } from "./live.js";
import { eventPrefix } from "./messages.js";
import type { Outbox } from "./outbox.js";

/** How long looking through stored events may hold the event loop at a time. */
const sliceMs = 10;

/** Real clients ask by these without a limit and never page. */
const namesThings = (filter: Filter): boolean =>
  filter.ids !== undefined || ["e", "a", "d"].some((name) => filter.tags?.has(name) === true);

function limitOf(filter: Filter, limits: RelayLimits): number {
  const fallback = namesThings(filter) ? limits.maxLimit : limits.defaultLimit;
  return Math.min(filter.limit ?? fallback, limits.maxLimit);
}

interface Part {
  readonly limit: number;
  readonly matches: Matcher;
  taken: number;
}

/**
 * How many stored events a REQ gets, and whether that was all of them (spec/relay.md "Limits"; NIP-67).
 * Pure: filters in, filters to ask the store with, then one call a row.
 */
class StoredAnswer {
  /** What to ask the store: one row more than is sent tells whether there is more. */
  readonly filters: readonly Filter[];
  readonly #parts: readonly Part[];
  /** A search can only be judged by the store, so rows cannot be told apart by filter. */
  readonly #undivided: boolean;
  #rows = 0;
  #held = false;
  #unsure = false;

  constructor(filters: readonly Filter[], limits: RelayLimits) {
    const asked = filters.filter((filter) => !matchesNothing(filter));
    const one = asked.length === 1;
    this.#undivided = !one && asked.some((filter) => filter.search !== undefined);
    const extra = this.#undivided ? 0 : 1;
    const wanted = asked.filter((filter) => limitOf(filter, limits) > 0);
    // A client that asks for no stored events is told nothing about how many there are.
    this.#unsure = wanted.length < asked.length;
    this.filters = wanted.map((filter) => ({ ...filter, limit: limitOf(filter, limits) + extra }));
    this.#parts = wanted.map((filter) => ({
      limit: limitOf(filter, limits),
      matches: one ? () => true : matcherOf(filter, "often"),
      taken: 0,
    }));
  }

  /** Whether this row (rows come newest first) is within the limit of some filter. */
  take(row: { readonly event: VerifiedEvent }): boolean {
    this.#rows++;
    if (this.#undivided) return true;
    let wanted = false;
    let beyond = false;
    const single = this.#parts.length === 1 ? this.#parts[0] : undefined;
    for (const part of single ? [single] : this.#parts) {
      // With one filter every row is its own: the event is not parsed for it.
      if (!single && !part.matches(row.event)) continue;
      if (part.taken < part.limit) {
        part.taken++;
        wanted = true;
      } else beyond = true;
    }
    if (!wanted) this.#held = true;
    // Sent for another filter's sake; whether the full one has still more is not known.
    else if (beyond) this.#unsure = true;
    return wanted;
  }

  get hint(): "finish" | "more" | undefined {
    if (this.#held) return "more";
    if (this.#undivided) return this.#parts.every((part) => this.#rows < part.limit) ? "finish" : undefined;
    return this.#unsure ? undefined : "finish";
  }
}

interface SubscriptionParts {
  readonly store: Store;
  readonly live: Live;
  readonly outbox: Outbox;
  readonly limits: RelayLimits;
  /** Of all stored answers to the same address. */
  readonly answers: LoopTurns;
}

export class Subscription implements StopSign {
  readonly id: string;
  readonly #filters: readonly Filter[];
  readonly #parts: SubscriptionParts;
  readonly #prefix: Buffer;
  /** While it catches up. */
  #reading: AbortController | undefined;
  #isClosed = false;
  /** What is stored is answered up to here; what comes later is live. */
  #boundary: Sequence;
  #buffered: LiveEvent[] = [];
  #bufferedBytes = 0;
  #overflowed = false;
  #isLive = false;
  /** Live events up to here were sent. */
  #sentUpTo: Sequence;

  /** Registers at once: nothing that is committed after this call can be missed. */
  constructor(id: string, filters: readonly Filter[], parts: SubscriptionParts) {
    this.id = id;
    this.#filters = filters;
    this.#parts = parts;
    this.#prefix = eventPrefix(id);
    this.#boundary = parts.live.position;
    this.#sentUpTo = this.#boundary;
    // Whether a new event fits a search is for the store's words to say; a search is answered from what is stored.
    parts.live.add(
      this.#offer,
      filters.filter((filter) => filter.search === undefined),
    );
  }

  close(): void {
    this.#isClosed = true;
    this.#reading?.abort(noLongerWanted);
    this.#parts.live.remove(this.#offer);
    this.#buffered = [];
  }

  readonly #offer = (live: LiveEvent): void => {
    if (this.#isLive) this.#deliver(live);
    else if (this.#overflowed || this.#isClosed) return;
    else {
      this.#bufferedBytes += live.json.length;
      const { maxBufferedLiveEvents, maxBufferedLiveBytes } = this.#parts.limits;
      if (this.#buffered.length < maxBufferedLiveEvents && this.#bufferedBytes <= maxBufferedLiveBytes) {
        this.#buffered.push(live);
      } else {
        this.#overflowed = true;
        this.#buffered = [];
      }
    }
  };

  /** What stops its query: of signals thousands would be made a second. */
  throwIfAborted(): void {
    if (this.#isClosed) throw noLongerWanted;
  }

  /** Sends stored events and EOSE, then goes live. Undefined: that is done. Ends early, silently, when closed. */
  run(): Promise<void> | undefined {
    const looking = this.#parts.store.upToDate();
    return looking ? this.#runAfter(looking) : this.#answer();
  }

  /**
   * What another machine acknowledged before the REQ is stored here then. What was offered meanwhile is among it, and is not
   * sent twice; ephemeral events of other machines were passed on before the REQ.
   */
  async #runAfter(looking: Promise<void>): Promise<void> {
    await looking;
    this.#boundary = this.#parts.live.position;
    this.#sentUpTo = this.#boundary;
    this.#buffered = [];
    this.#bufferedBytes = 0;
    this.#overflowed = false;
    await this.#answer();
  }

  #answer(): Promise<void> | undefined {
    if (this.#isClosed) return undefined;
    const answer = new StoredAnswer(this.#filters, this.#parts.limits);
    const pages = answer.filters.length > 0 ? this.#pagesOf(answer) : undefined;
    return pages ? this.#sendPages(pages, answer) : this.#answered(answer);
  }

  /** Undefined: they were few, and are sent. */
  #pagesOf(answer: StoredAnswer): AsyncIterable<readonly StoredRow[]> | undefined {
    const { store, limits } = this.#parts;
    let room = this.#roomForPage();
    const beforePage = (): Promise<void> | undefined => {
      const first = room;
      room = undefined;
      return first ?? this.#roomForPage();
    };
    const options = {
      upTo: this.#boundary,
      pageRows: limits.pageRows,
      passingRows: true,
      beforePage,
      signal: this,
    };
    if (room || answer.filters.length > 1) return store.query(answer.filters, options);
    return store.queryAtOnce(answer.filters, options, (page) => {
      for (const row of page) this.#send(row, answer);
    });
  }

  #send(row: StoredRow, answer: StoredAnswer): void {
    if (answer.take(row)) this.#parts.outbox.sendEvent(this.#prefix, row.text);
  }

  async #sendPages(pages: AsyncIterable<readonly StoredRow[]>, answer: StoredAnswer): Promise<void> {
    for await (const page of pages) {
      await this.#sendPage(page, answer);
      if (this.#isClosed) return;
    }
    await this.#answered(answer);
  }

  /** On its own: who waits for the next page must not remember a row of the last, which may be a megabyte. */
  async #sendPage(page: readonly StoredRow[], answer: StoredAnswer): Promise<void> {
    let sliceEndsMs = performance.now() + sliceMs;
    for (const row of page) {
      this.#send(row, answer);
      // Every row is held against every filter: with many of both that is work, and others wait (threats.md row 35).
      if (answer.filters.length > 1 && performance.now() > sliceEndsMs) {
        await nextTurn();
        sliceEndsMs = performance.now() + sliceMs;
      }
      if (this.#isClosed) return;
    }
  }

  #answered(answer: StoredAnswer): Promise<void> | undefined {
    if (this.#isClosed) return undefined;
    this.#parts.outbox.send({ type: "EOSE", subscription: this.id, hint: answer.hint });
    if (this.#overflowed) return this.#catchUp();
    this.#goLive();
    return undefined;
  }

  /** Pages are handed over whole, so that all that waits for a slow reader is counted as what waits for it. */
  #roomForPage(): Promise<void> | undefined {
    const { outbox, limits, answers } = this.#parts;
    const room = outbox.roomToRead(limits.sendPauseBytes);
    return room ? room.then(() => answers.begin(performance.now())) : answers.begin(performance.now());
  }

  /** Reads the feed from the dividing line until it has caught up with what is offered. */
  async #catchUp(): Promise<void> {
    const { store, live } = this.#parts;
    const matchers: Matcher[] = this.#filters
      .filter((filter) => filter.search === undefined)
      .map((filter) => matcherOf(filter, "often"));
    const reading = new AbortController();
    this.#reading = reading;
    try {
      for await (const entries of store.feed(this.#sentUpTo, reading.signal, () => this.#roomForPage())) {
        for (const entry of entries) {
          if (entry.type === "stored" && matchers.some((matches) => matches(entry.event))) {
            this.#deliver(live.eventOf(entry.seq, entry.event));
          }
          this.#sentUpTo = Math.max(this.#sentUpTo, entry.seq);
        }
        if (this.#isClosed) return;
        // No await between this look and going live: what is committed later is offered.
        if (this.#sentUpTo >= live.position) {
          this.#goLive();
          return;
        }
      }
    } finally {
      this.#reading = undefined;
      reading.abort(noLongerWanted);
    }
  }

  #goLive(): void {
    const waiting = this.#buffered;
    this.#buffered = [];
    this.#isLive = true;
    for (const live of waiting) this.#deliver(live);
  }

  #deliver(live: LiveEvent): void {
    if (live.seq !== undefined) {
      if (live.seq <= this.#sentUpTo) return;
      this.#sentUpTo = live.seq;
    }
    if (this.#isClosed) return;
    const { outbox } = this.#parts;
    if (live.shared) outbox.sendShared(this.#prefix, live.shared);
    else if (outbox.isEmpty) outbox.sendFrame(live.frameFor(this.id, this.#prefix));
    else outbox.sendEvent(this.#prefix, live.json);
  }
}
