// Every number that bounds a client (spec/relay.md "Limits", "Slow readers"). Rooms get them as an argument; they may
// change while the server runs, so they are read when they are needed, never kept.

export interface RelayLimits {
  readonly maxMessageBytes: number;
  readonly maxEventBytes: number;
  readonly maxEventTags: number;
  readonly maxFutureSeconds: number;
  readonly maxSubscriptions: number;
  readonly maxSubscriptionIdChars: number;
  readonly maxFilters: number;
  /** Values of all lists of one filter together. */
  readonly maxFilterValues: number;
  /** Values of all open subscriptions of a connection: what its place in the live index may cost. */
  readonly maxLiveValues: number;
  readonly maxLimit: number;
  readonly defaultLimit: number;
  readonly eventsPerMinutePerConnection: number;
  readonly eventsPerMinutePerIp: number;
  readonly connectionsPerIp: number;
  readonly maxConnections: number;
  /** Requests of one connection that may be under way; then its socket is not read. */
  readonly maxInFlight: number;
  readonly maxInFlightBytes: number;
  /** Stored queries (REQ, COUNT, NEG-OPEN) of one connection that run at the same time. */
  readonly maxParallelQueries: number;
  readonly pageRows: number;
  /** Live events kept for a subscription while its stored ones are sent; more are read again from the feed. */
  readonly maxBufferedLiveEvents: number;
  /** The store is not read for a client whose socket holds this much. */
  readonly pauseAtBytes: number;
  /** A client that lets this much pile up is closed. */
  readonly closeAtBytes: number;
  /** A client that takes nothing for so long is closed. */
  readonly stalledMs: number;
  readonly pingMs: number;
  readonly authMaxAgeSeconds: number;
  readonly maxAuthenticatedKeys: number;
  readonly maxReconciliations: number;
  readonly reconciliationIdleMs: number;
  readonly reconciliationFrameBytes: number;
  readonly maxReconciliationRecords: number;
  /** Of all connections together: a million records are some 70 MB. */
  readonly maxReconciliationRecordsInAll: number;
}

const mebibyte = 1024 * 1024;

export const defaultRelayLimits: RelayLimits = {
  maxMessageBytes: 5 * mebibyte,
  maxEventBytes: mebibyte,
  maxEventTags: 10_000,
  maxFutureSeconds: 15 * 60,
  maxSubscriptions: 300,
  maxSubscriptionIdChars: 250,
  maxFilters: 100,
  maxFilterValues: 5_000,
  maxLiveValues: 200_000,
  maxLimit: 5_000,
  defaultLimit: 500,
  eventsPerMinutePerConnection: 600,
  eventsPerMinutePerIp: 3_000,
  connectionsPerIp: 200,
  maxConnections: 10_000,
  maxInFlight: 500,
  maxInFlightBytes: 8 * mebibyte,
  maxParallelQueries: 16,
  pageRows: 200,
  maxBufferedLiveEvents: 1_000,
  pauseAtBytes: mebibyte,
  closeAtBytes: 32 * mebibyte,
  stalledMs: 60_000,
  pingMs: 30_000,
  authMaxAgeSeconds: 10 * 60,
  maxAuthenticatedKeys: 32,
  maxReconciliations: 20,
  reconciliationIdleMs: 60_000,
  reconciliationFrameBytes: 500_000,
  maxReconciliationRecords: 1_000_000,
  maxReconciliationRecordsInAll: 3_000_000,
};
