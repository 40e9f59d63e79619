// A model of a remote relay: the events it holds, how it answers, and every way in which it may misbehave. Knows
// nothing of links: it is asked and answers with a list of messages.

import type { ConnectFailure, RelayLimits } from "../src/net/relay-dialer.js";
import { compareNewestFirst, type EventId, type NostrEvent } from "../src/nostr/event.js";
import { type Filter, type Matcher, matcherOf } from "../src/nostr/filter.js";
import { meaningOfNegErr } from "../src/sync/core/closed-reasons.js";
import type { ReconcileFailure } from "../src/sync/core/messages.js";
import { makeEvent, newPubkey } from "./events.js";
import type { Chance } from "./random.js";

/** What a relay does beyond answering. The first group an honest relay may do, the second makes it a liar. */
export interface Manners {
  readonly negentropy: "yes" | "notice" | "error" | "silent" | "too-many-above-20" | "busy" | "policy";
  readonly limits: RelayLimits | undefined;
  /** Answers at most so many events, said in NIP-11 or not. */
  readonly pageCap: number;
  readonly refusesLimitZero: boolean;
  /** Sends what it has although nothing old was asked for. */
  readonly ignoresLimitZero?: boolean;
  readonly refusesLongValues: boolean;
  /** A bound its NIP-11 does not state. */
  readonly maxValues?: number;
  /** Chance that it does not send an event it said it has. */
  readonly withholds?: number;
  readonly needsAuth: boolean;
  /** Requests a minute before it says stop. */
  readonly requestsPerMinute: number;
  readonly rateLimitBy: "closed" | "notice";
  readonly randomClosed: number;
  readonly never?: ConnectFailure;
  /** Only what is new. */
  readonly refusesHistory?: boolean;
  readonly lies: readonly Lie[];
}

export type Lie =
  | "bad-signatures"
  | "outside-filter"
  | "endless"
  | "no-eose"
  | "early-eose"
  | "random-closed"
  | "giant-messages"
  | "negentropy-never-ends"
  | "forgets-live";

export const lies: readonly Lie[] = [
  "bad-signatures",
  "outside-filter",
  "endless",
  "no-eose",
  "early-eose",
  "random-closed",
  "giant-messages",
  "negentropy-never-ends",
  "forgets-live",
];

export type Answer =
  | { readonly type: "event"; readonly subscription: string; readonly event: NostrEvent }
  | { readonly type: "eose"; readonly subscription: string }
  | { readonly type: "subscriptionClosed"; readonly subscription: string; readonly message: string }
  | { readonly type: "notice"; readonly message: string }
  | { readonly type: "reconcileProgress"; readonly session: string }
  | {
      readonly type: "reconciled";
      readonly session: string;
      readonly missing: readonly EventId[];
      readonly peerMissing: number;
    }
  | { readonly type: "reconcileFailed"; readonly session: string; readonly kind: ReconcileFailure }
  /** A frame so large that the shell closes the link. */
  | { readonly type: "giant" };

interface Subscription {
  readonly matchers: readonly Matcher[];
}

export class ModelRelay {
  readonly events = new Map<EventId, NostrEvent>();
  #newestFirst: NostrEvent[] | undefined;
  subscriptions = new Map<string, Subscription>();
  authenticated = false;
  calm = false;
  /** Changes with what it holds. */
  version = 0;
  /** When it last answered with less than was asked for, and when it last asked for patience. */
  refusedMs = Number.NEGATIVE_INFINITY;
  slowedMs = Number.NEGATIVE_INFINITY;
  #requestTimesMs: number[] = [];

  constructor(
    readonly key: string,
    readonly manners: Manners,
    readonly chance: Chance,
  ) {}

  get honest(): boolean {
    const { lies: told, never, refusesHistory } = this.manners;
    return told.length === 0 && never === undefined && !refusesHistory;
  }

  /** A new socket: nothing of the old one is left. */
  reset(): void {
    this.subscriptions = new Map();
    this.authenticated = false;
  }

  #lies(lie: Lie): boolean {
    return this.manners.lies.includes(lie);
  }

  #sorted(): NostrEvent[] {
    this.#newestFirst ??= [...this.events.values()].sort(compareNewestFirst);
    return this.#newestFirst;
  }

  /** Keeps an event; returns the subscriptions it goes to live. */
  publish(event: NostrEvent): string[] {
    if (this.events.has(event.id)) return [];
    this.events.set(event.id, event);
    this.version += 1;
    this.#newestFirst = undefined;
    if (this.#lies("forgets-live")) return [];
    const matching: string[] = [];
    for (const [name, { matchers }] of this.subscriptions)
      if (matchers.some((matches) => matches(event))) matching.push(name);
    return matching;
  }

  delete(id: EventId): void {
    if (!this.events.delete(id)) return;
    this.version += 1;
    this.#newestFirst = undefined;
  }

  #refusal(name: string, filters: readonly Filter[], nowMs: number): Answer[] | undefined {
    const refusal = this.#ruleAgainst(name, filters, nowMs);
    if (refusal) this.refusedMs = nowMs;
    return refusal;
  }

  /** A rule that stands against the request, as a CLOSED or NOTICE. */
  #ruleAgainst(name: string, filters: readonly Filter[], nowMs: number): Answer[] | undefined {
    const { manners, chance } = this;
    const closed = (message: string): Answer[] => [{ type: "subscriptionClosed", subscription: name, message }];
    if (manners.needsAuth && !this.authenticated) return closed("auth-required: who are you");
    this.#requestTimesMs = this.#requestTimesMs.filter((atMs) => atMs > nowMs - 60_000);
    if (this.#requestTimesMs.length >= manners.requestsPerMinute) {
      this.slowedMs = nowMs;
      return manners.rateLimitBy === "closed"
        ? closed("rate-limited: slow down")
        : [{ type: "notice", message: "you are sending too many requests" }];
    }
    this.#requestTimesMs.push(nowMs);
    if (this.#lies("random-closed") ? chance.once(0.3) : !this.calm && chance.once(manners.randomClosed)) {
      return closed("error: could not serve this now");
    }
    if (manners.refusesLimitZero && filters.some((filter) => filter.limit === 0))
      return closed("invalid: limit must be positive");
    const isLong = (filter: Filter): boolean =>
      [...(filter.tags?.values() ?? [])].some((list) => list.some((text) => text.length > 255));
    if (manners.refusesLongValues && filters.some(isLong)) return closed("invalid: value too long");
    const hasMoreThan = (most: number): boolean =>
      filters.some((filter) => [...(filter.tags?.values() ?? [])].some((list) => list.length > most));
    if (hasMoreThan(manners.limits?.maxFilterValues ?? Number.POSITIVE_INFINITY))
      return closed("invalid: more values than our NIP-11 allows");
    if (hasMoreThan(manners.maxValues ?? Number.POSITIVE_INFINITY)) return closed("invalid: too many values in filter");
    if (manners.refusesHistory && filters.some((filter) => filter.limit !== 0 && filter.since === undefined))
      return closed("restricted: nothing old is served here");
    return undefined;
  }

  request(name: string, filters: readonly Filter[], nowMs: number): Answer[] {
    const refusal = this.#refusal(name, filters, nowMs);
    if (refusal) return refusal;
    const matchers = filters.map((filter) => matcherOf(filter));
    this.subscriptions.set(name, { matchers });
    const found = new Map<EventId, NostrEvent>();
    filters.forEach((filter, at) => {
      const { pageCap, ignoresLimitZero, withholds = 0 } = this.manners;
      const isLive = filter.limit === 0;
      if (isLive && !ignoresLimitZero) return;
      const limit = isLive ? pageCap : Math.min(filter.limit ?? Number.POSITIVE_INFINITY, pageCap);
      const hides = filter.ids && !this.calm ? withholds : 0;
      let taken = 0;
      for (const event of this.#sorted()) {
        if (!matchers[at]!(event)) continue;
        if (hides > 0 && this.chance.once(hides)) continue;
        found.set(event.id, event);
        taken += 1;
        if (taken >= limit) break;
      }
    });
    return this.#lieAbout(name, [...found.values()]);
  }

  #lieAbout(name: string, events: NostrEvent[]): Answer[] {
    const { chance } = this;
    const asAnswer = (event: NostrEvent): Answer => ({ type: "event", subscription: name, event });
    const answers = events.map(asAnswer);
    if (this.manners.lies.length > 0 && chance.once(0.7)) {
      const invented = (sig: string, tags: string[][]): NostrEvent =>
        makeEvent(
          chance,
          {
            pubkey: newPubkey(chance),
            kind: chance.of([1, 1621, 30617, 30618]),
            created_at: chance.between(1, 1_700_000_000),
            tags,
          },
          sig,
        );
      if (this.#lies("bad-signatures")) {
        for (const event of events.slice(0, 5))
          answers.push(asAnswer({ ...event, id: chance.hex(8) as EventId, sig: "bad" }));
        answers.push(asAnswer(invented("bad", [["d", "x"]])));
      }
      if (this.#lies("outside-filter"))
        for (let n = 0; n < 3; n++) answers.push(asAnswer(invented("good", [["t", "spam"]])));
      // Rare, because every single one of them costs the simulator's own time.
      if (this.#lies("endless") && chance.once(0.03)) {
        for (let n = 0; n < 520; n++) answers.push(asAnswer(invented("good", [["d", `spam-${n}`]])));
        return answers;
      }
      if (this.#lies("giant-messages") && chance.once(0.2)) return [...answers, { type: "giant" }];
      if (this.#lies("no-eose")) return answers;
      if (this.#lies("early-eose")) return [{ type: "eose", subscription: name }, ...answers];
    }
    return [...answers, { type: "eose", subscription: name }];
  }

  /** The wire protocol as what it computes: the difference of two sets. */
  reconcile(
    session: string,
    filter: Filter,
    ours: (matches: Matcher) => ReadonlySet<EventId>,
    held: (id: EventId) => boolean,
    maxMissing: number,
    nowMs: number,
  ): Answer[] {
    const failed = (kind: ReconcileFailure): Answer[] => [{ type: "reconcileFailed", session, kind }];
    const negErr = (text: string): Answer[] => {
      this.refusedMs = nowMs;
      return failed(meaningOfNegErr(text));
    };
    if (this.#lies("negentropy-never-ends")) return [{ type: "reconcileProgress", session }];
    switch (this.manners.negentropy) {
      case "notice":
        this.refusedMs = nowMs;
        return [{ type: "notice", message: "ERROR: bad msg: unknown cmd NEG-OPEN" }];
      case "error":
        return negErr("error: negentropy is disabled");
      case "silent":
        return [];
    }
    const refusal = this.#refusal(session, [filter], nowMs)?.[0];
    if (refusal?.type === "notice") return [refusal];
    if (refusal?.type === "subscriptionClosed") return negErr(refusal.message);
    if (this.manners.negentropy === "busy")
      return negErr("blocked: too many reconciliations are under way: try again later");
    if (this.manners.negentropy === "policy") return negErr("blocked: reconciling is not for you");
    const matches = matcherOf(filter);
    const theirs = this.#sorted().filter(matches);
    if (this.manners.negentropy === "too-many-above-20" && theirs.length > 20)
      return negErr("blocked: this filter matches more than 20 records: narrow it");
    const mine = ours(matches);
    const lacking = theirs.filter((event) => !mine.has(event.id));
    if (lacking.length > maxMissing) return failed("too-many");
    const missing = lacking.filter((event) => !held(event.id)).map((event) => event.id);
    const peerMissing = mine.size - (theirs.length - lacking.length);
    return [
      { type: "reconcileProgress", session },
      { type: "reconciled", session, missing, peerMissing },
    ];
  }
}
