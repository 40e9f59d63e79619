// Every number of spec/event-sync.md in one object, so that a test or the simulator can see and change each of them.
// Values come from main; nothing here reads the environment.

import type { RelayUrl } from "../../net/url.js";

interface QuietHours {
  /** Hours of the day, UTC; the second may be the smaller one. */
  readonly from: number;
  readonly to: number;
}

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

export const syncDefaults = {
  // Following our own relay
  windowMs: 5 * second,
  /** For an announcement that begins to wait: its owner is about to push, perhaps to another server. */
  waitingWindowMs: second,
  maxRelaysPerRepo: 20,
  maxRelaysPerHost: 3,
  maxRelaysPerOwner: 50,
  maxRelays: 1000,
  maxRelaysPerWaitingRepo: 5,
  maxWaitingRelays: 200,
  /** A relay that brought nothing new for so long gives way to one without a place; so many at once. */
  uselessAfterMs: 30 * 24 * hour,
  maxReplacedAtOnce: 100,
  /** Roots that precede their announcement in the replay. */
  maxEarlyRoots: 1_000_000,

  // Filters
  tagsPerFilter: 100,
  consolidatedTagsPerFilter: 500,
  maxLiveFilters: 70,
  maxFiltersPerRequest: 10,
  maxFrameBytes: 100_000,
  longValueBytes: 255,
  /** Long values cost a chunk each; more of them on one relay are covered by rotation. */
  maxLongChunks: 3,
  maxBootstrapIdentifiers: 1000,
  /** As far back as a quick reconnect looks: peers release events up to half an hour after they were made. */
  liveSinceMs: 60 * minute,
  liveReplaceTimeoutMs: 10 * second,
  rotateRootsMs: 6 * hour,
  rotateReposMs: hour,

  // History
  /** Where a relay does not state its limit; else as many as it states, up to `maxPageSize`. */
  pageSize: 500,
  maxPageSize: 5000,
  /** Chunk of a history filter where NIP-11 states that so many values are welcome. */
  maxHistoryTagsPerFilter: 1000,
  idsPerFetch: 100,
  maxHistorySubscriptions: 4,
  /** More missing ids than this in one session: split by time. */
  maxMissingIds: 50_000,
  maxSlicesPerQuery: 10_000,
  /** Times in a row that a session is halved without one that succeeds, and times in all, before REQ is used. */
  maxSplitsInVain: 6,
  maxSplitsPerQuery: 1000,
  /** Outside full syncs: at most so many requests of history in a turn, so that none gets 200 a minute. */
  requestsPerTurn: 40,
  requestTurnMs: 20 * second,
  silenceMs: minute,
  pageTimeoutMs: 10 * minute,
  negentropySilenceMs: 10 * second,
  negentropyTimeoutMs: 10 * minute,
  /** Reading our own store for a session: nothing a relay answers for. */
  ownStoreTimeoutMs: hour,
  negentropyFailuresBeforeGivingUp: 3,
  noNegentropyMs: 24 * hour,
  retryDelaysMs: [5 * second, 10 * second, 20 * second, 30 * second] as readonly number[],
  /** All that such a relay's pages can show has come: only a change over there makes them worth asking for again. */
  unpageableRetryMs: hour,
  failuresUntilNoted: 3,
  disableNegentropy: false,
  batchDelayMs: 0,
  /** Bytes of events that history may bring a second, over all relays. */
  historyBytesPerSecond: Number.POSITIVE_INFINITY,
  startupDelayMs: 0,
  reconnectDelayMs: 0,

  // Connections
  maxDials: 32,
  dialTimeoutMs: 10 * second,
  staleAfterMs: 15 * minute,
  lookbackMs: 60 * minute,
  dailyMinMs: 23 * hour,
  dailyMaxMs: 25 * hour,
  quietHours: undefined as QuietHours | undefined,
  maxFullSyncs: 16,
  /** A full sync that takes longer lets others go on first. */
  fullSyncTurnMs: 5 * minute,
  /** Layer 4: deletions by so many authors a round. */
  deletionsMs: hour,
  deletionAuthorsPerRound: 1000,
  /** Authors kept of one relay's repositories. */
  maxAuthors: 50_000,
  maxSharedAuthors: 200_000,
  tidyMs: minute,
  /** What is kept over restarts is written this often, in turn. */
  keepEveryTidies: 5,
  /** More than this between two steps: the process stood still, or a clock jumped. */
  stoodStillMs: 90 * second,
  /** A wake-up so much too late: we were away for a while, and what relays said meanwhile waits in their sockets. */
  lateWakeMs: 30 * second,
  startupJitterMs: 2 * second,
  jitterLow: 0.8,
  jitterHigh: 1.2,
  authTimeoutMs: 10 * second,

  // Health
  baseBackoffMs: 5 * second,
  maxBackoffMs: hour,
  steadyLinkMs: 5 * minute,
  deadAfterMs: 24 * hour,
  deadRetryMs: 24 * hour,
  rateLimitPauseMs: 65 * second,
  naughtyFailures: 3,
  naughtyOverMs: 10 * minute,
  naughtyForMs: 12 * hour,
  sharedDnsTroubleMs: minute,
  maxHealthRecords: 5000,

  // Arriving events
  maxNewPerCoordinatePerDay: 20_000,
  /** New announcements and states of one author under one identifier. */
  maxOwnPerAuthorPerDay: 1000,
  maxNewPerRelayPerDay: 1_000_000,
  dayMs: 24 * hour,
  refusedWindow: 10_000,
  refusedShare: 0.9,
  refusedPauseMs: hour,
  hotMs: 2 * minute,
  maxHot: 10_000,
  maxHotBytes: 64 * 1024 * 1024,
  coldMs: 7 * 24 * hour,
  maxCold: 1_000_000,
  /** The part of them that one relay may fill. */
  maxColdShare: 0.1,
  /** Cold ids fetched again because of one announcement. */
  maxRejudged: 500,
  maxDirectIds: 5000,
  /** After the lists changed announcements are compared again, not more often than this, so many relays a minute. */
  listsEveryMs: 10 * minute,
  relaysComparedAtOnce: 50,
  /** Ids asked for in vain are asked for again after these. */
  owedDelaysMs: [10 * second, minute, 10 * minute, hour] as readonly number[],
  /** Offers to intake without a verdict before the relay's socket is no longer read. */
  maxOffersInFlight: 1000,
  /** Intake was in trouble (disk full, busy): what it lost is fetched again after this. */
  resyncAfterTroubleMs: 2 * minute,
  /** Twice as long each time trouble was met again, up to this. */
  maxResyncWaitMs: hour,
};

export type SyncConfig = Readonly<typeof syncDefaults> & {
  /** Host, port and base of this service (`servicePart`); never dialled. */
  readonly ownServices: readonly string[];
  readonly bootstrap: readonly RelayUrl[];
  /** Names the rules by which events are judged: what other rules refused is asked for again after a restart. */
  readonly rules: string;
};

export const syncConfig = (given: Partial<SyncConfig> & { readonly ownServices: readonly string[] }): SyncConfig => ({
  ...syncDefaults,
  bootstrap: [],
  rules: "",
  ...given,
});
