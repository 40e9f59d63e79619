// Every number that bounds a client (spec/relay.md "Limits", "Slow readers"): the settings under their own names, what
// follows from them, and what nobody needs to set. Rooms get them as an argument; they may change while the server runs,
// so they are read when they are needed, never kept.

import type { ByteLimits } from "../base/budget/bytes.js";
import type { Config } from "../config/config.js";
import { type FrameBounds, usualFrameBounds } from "../nostr/frame-shape.js";

type RelayConfig = Pick<
  Config,
  | "defaultLimit"
  | "eventsPerMinutePerConnection"
  | "eventsPerMinutePerIp"
  | "filtersTotalMaxBytes"
  | "maxConnections"
  | "maxConnectionsPerIp"
  | "maxEventBytes"
  | "maxEventTags"
  | "maxFilterValues"
  | "maxFiltersPerReq"
  | "maxFutureSecs"
  | "maxLimit"
  | "maxLiveValuesPerConnection"
  | "maxMessageBytes"
  | "maxSubscriptionIdChars"
  | "maxSubscriptionsPerConnection"
  | "negentropyIdleSecs"
  | "negentropyMaxFrameBytes"
  | "negentropyMaxRecords"
  | "negentropyMaxSessionsPerConnection"
  | "negentropyTotalMaxRecords"
  | "pingIntervalSecs"
  | "receivePerSecondPerIpBytes"
  | "receiveTotalMaxBytes"
  | "sendMaxBytes"
  | "sendPauseBytes"
  | "sendStallSecs"
  | "sendTotalMaxBytes"
>;

const mebibyte = 1024 * 1024;

/** What is no setting, because no operator has had a reason to change it. */
const fixedLimits = {
  /** A frame that is not understood costs one, and one more for each `badFrameBytes`; who has none left is closed. */
  badFramesPerMinutePerConnection: 200,
  badFramesPerMinutePerIp: 1_000,
  badFrameBytes: 32 * 1024,
  /** Tag names of one filter. */
  maxFilterTags: 32,
  /** Filters of all open subscriptions of a connection. */
  maxLiveFilters: 3_000,
  /** Requests of one connection that may be under way; then its socket is not read. */
  maxInFlight: 500,
  maxInFlightBytes: 8 * mebibyte,
  /** Stored queries (REQ, COUNT, NEG-OPEN) of one connection that run at the same time. */
  maxParallelQueries: 16,
  pageRows: 200,
  /** Live events kept for a subscription while its stored ones are sent; more are read again from the feed. */
  maxBufferedLiveEvents: 1_000,
  /** And so many bytes of them. */
  maxBufferedLiveBytes: 256 * 1024,
  /** A message that is not whole after so long ends the connection. */
  messageMs: 120_000,
  authMaxAgeSeconds: 10 * 60,
  maxAuthenticatedKeys: 32,
} as const;

interface DerivedLimits {
  /** What one frame may be made of, looked at before it is parsed. */
  readonly frames: FrameBounds;
  /** What waits to be taken by all clients together, and by those of one address. */
  readonly outgoing: ByteLimits;
  /** Messages that are not whole yet, or not answered yet, likewise. */
  readonly incoming: ByteLimits;
  /** What open subscriptions hold, likewise. */
  readonly filters: ByteLimits;
}

export type RelayLimits = RelayConfig & { readonly [Name in keyof typeof fixedLimits]: number } & DerivedLimits;

export const relayLimits = (config: RelayConfig): RelayLimits => ({
  ...config,
  ...fixedLimits,
  // Whatever else is allowed must fit into a frame.
  frames: {
    ...usualFrameBounds,
    maxItems: Math.max(usualFrameBounds.maxItems, config.maxFilterValues * 2, config.maxEventTags * 10),
  },
  outgoing: shared(config.sendTotalMaxBytes),
  incoming: shared(config.receiveTotalMaxBytes, config.maxMessageBytes * 2),
  filters: shared(config.filtersTotalMaxBytes),
});

/** No address gets more than a third of what there is, but each can use its other limits. */
const shared = (inAll: number, least = 0): ByteLimits => {
  const perAddress = Math.max(Math.floor(inAll / 3), least);
  return { inAll: Math.max(inAll, perAddress), perAddress };
};
