// Everything that goes into the sync core and everything that comes out: read this file and you know the room.
// The core (core.ts) turns one input and the time into commands; a shell executes them and owns nothing else but
// sockets, pings (every 30 s; 60 s without a frame is `closed`), timers and the negentropy wire protocol.
//
// Links: `connect` carries a number; every input from that socket repeats it, so that what an old socket still says
// is not mistaken for the new one. Subscription and session names are made by the core and never used twice.

import type { ConnectFailure, RelayLimits } from "../../net/relay-dialer.js";
import type { RelayUrl } from "../../net/url.js";
import type { EventId, NostrEvent, Pubkey } from "../../nostr/event.js";
import type { Filter } from "../../nostr/filter.js";
import type { RefusalCode } from "../../nostr/refusals.js";

export interface Time {
  /** May jump: for `since` and what is kept over restarts. */
  readonly wallMs: number;
  /** Never goes back: for back-off, time-outs, windows. */
  readonly monotonicMs: number;
}

/** Numbers in [0, 1), given by the caller. */
export type Random = () => number;

/** Host, port and path of a relay (`servicePart`): one key for ws and wss. */
export type RelayKey = string;

/** Whose day an event counts for: a repository's, or an author's under one identifier. */
export type Account = { readonly coordinate: string } | { readonly author: Pubkey; readonly identifier: string };

/** Where an event came from, for `ngit_sync_events_total{source}`. */
export type EventSource = "live" | "startup" | "reconnect" | "daily" | "rotating" | "direct";

export type Outcome =
  | { readonly type: "stored" }
  | { readonly type: "held" }
  | { readonly type: "duplicate" }
  /** It waits in purgatory already. */
  | { readonly type: "waiting" }
  /** A newer version at its address is stored. */
  | { readonly type: "superseded" }
  | { readonly type: "refused"; readonly code: RefusalCode };

/** One side of a comparison: how many events, and a fingerprint of their ids (hex). */
interface Side {
  readonly count: number;
  readonly fingerprint: string;
}

/** What a negentropy session found on both sides, before anything held or refused here is subtracted. */
export interface Sides {
  readonly ours: Side;
  readonly theirs: Side;
  /** Events that are here and not there. */
  readonly theyLack: number;
}

/** How a session ended without a result. */
export type ReconcileFailure =
  /** More than one session should compare: the relay said so, our own cap, or more than `maxMissing`. */
  | "too-many"
  | "too-many-values"
  /** The relay speaks negentropy, and not now or not with us. */
  | "busy"
  | "auth-required"
  | "rate-limited"
  /** Our own store could not be read. */
  | "ours"
  | "failed";

export interface RememberedId {
  readonly id: EventId;
  readonly kind: number;
  readonly author: Pubkey;
  readonly identifier: string;
  readonly reason: RefusalCode | "superseded";
  readonly relay: RelayKey;
  readonly untilWallMs: number;
}

/** What is kept of a relay over restarts. */
export interface KeptRelay {
  /** Wall times at which layer 4 and the daily sync are due. */
  readonly fourDueWallMs?: number;
  readonly dailyDueWallMs?: number;
  /** When it last brought something new. */
  readonly newWallMs?: number;
  /** When it was last in step, and with what: a fingerprint of its items and of the rules in force. */
  readonly inStep?: { readonly wallMs: number; readonly items: string };
}

/** Failures that do not pass by themselves. */
export const naughtyKinds = ["dns-not-found", "certificate", "not-websocket"] as const;
export type NaughtyKind = (typeof naughtyKinds)[number];

interface OfLink {
  readonly relay: RelayKey;
  readonly link: number;
}

/** An event that arrived. */
export interface Arrival {
  readonly source: EventSource;
  /** Of layer 4 or an outbox: live need not have brought it. */
  readonly layerFour: boolean;
  readonly event: NostrEvent;
  /** Live, and created while the subscription was open: its lag says something. */
  readonly isCurrent?: boolean;
  /** It came from a participant's own relay, which no announcement lists. */
  readonly isFromOutbox?: boolean;
}

interface Offered extends Arrival {
  readonly relay: RelayKey;
  /** Whose budget it counts against. */
  readonly account?: Account | undefined;
}

export type Input =
  // Our own server
  /** Kinds 30617, 1617, 1618, 1619, 1621 from the feed, and all that is new since the replay. `hosted` (30617 only): false when it is merely served. */
  | { readonly type: "accepted"; readonly event: NostrEvent; readonly hosted?: boolean }
  | { readonly type: "removed"; readonly id: EventId; readonly address?: string; readonly cause: string }
  /** An announcement in purgatory, soft ones included. */
  | { readonly type: "waiting"; readonly event: NostrEvent }
  /** Finally gone from purgatory. A released one is followed by `accepted`. */
  | { readonly type: "unwaiting"; readonly coordinate: string }
  | { readonly type: "replayEnded" }
  /**
   * White, black or ban lists changed: what they refused may be welcome now. `archive`: so may announcements refused
   * for not listing us, and `config.bootstrap` may be another.
   */
  | { readonly type: "listsChanged"; readonly archive?: boolean }
  /**
   * Somebody here needs these events (a git-first placeholder): asked at the repository's relays and bootstrap, and at the
   * signer's own where it is known who that will be.
   */
  | {
      readonly type: "wantIds";
      readonly ids: readonly EventId[];
      readonly coordinate: string;
      readonly signer?: Pubkey;
    }
  // The operator
  /** All that are to be left alone; replaces what was said before. */
  | { readonly type: "ignoredRelays"; readonly relays: ReadonlySet<RelayKey> }
  /** Now, whatever its past. */
  | { readonly type: "reconnect"; readonly relay: RelayKey }
  // Kept over restarts, given once at the start
  | { readonly type: "rememberedLoaded"; readonly entries: readonly RememberedId[] }
  | {
      readonly type: "naughtyLoaded";
      readonly entries: readonly { relay: RelayKey; kind: NaughtyKind; untilWallMs: number }[];
    }
  /** Only what was kept by a store that has not lost anything since. */
  | { readonly type: "relaysLoaded"; readonly entries: readonly { relay: RelayKey; entry: KeptRelay }[] }
  /** The server is about to stop: what is kept is said once more. */
  | { readonly type: "stopping" }
  // Links
  /** Intake holds as much as it should, and no socket is read; or it has room again. */
  | { readonly type: "readingHeld"; readonly held: boolean }
  /** With what NIP-11 says, where that is known by then. */
  | ({ readonly type: "connected"; readonly limits?: RelayLimits } & OfLink)
  | ({ readonly type: "connectFailed"; readonly kind: ConnectFailure } & OfLink)
  /** `silentMs`: since the last frame of any kind, which is the last that is known of the link. */
  | ({ readonly type: "closed"; readonly silentMs?: number } & OfLink)
  | ({ readonly type: "nip11"; readonly limits: RelayLimits } & OfLink)
  | ({ readonly type: "event"; readonly subscription: string; readonly event: NostrEvent } & OfLink)
  | ({ readonly type: "eose"; readonly subscription: string } & OfLink)
  | ({ readonly type: "subscriptionClosed"; readonly subscription: string; readonly message: string } & OfLink)
  | ({ readonly type: "notice"; readonly message: string } & OfLink)
  | ({ readonly type: "authChallenge" } & OfLink)
  /** The relay has answered our AUTH, whatever it said: what was refused for it is tried once more. */
  | ({ readonly type: "authenticated" } & OfLink)
  // Negentropy
  /**
   * NEG-OPEN was sent, or a NEG-MSG arrived and another was sent. `ours`: the relay has said all, and we look up in our
   * own store what of it we hold. Between `reconcile` and the first of these, and after `ours`, no time of the relay's runs.
   */
  | ({ readonly type: "reconcileProgress"; readonly session: string; readonly ours?: true } & OfLink)
  /** `missing`: what the peer has and we do not, without what is stored, waiting in purgatory, or deleted here. */
  | ({
      readonly type: "reconciled";
      readonly session: string;
      readonly missing: readonly EventId[];
      /** What the peer has and what waits here for its git data. */
      readonly waiting?: readonly EventId[];
      readonly peerMissing: number;
      readonly sides?: Sides;
    } & OfLink)
  | ({ readonly type: "reconcileFailed"; readonly session: string; readonly kind: ReconcileFailure } & OfLink)
  // Answers to commands
  /** With all that was said in the offer. */
  | ({ readonly type: "verdict"; readonly outcome: Outcome } & Offered)
  /** `after` when there is more. */
  | {
      readonly type: "related";
      readonly relay: RelayKey;
      readonly request: number;
      readonly ids: readonly EventId[];
      readonly authors: readonly Pubkey[];
      readonly after?: string;
    }
  /** Who takes part in a repository, most active first, and those relay lists of theirs that are stored here. */
  | {
      readonly type: "participants";
      readonly coordinate: string;
      readonly participants: readonly Participant[];
      readonly lists: readonly NostrEvent[];
    }
  | { readonly type: "tick" };

/** Somebody who takes part in a repository's conversation. */
export interface Participant {
  readonly pubkey: Pubkey;
  readonly role: "maintainer" | "author" | "named";
  /** Seconds of the newest that is known of this participant there; 0 for one who is only named. */
  readonly activeSeconds: number;
}

export type CounterName =
  | "connection_attempts"
  | "events"
  | "gap_events"
  | "negentropy"
  | "unpageable"
  | "full_syncs"
  | "undelivered_ids"
  | "dropped_events"
  | "outbox_events";

export type Command =
  | { readonly type: "connect"; readonly relay: RelayKey; readonly link: number; readonly url: RelayUrl }
  | ({ readonly type: "disconnect" } & OfLink)
  | ({ readonly type: "subscribe"; readonly subscription: string; readonly filters: readonly Filter[] } & OfLink)
  | ({ readonly type: "unsubscribe"; readonly subscription: string } & OfLink)
  | ({
      readonly type: "reconcile";
      readonly session: string;
      readonly filter: Filter;
      readonly maxMissing: number;
    } & OfLink)
  | ({ readonly type: "stopReconcile"; readonly session: string } & OfLink)
  | ({ readonly type: "authenticate" } & OfLink)
  | ({ readonly type: "pauseReading" } & OfLink)
  | ({ readonly type: "resumeReading" } & OfLink)
  | ({ readonly type: "offerToIntake" } & Offered)
  /** Ids of stored events that belong to these repositories and are no roots, and the authors of all of them. */
  | {
      readonly type: "lookUpRelated";
      readonly relay: RelayKey;
      readonly request: number;
      readonly coordinates: readonly string[];
      readonly after?: string;
    }
  /** Stored roots of a repository that became wanted after the replay: answered with `accepted`. */
  | { readonly type: "lookUpRoots"; readonly coordinate: string }
  /** Who takes part in a repository: answered with `participants`. */
  | { readonly type: "lookUpParticipants"; readonly coordinate: string }
  /** The relay serves an event that waits here for its git data. */
  | { readonly type: "servedThere"; readonly relay: RelayKey; readonly id: EventId }
  | { readonly type: "remember"; readonly entry: RememberedId }
  | { readonly type: "forget"; readonly id: EventId }
  | { readonly type: "saveNaughty"; readonly relay: RelayKey; readonly kind: NaughtyKind; readonly untilWallMs: number }
  | { readonly type: "dropNaughty"; readonly relay: RelayKey }
  | { readonly type: "keepRelay"; readonly relay: RelayKey; readonly entry: KeptRelay }
  | { readonly type: "dropKept"; readonly relay: RelayKey }
  /** Replaces the wake-up asked for before. */
  | { readonly type: "wakeAt"; readonly monotonicMs: number }
  | {
      readonly type: "log";
      readonly level: "debug" | "info" | "warn" | "error";
      readonly code: string;
      readonly relay?: RelayKey;
      readonly fields?: Readonly<Record<string, string | number | readonly string[]>>;
    }
  | {
      readonly type: "count";
      readonly counter: CounterName;
      readonly relay?: RelayKey;
      readonly label?: string;
      /** 1 without it. */
      readonly by?: number;
    }
  /** `ngit_sync_live_lag_seconds`. */
  | { readonly type: "observeLag"; readonly seconds: number };
