// What sync obeys: the operator's settings, and the numbers of spec/event-sync.md that nobody sets. One object, so that a
// test or the simulator can see and change each of them. It may change while sync runs: it is read when it is needed.

import type { Config } from "../../config/config.js";
import type { RelayUrl } from "../../net/url.js";

export const secondMs = 1000;
const minuteMs = 60 * secondMs;
export const hourMs = 60 * minuteMs;

type SyncSettings = Pick<Config, Extract<keyof Config, `sync${string}` | `naughty${string}` | `rejected${string}`>>;

export const syncConstants = {
  // Following our own relay
  /** For an announcement that begins to wait: its owner is about to push, perhaps to another server. */
  waitingWindowMs: secondMs,
  /** A relay that brought nothing new for so long gives way to one without a place; so many at once. */
  uselessAfterMs: 30 * 24 * hourMs,
  maxReplacedAtOnce: 100,
  /** Roots that precede their announcement in the replay. */
  maxEarlyRoots: 1_000_000,

  // Filters
  /** Long values cost a chunk each; more of them on one relay are covered by rotation. */
  maxLongChunks: 3,
  liveReplaceTimeoutMs: 10 * secondMs,

  // History
  maxPageSize: 5000,
  /** Chunk of a history filter where NIP-11 states that so many values are welcome. */
  maxHistoryTagsPerFilter: 1000,
  /** More missing ids than this in one session: split by time. */
  maxMissingIds: 50_000,
  maxSlicesPerQuery: 10_000,
  /** Times in a row that a session is halved without one that succeeds, and times in all, before REQ is used. */
  maxSplitsInVain: 6,
  maxSplitsPerQuery: 1000,
  /** Outside full syncs: at most so many requests of history in a turn, so that none gets 200 a minute. */
  requestsPerTurn: 40,
  requestTurnMs: 20 * secondMs,
  negentropyTimeoutMs: 10 * minuteMs,
  /** Reading our own store for a session: nothing a relay answers for. */
  ownStoreTimeoutMs: hourMs,
  /** All that such a relay's pages can show has come: only a change over there makes them worth asking for again. */
  unpageableRetryMs: hourMs,
  /** Longest wait before history that a relay's rules refuse is asked for again. */
  refusedRetryMaxSecs: 600,

  // Connections
  /** A full sync that takes longer lets others go on first. */
  fullSyncTurnMs: 5 * minuteMs,
  /** Layer 4: deletions by so many authors a round. */
  deletionsMs: hourMs,
  deletionAuthorsPerRound: 1000,
  /** Authors kept of one relay's repositories. */
  maxAuthors: 50_000,
  maxSharedAuthors: 200_000,
  /** What is kept over restarts is written this often, in turn. */
  keepEveryTidies: 5,
  /** More than this between two steps: the process stood still, or a clock jumped. */
  stoodStillMs: 90 * secondMs,
  /** A wake-up so much too late: we were away for a while, and what relays said meanwhile waits in their sockets. */
  lateWakeMs: 30 * secondMs,
  authTimeoutMs: 10 * secondMs,

  // Participants' own relays (grasp.md, GRASP-03)
  maxParticipants: 64,
  /** Keys that one root names. */
  maxNamedPerRoot: 20,
  maxWriteRelays: 4,
  maxOutboxRelaysPerRepository: 32,
  maxOutboxRelays: 200,
  maxLiveOutboxRelays: 50,
  outboxPassMs: 55 * minuteMs,
  /** A list that was found, one that was not, and one that nobody could be asked for. */
  listFoundMs: 24 * hourMs,
  listNoneMs: 6 * hourMs,
  listUnansweredMs: 5 * minuteMs,
  /** Who has not answered by then is not waited for. */
  listTimeoutMs: minuteMs,
  maxListLookUps: 2000,
  /** Relays of its repositories that are asked for one author's list. */
  maxListPlaces: 20,
  /** Repositories whose participants are looked up in our own store at the same time. */
  participantLookUps: 4,
  /** One of them is not looked up again sooner: an announcement can be replaced at any speed. */
  participantLookUpAgainMs: 30 * secondMs,
  /** Accepted events that wait for a look at who wrote them. */
  maxAcceptedNoted: 10_000,
  /** Single events that are looked for at their signers' relays. */
  maxAwaitedSigners: 1000,

  // Arriving events
  /** New announcements and states of one author under one identifier. */
  maxOwnPerAuthorPerDay: 1000,
  dayMs: 24 * hourMs,
  maxHotBytes: 64 * 1024 * 1024,
  /** The part of them that one relay may fill. */
  maxColdShare: 0.1,
  /** Cold ids fetched again because of one announcement. */
  maxRejudged: 500,
  maxDirectIds: 5000,
  /** After the lists changed announcements are compared again, not more often than this, so many relays a minute. */
  listsEveryMs: 10 * minuteMs,
  relaysComparedAtOnce: 50,
  /** Ids asked for in vain are asked for again after these. */
  owedDelaysMs: [10 * secondMs, minuteMs, 10 * minuteMs, hourMs] as readonly number[],
  /** Offers to intake without a verdict before the relay's socket is no longer read. */
  maxOffersInFlight: 1000,
  /** Intake was in trouble (disk full, busy): what it lost is fetched again after this. */
  resyncAfterTroubleMs: 2 * minuteMs,
  /** Twice as long each time trouble was met again, up to this. */
  maxResyncWaitMs: hourMs,
};

export type SyncConfig = SyncSettings &
  Readonly<typeof syncConstants> & {
    /** Host, port and base of this service (`servicePart`); never dialled. */
    readonly ownServices: readonly string[];
    readonly bootstrap: readonly RelayUrl[];
    /** Where relay lists of people are looked for, and where for people without one. */
    readonly indexRelays: readonly RelayUrl[];
    readonly fallbackRelays: readonly RelayUrl[];
    /** Names the rules by which events are judged: what other rules refused is asked for again after a restart. */
    readonly rules: string;
  };

/** What failed is asked for again after this; twice as long each time, up to the longest. `times`: it failed before. */
export const retryDelayMs = ({ syncRetryBaseSecs, syncRetryMaxSecs }: SyncConfig, times: number): number =>
  Math.min(syncRetryBaseSecs * 2 ** times, syncRetryMaxSecs) * secondMs;

/** As far back as a quick reconnect looks: peers release events up to half an hour after they were made. */
export const lookbackMs = ({ syncReconnectLookbackDays, syncQuickLookbackSecs }: SyncConfig): number =>
  syncReconnectLookbackDays === undefined ? syncQuickLookbackSecs * secondMs : syncReconnectLookbackDays * 24 * hourMs;
