// From settings as operators name them to the limits each room asks for. Nothing is decided here.

import type { ByteLimits } from "../base/budget/bytes.js";
import type { Config } from "../config/config.js";
import { defaultLimits, type GitHttpLimits } from "../git/http-types.js";
import type { PackBudgets } from "../git/push-types.js";
import type { DailyByteLimits } from "../intake/daily-bytes.js";
import { defaultRelayLimits, type RelayLimits } from "../relay/limits.js";

/** No address gets more than a third of what there is, but each can use its other limits. */
const shared = (inAll: number, least = 0): ByteLimits => {
  const perAddress = Math.max(Math.floor(inAll / 3), least);
  return { inAll: Math.max(inAll, perAddress), perAddress };
};

export const relayLimits = (config: Config): RelayLimits => ({
  ...defaultRelayLimits,
  maxMessageBytes: config.maxMessageBytes,
  maxEventBytes: config.maxEventBytes,
  maxEventTags: config.maxEventTags,
  maxFutureSeconds: config.maxFutureSecs,
  maxSubscriptions: config.maxSubscriptionsPerConnection,
  maxSubscriptionIdChars: config.maxSubscriptionIdChars,
  // Whatever else is allowed must fit into a frame.
  frames: {
    ...defaultRelayLimits.frames,
    maxItems: Math.max(defaultRelayLimits.frames.maxItems, config.maxFilterValues * 2, config.maxEventTags * 10),
  },
  maxFilters: config.maxFiltersPerReq,
  maxFilterValues: config.maxFilterValues,
  maxLiveValues: config.maxLiveValuesPerConnection,
  maxLimit: config.maxLimit,
  defaultLimit: config.defaultLimit,
  eventsPerMinutePerConnection: config.eventsPerMinutePerConnection,
  eventsPerMinutePerIp: config.eventsPerMinutePerIp,
  bytesPerSecondPerIp: config.receivePerSecondPerIpBytes,
  connectionsPerIp: config.maxConnectionsPerIp,
  maxConnections: config.maxConnections,
  outgoing: shared(config.sendTotalMaxBytes),
  incoming: shared(config.receiveTotalMaxBytes, config.maxMessageBytes * 2),
  filters: shared(config.filtersTotalMaxBytes),
  pauseAtBytes: config.sendPauseBytes,
  closeAtBytes: config.sendMaxBytes,
  stalledMs: config.sendStallSecs * 1_000,
  pingMs: config.pingIntervalSecs * 1_000,
  maxReconciliations: config.negentropyMaxSessionsPerConnection,
  reconciliationIdleMs: config.negentropyIdleSecs * 1_000,
  reconciliationFrameBytes: config.negentropyMaxFrameBytes,
  maxReconciliationRecords: config.negentropyMaxRecords,
  maxReconciliationRecordsInAll: config.negentropyTotalMaxRecords,
});

export const dailyByteLimits = (config: Config): DailyByteLimits => ({
  perAuthor: config.eventsPerDayPerAuthorBytes,
  perRepository: config.eventsPerDayPerRepositoryBytes,
  perAddress: config.eventsPerDayPerIpBytes,
});

export const packBudgets = (config: Config): PackBudgets => ({
  maxPackBytes: config.pushMaxBytes,
  maxObjects: config.pushMaxObjects,
  maxObjectBytes: config.maxObjectBytes,
  gitMemoryBytes: config.gitMemoryBytes,
});

export function gitHttpLimits(config: Config): GitHttpLimits {
  const usual = defaultLimits(config.gitPackConcurrent);
  return {
    ...usual,
    idleMs: config.gitIdleSecs * 1_000,
    totalMs: config.gitTotalSecs * 1_000,
    maxUploadRequestBytes: config.gitFetchRequestMaxBytes,
    // One address may send one request of the largest size at a time, or many usual ones.
    uploadBodies: { inAll: 4 * config.gitFetchRequestMaxBytes, perAddress: config.gitFetchRequestMaxBytes + 2 ** 20 },
    pushHead: { maxCommands: config.pushMaxCommands, maxBytes: config.pushMaxCommandBytes },
    progressMs: config.gitProgressIntervalSecs * 1_000,
    fetches: {
      total: config.gitPackConcurrent,
      perRepository: config.gitPackConcurrentPerRepository,
      perIp: config.gitPackConcurrentPerIp,
      maxQueued: config.gitPackQueue,
    },
    maxSharedBytes: config.gitPackCacheBytes,
  };
}
