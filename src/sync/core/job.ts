// What is on its way to a relay: jobs, their queries, slices and pages. Data only (history.ts, query.ts, paging.ts).

import type { EventId, Pubkey } from "../../nostr/ids.js";
import type { Item, Layer } from "./items.js";
import type { EventSource } from "./messages.js";

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

export interface Page {
  readonly slice: Slice;
  readonly limit: number;
  count: number;
  unseen: number;
  oldest: number;
  newest: number;
  readonly ids: Set<EventId>;
  readonly boundary: Set<EventId>;
  readonly kinds: Set<number>;
  readonly authors: Set<Pubkey>;
}

/** One filter of a job on its way (history.ts). */
export interface Query {
  readonly tag: string | undefined;
  readonly items: readonly Item[];
  slices: Slice[];
  state: "queued" | "reconciling" | "fetching" | "paging" | "auth" | "done";
  name: string;
  sentMs: number;
  heardMs: number;
  /** Ids of the page before that lie in its oldest second. */
  boundary: Set<EventId>;
  page: Page | undefined;
  toFetch: EventId[];
  asked: Set<EventId>;
  delivered: number;
}

export type JobKind = "batch" | "sweep" | "related" | "direct";

/** A batch (spec: pending), or tracked work that confirms nothing: catch-up, rotation, layer 4, direct ids. */
export interface Job {
  readonly id: number;
  readonly kind: JobKind;
  readonly layer: Layer;
  readonly items: readonly Item[];
  readonly source: EventSource;
  readonly startedMs: number;
  readonly sweep: Sweep | undefined;
  readonly related: Related | undefined;
  method: "negentropy" | "req";
  queries: Query[];
  readonly barred: Set<Item>;
  /** Subscriptions that reached EOSE, sessions that ended: for the log. */
  readonly ended: string[];
  unpageable: boolean;
}

/** One query and the job it belongs to. */
export interface Asked {
  readonly job: Job;
  readonly query: Query;
}

/** Items whose recent past is asked for once more: quick reconnect, reopened chunks, rotation. */
export interface Sweep {
  readonly source: "reconnect" | "rotating";
  readonly since: number;
  readonly layer: Layer;
  readonly items: readonly Item[];
  cursor: number;
  running: number;
}

export interface Related {
  readonly ids: readonly EventId[];
  readonly authors: readonly Pubkey[];
  failures: number;
}
