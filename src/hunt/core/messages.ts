// Everything that goes into the hunt core and comes out of it, and the numbers it obeys. Read this file and you know what
// hunting can do. purgatory.md "Hunting". Times are monotonic milliseconds; the core never reads a clock.

import type { Config } from "../../config/config.js";
import type { DialFailureCode } from "../../net/failure.js";
import type { CloneUrl, ServiceName } from "../../net/url.js";
import type { EventId } from "../../nostr/event.js";
import type { Oid } from "../../nostr/nip34.js";

/** `30617:<pubkey>:<identifier>`: one owner's repository. */
export type Coordinate = string;

/** What a job hunts for: a repository's missing objects, or one pull request's tip at its own clone URLs. */
export type JobKind = "repository" | "pull-request";

/** Where an event came from. A client usually pushes next; sync and import bring bursts. */
export type WaitingSource = "client" | "sync";

export interface WaitingItem {
  /** Event id, or any name the caller keeps unique within the repository. */
  readonly id: string;
  /** `repair`: objects a served repository lacks; hunted once at arrival, then hourly. */
  readonly kind: "state" | "pull-request" | "repair";
  readonly source: WaitingSource;
  /** Object ids that are not here. The caller leaves out what is. */
  readonly ids: readonly Oid[];
  /** Soft entries do not keep a repository in the queue; they are hunted in the hourly round. */
  readonly soft: boolean;
}

export interface HuntAnnouncement {
  readonly isOwners: boolean;
  /** As written in the event, in order. */
  readonly clone: readonly string[];
}

export type FetchId = number;

export type FetchFailureCode =
  | DialFailureCode
  /** An answer, but not git's. */
  | "not-git"
  /** Its objects are named by another hash than ours: it can have none of them. */
  | "other-format"
  /** Something failed after a redirect: says nothing about the URL's own host. */
  | "redirect-failed"
  | "fetch-failed"
  | "bad-objects"
  /** The disk budget for mirrors is used up: says nothing about the server. */
  | "archive-full"
  /** So is the quota of who would own it, or the disk. */
  | "quota-full"
  | "cancelled";

export interface FetchResult {
  /** Ids that are here now, connectivity checked and released from quarantine. */
  readonly arrived: readonly Oid[];
  /** Ids this server said it does not have, or does not give. */
  readonly refused: readonly Oid[];
  readonly failure?: FetchFailureCode;
  /** It would have been more than this, which was all there was room for. */
  readonly tooFewBytes?: number;
}

export type HuntInput =
  /** An entry began to wait, or what is known of it changed. The same id again replaces. */
  | { readonly type: "waiting"; readonly repository: Coordinate; readonly item: WaitingItem }
  | { readonly type: "removed"; readonly repository: Coordinate; readonly id: string }
  /**
   * Announcements of the owner and the owner's directed maintainer set, served or waiting. Replaces the former list;
   * an empty one forgets the URLs.
   */
  | {
      readonly type: "announcements";
      readonly repository: Coordinate;
      readonly announcements: readonly HuntAnnouncement[];
    }
  /** A pull request's own clone URLs. Its tip is also reported as `waiting` in each repository it addresses. */
  | {
      readonly type: "pull-request";
      readonly event: EventId;
      readonly tip: Oid;
      readonly clone: readonly string[];
      readonly source: WaitingSource;
      readonly soft: boolean;
    }
  | { readonly type: "pull-request-removed"; readonly event: EventId }
  /** The operator does not want to wait for the next attempt: a coordinate, or a pull request's event id. */
  | { readonly type: "ask-now"; readonly job: string }
  /** A relay of that origin (`host[:port]`) serves an event that waits here, or is about to. */
  | { readonly type: "served"; readonly event: EventId; readonly origin: string }
  /** Objects came another way, usually by a push. */
  | { readonly type: "arrived"; readonly repository: Coordinate; readonly ids: readonly Oid[] }
  /**
   * A running fetch wants one more connection (redirect, ls-refs, git fetch) and has closed the last. Answered by
   * granted or denied, perhaps only when the domain's rate window frees up.
   */
  | { readonly type: "connection-wanted"; readonly fetch: FetchId; readonly host: string }
  /** Sent exactly once for every `fetch` command, also after `cancel`. */
  | { readonly type: "fetch-finished"; readonly fetch: FetchId; readonly result: FetchResult }
  /** From the list kept over restarts. */
  | { readonly type: "naughty-restored"; readonly place: string; readonly kind: string; readonly remainingMs: number }
  /** All entries of a server start have been reported; `round-ended` comes when each was hunted once. */
  | { readonly type: "start-round" }
  | { readonly type: "tick" };

export type HuntCommand =
  | {
      /** Includes permission for the first connection. */
      readonly type: "fetch";
      readonly fetch: FetchId;
      readonly kind: JobKind;
      /** Coordinate, or the pull request's event id. */
      readonly job: string;
      readonly url: CloneUrl;
      /** All needed ids; those this URL has not refused yet come first. */
      readonly ids: readonly Oid[];
      readonly maxBytes: number;
      /** So much room was not enough for these ids from this URL: with no more of it they are not worth asking for. */
      readonly tooFewBytes: number;
      readonly path: "main" | "domain";
    }
  | { readonly type: "cancel"; readonly fetch: FetchId }
  | { readonly type: "connection-granted"; readonly fetch: FetchId }
  | {
      readonly type: "connection-denied";
      readonly fetch: FetchId;
      readonly reason: "budget" | "naughty" | "unknown-fetch";
    }
  /** Send `tick` no later than this. Replaces an earlier one. */
  | { readonly type: "wake-at"; readonly atMs: number }
  | { readonly type: "naughty"; readonly place: string; readonly kind: string; readonly forMs: number }
  | { readonly type: "round-ended" }
  /** Every server that could be asked was asked since the last attempt began, and something is still missing. */
  | { readonly type: "looked-everywhere"; readonly kind: JobKind; readonly job: string }
  | {
      readonly type: "log";
      readonly level: "debug" | "info" | "warn";
      readonly message: string;
      readonly fields: Readonly<Record<string, string | number>>;
    }
  | { readonly type: "count"; readonly metric: CounterName; readonly labels: Labels; readonly by: number }
  | { readonly type: "gauge"; readonly metric: GaugeName; readonly labels: Labels; readonly value: number };

export type Labels = Readonly<Record<string, string>>;

export type CounterName =
  | "purgatory_sync_attempts_total"
  | "purgatory_sync_oids_fetched_total"
  | "purgatory_domain_requests_total";

export type GaugeName = "purgatory_sync_queue_size" | "purgatory_domain_in_flight" | "purgatory_domain_queued";

export type Emit = (command: HuntCommand) => void;

/** The operator\'s settings (configuration.md). They may change while the hunt runs: they are read when they are needed. */
type HuntSettings = Pick<
  Config,
  | Extract<keyof Config, `gitHunt${string}` | `gitDomain${string}` | `naughty${string}`>
  | "metricsMaxDomainLabels"
  | "gitMemoryBytes"
>;

interface LaneLimits {
  /** Fetches younger than `gitHuntOverlapSecs`, and fetches in all: slow servers must not take the places of quick ones. */
  readonly fresh: number;
  readonly total: number;
}

const lanes: Readonly<Record<JobKind, LaneLimits>> = {
  repository: { fresh: 16, total: 64 },
  "pull-request": { fresh: 4, total: 16 },
};

/** `windowMs`: in which a domain's connections are counted. `stoodStillMs`: an alarm so much too late means a standstill. */
export const huntConstants = { windowMs: 60_000, stoodStillMs: 90_000, lanes };

export type HuntConfig = HuntSettings & Readonly<typeof huntConstants> & { readonly ours: readonly ServiceName[] };
