// From settings as operators name them to the limits each room asks for. Nothing is decided here.

import type { Config } from "../config/config.js";
import { defaultLimits, type GitHttpLimits } from "../git/http-types.js";
import type { PackBudgets } from "../git/push-types.js";
import type { DailyByteLimits } from "../intake/daily-bytes.js";

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
