// What is wanted of a relay, and what is on its way there: items and what is known of each, and the jobs, queries,
// slices and pages that ask for them. Data only (items.ts, history.ts, query.ts, paging.ts).

import type { EventId, Pubkey } from "../../nostr/event.js";
import type { EventSource, Sides } from "./messages.js";

/** An item (spec "Words") is one number: what it names, and its layer. */
export type Item = number;

export const layers = { announcements: 0, states: 1, repositories: 2, roots: 3, outbox: 4 } as const;
export type Layer = (typeof layers)[keyof typeof layers];

/** Layer 1 of a relay. */
export const announcementsItem: Item = 0;
/** Every state of the network: bootstrap relays when the wanted repos are too many to name. */
export const allStatesItem: Item = 1;

export const stateItem = (repo: number): Item => repo * 8 + layers.states;
export const repositoryItem = (repo: number): Item => repo * 8 + layers.repositories;
export const rootItem = (root: number): Item => root * 8 + layers.roots;
/** What participants of the repo wrote to this relay, which is their own and not the repo's (outbox.ts). */
export const outboxItem = (repo: number): Item => repo * 8 + layers.outbox;
export const layerOf = (item: Item): Layer => (item & 7) as Layer;
/** The repo's or root's number. Repos are counted from 1, so that 0 and 1 stay the two special items. */
export const indexOf = (item: Item): number => item >>> 3;

export const phases = {
  /** Wanted, neither pending nor confirmed: what items.ts hands out. */
  fresh: 0,
  pending: 1,
  confirmed: 2,
  /** Failed; fresh again when its delay has passed. */
  retrying: 3,
  /** This relay refuses the value itself; tried again with the next full sync. */
  barred: 4,
  /** Not in targets. */
  absent: 5,
} as const;
export type Phase = (typeof phases)[keyof typeof phases];

/** Where an item is live: not in targets, not decided yet, covered by rotation, or the number of a chunk. */
export const slots = { none: -1, unplaced: 0, rotating: 1, firstChunk: 2 } as const;

/** One number for each of millions of (relay, item) pairs; undefined when the item is not in targets. */
export type Word = number;

export const phaseOf = (word: Word | undefined): Phase => (word === undefined ? phases.absent : ((word & 7) as Phase));
export const failuresOf = (word: Word | undefined): number => ((word ?? 0) >>> 3) & 7;
export const slotOf = (word: Word | undefined): number => (word === undefined ? slots.none : word >>> 6);
export const wordOf = (phase: Phase, failures: number, slot: number): Word =>
  ((slot << 6) | (Math.min(failures, 7) << 3) | phase) >>> 0;

/** Ids to fetch at once, and again until they came (query.ts). */
export interface Owed {
  readonly ids: readonly EventId[];
  /** How often they were asked for in vain. */
  readonly tries: number;
  /**
   * `promised`: the relay said that it has them, so an answer without them is not the end. `sent-once`: the relay sent them
   * before and may have removed them since, so they are asked for a few more times. `unknown`: the relay may have them.
   */
  readonly claim: "promised" | "sent-once" | "unknown";
  readonly dueMs: number;
}

/** Part of a filter's history: a group of values, a time range, kinds, an author (paging.ts). */
export interface Slice {
  readonly values: readonly string[];
  readonly kinds?: readonly number[];
  readonly authors?: readonly Pubkey[];
  readonly since?: number;
  readonly until?: number;
  /** Negentropy could not divide it further. */
  readonly byRequest?: boolean;
  /** So many are enough to know. */
  readonly limit?: number;
  /** Asked without `since`, although nothing older than this is needed: does the relay send more than one second? */
  readonly downTo?: number;
  /** Asks whether there is anything older than this second, all that a page brought. */
  readonly probe?: number;
}

export class Page {
  count = 0;
  unseen = 0;
  oldest = Number.POSITIVE_INFINITY;
  newest = Number.NEGATIVE_INFINITY;
  readonly ids = new Set<EventId>();
  readonly kinds = new Set<number>();
  readonly authors = new Set<Pubkey>();

  constructor(
    readonly slice: Slice,
    readonly limit: number,
    readonly boundary: ReadonlySet<EventId>,
  ) {}
}

/** One filter of a job on its way (history.ts). */
export class Query {
  /** A stack: the last is asked for next. */
  slices: Slice[];
  state: "queued" | "reconciling" | "fetching" | "paging" | "auth" | "done" = "queued";
  name = "";
  sentMs = 0;
  heardMs = 0;
  /** The relay has said something to this request. */
  answered = false;
  /** Our own store is read for the session: the relay is not waited for. */
  readsOwn = false;
  /** The relay limited us since it was sent: silence is no failure. */
  slowedDown = false;
  /** How often its sessions were halved by time. */
  splits = 0;
  /** Ids of the page before that lie in its oldest second. */
  boundary: ReadonlySet<EventId> = new Set();
  page: Page | undefined;
  toFetch: EventId[] = [];
  /** Ids of the fetch on its way, and those of them that did not come yet. */
  sentIds: readonly EventId[] = [];
  asked = new Set<EventId>();
  delivered = 0;

  constructor(
    readonly tag: string | undefined,
    readonly items: readonly Item[],
    slices: readonly Slice[],
  ) {
    this.slices = [...slices];
  }
}

export type JobKind = "batch" | "sweep" | "related" | "direct" | "lists";

/** A batch (spec: pending), or tracked work that confirms nothing: catch-up, rotation, layer 4, direct ids, relay lists. */
export interface Job {
  readonly id: number;
  readonly kind: JobKind;
  readonly layer: Layer;
  readonly items: readonly Item[];
  readonly source: EventSource;
  readonly startedMs: number;
  /** A batch with items that failed before. */
  readonly isRetry: boolean;
  readonly sweep: Sweep | undefined;
  readonly related: Related | undefined;
  /** Of a direct job. */
  readonly owed: Owed | undefined;
  /** Of a job that looks for relay lists: whose. */
  readonly lists: readonly Pubkey[] | undefined;
  method: "negentropy" | "req";
  queries: Query[];
  readonly barred: Set<Item>;
  /** Subscriptions that reached EOSE, sessions that ended: for the log. */
  readonly ended: string[];
  unpageable: boolean;
  /** Ids that the relay claimed and did not send. */
  undelivered: number;
  /** What its negentropy sessions said so far, together. */
  sides: Sides | undefined;
}

/** One query and the job it belongs to. */
export interface Asked {
  readonly job: Job;
  readonly query: Query;
}

/** Items whose recent past is asked for once more and was not asked for yet: quick reconnect, reopened chunks, rotation. */
export interface Sweep {
  readonly source: "reconnect" | "rotating";
  /** Seconds. */
  readonly since: number;
  readonly layer: Layer;
  readonly items: Item[];
  readonly notBeforeMs: number;
}

export const sliceOf = (values: readonly string[], since?: number): Slice => ({
  values,
  ...(since !== undefined && { since }),
});

export interface Related {
  readonly ids: readonly EventId[];
  readonly authors: readonly Pubkey[];
  failures: number;
  /** The hourly look at deletions: only these kinds, and only what is new. */
  readonly kinds?: readonly number[];
  readonly since?: number;
}
