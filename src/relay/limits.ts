// Every number that bounds a client (spec/relay.md "Limits", "Slow readers"). Rooms get them as an argument; they may
// change while the server runs, so they are read when they are needed, never kept.

import type { ByteLimits } from "../base/budget/bytes.js";
import { type FrameBounds, usualFrameBounds } from "../nostr/frame-shape.js";

export interface RelayLimits {
  readonly maxMessageBytes: number;
  readonly maxEventBytes: number;
  readonly maxEventTags: number;
  readonly maxFutureSeconds: number;
  /** What one frame may be made of, looked at before it is parsed. */
  readonly frames: FrameBounds;
  /** A frame that is not understood costs one, and one more for each `badFrameBytes`; who has none left is closed. */
  readonly badFramesPerMinutePerConnection: number;
  readonly badFramesPerMinutePerIp: number;
  /** What is read from one address; four times as much at once. */
  readonly bytesPerSecondPerIp: number;
  readonly badFrameBytes: number;
  readonly maxSubscriptions: number;
  readonly maxSubscriptionIdChars: number;
  readonly maxFilters: number;
  /** Values of all lists of one filter together. */
  readonly maxFilterValues: number;
  /** Tag names of one filter. */
  readonly maxFilterTags: number;
  /** Filters of all open subscriptions of a connection. */
  readonly maxLiveFilters: number;
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
  /** And so many bytes of them. */
  readonly maxBufferedLiveBytes: number;
  /** The store is not read for a client whose socket holds this much. */
  readonly pauseAtBytes: number;
  /** What waits to be taken by all clients together, and by those of one address. */
  readonly outgoing: ByteLimits;
  /** Messages that are not whole yet, or not answered yet, likewise. */
  readonly incoming: ByteLimits;
  /** What open subscriptions hold, likewise. */
  readonly filters: ByteLimits;
  /** A client that lets this much pile up is closed. */
  readonly closeAtBytes: number;
  /** A client that takes nothing for so long is closed. */
  readonly stalledMs: number;
  /** A message that is not whole after so long ends the connection. */
  readonly messageMs: number;
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
  frames: usualFrameBounds,
  badFramesPerMinutePerConnection: 200,
  badFramesPerMinutePerIp: 1_000,
  bytesPerSecondPerIp: 16 * 2 ** 20,
  badFrameBytes: 32 * 1024,
  maxSubscriptions: 300,
  maxSubscriptionIdChars: 250,
  maxFilters: 100,
  maxFilterValues: 5_000,
  maxFilterTags: 32,
  maxLiveFilters: 3_000,
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
  maxBufferedLiveBytes: 256 * 1024,
  pauseAtBytes: mebibyte,
  outgoing: { inAll: 96 * mebibyte, perAddress: 32 * mebibyte },
  incoming: { inAll: 64 * mebibyte, perAddress: 21 * mebibyte },
  filters: { inAll: 96 * mebibyte, perAddress: 32 * mebibyte },
  closeAtBytes: 32 * mebibyte,
  stalledMs: 60_000,
  messageMs: 120_000,
  pingMs: 30_000,
  authMaxAgeSeconds: 10 * 60,
  maxAuthenticatedKeys: 32,
  maxReconciliations: 20,
  reconciliationIdleMs: 60_000,
  reconciliationFrameBytes: 500_000,
  maxReconciliationRecords: 1_000_000,
  maxReconciliationRecordsInAll: 3_000_000,
};
