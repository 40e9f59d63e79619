// From settings as operators name them to the numbers of the sync core. Nothing is decided here.

import { createHash } from "node:crypto";
import type { Config } from "../config/config.js";
import { normalRelayUrl, type RelayUrl, type ServiceName } from "../net/url.js";
import { type SyncConfig, syncDefaults } from "./core/config.js";
import type { LinkTimes } from "./relay-client.js";

const second = 1_000;
const hour = 3_600_000;
const day = 24 * hour;

/** 5, 10, 20, then every 30 s: doubled until the longest. */
function retryDelays(baseSecs: number, maxSecs: number): number[] {
  const delays = [baseSecs];
  for (let next = baseSecs * 2; next < maxSecs && delays.length < 20; next *= 2) delays.push(next);
  return [...delays, maxSecs].map((secs) => Math.min(secs, maxSecs) * second);
}

/** A service on this machine speaks without TLS, as our own does there. */
const relayOfService = (host: string): string =>
  `${/^(?:localhost|127\.|\[::1\])/.test(host) ? "ws" : "wss"}://${host}`;

/** Bootstrap relays, and the relays of services whose repositories are mirrored: new ones are announced there. */
const alwaysFollowed = (config: Config): RelayUrl[] =>
  [...config.syncBootstrapRelayUrl, ...config.archiveGraspServices.map(relayOfService)].flatMap(
    (url) => normalRelayUrl(url) ?? [],
  );

/** What was refused under other rules, or by another version, is asked for again. */
function rulesOf(config: Config, version: string): string {
  const { repositoryWhitelist, repositoryBlacklist, eventBlacklist } = config;
  const { archiveAll, archiveWhitelist, archiveGraspServices } = config;
  const lists = [repositoryWhitelist, repositoryBlacklist, eventBlacklist, archiveWhitelist, archiveGraspServices];
  return createHash("sha256")
    .update(JSON.stringify([version, archiveAll, ...lists]))
    .digest("hex")
    .slice(0, 16);
}

export const coreConfig = (config: Config, services: readonly ServiceName[], version: string): SyncConfig => ({
  ...syncDefaults,
  ownServices: services,
  bootstrap: alwaysFollowed(config),
  rules: rulesOf(config, version),
  windowMs: config.syncBatchWindowMs,
  maxRelaysPerRepo: config.syncMaxRelaysPerRepository,
  maxRelaysPerHost: config.syncMaxRelaysPerHost,
  maxRelaysPerOwner: config.syncMaxRelaysPerOwner,
  maxRelays: config.syncMaxRelays,
  maxRelaysPerWaitingRepo: config.syncMaxRelaysPerWaiting,
  maxWaitingRelays: config.syncMaxRelaysForWaiting,
  tagsPerFilter: config.syncMaxTagsPerFilter,
  consolidatedTagsPerFilter: config.syncConsolidatedTagsPerFilter,
  maxLiveFilters: config.syncMaxFilters,
  maxFiltersPerRequest: config.syncMaxFiltersPerReq,
  maxFrameBytes: config.syncMaxFrameBytes,
  longValueBytes: config.syncMaxSharedValueBytes,
  maxBootstrapIdentifiers: config.syncMaxStateIdentifiers,
  liveSinceMs: config.syncLiveLookbackSecs * second,
  rotateRootsMs: config.syncRotateRootsHours * hour,
  rotateReposMs: config.syncRotateReposHours * hour,
  pageSize: config.syncPageEvents,
  idsPerFetch: config.syncFetchIds,
  batchDelayMs: config.syncBatchDelayMs,
  historyBytesPerSecond: config.syncBytesPerSec ?? Number.POSITIVE_INFINITY,
  maxHistorySubscriptions: config.syncHistorySubscriptions,
  silenceMs: config.syncHistorySilenceSecs * second,
  pageTimeoutMs: config.syncPageTotalSecs * second,
  negentropySilenceMs: config.syncNegentropySilenceSecs * second,
  negentropyFailuresBeforeGivingUp: config.syncNegentropyMaxFailures,
  noNegentropyMs: config.syncNegentropyRetryHours * hour,
  retryDelaysMs: retryDelays(config.syncRetryBaseSecs, config.syncRetryMaxSecs),
  failuresUntilNoted: config.syncItemMaxFailures,
  disableNegentropy: config.syncDisableNegentropy,
  startupDelayMs: config.syncStartupDelaySecs * second,
  reconnectDelayMs: config.syncReconnectDelaySecs * second,
  maxDials: config.syncConcurrentDials,
  dialTimeoutMs: config.syncDialTimeoutSecs * second,
  staleAfterMs: config.syncStaleAfterSecs * second,
  lookbackMs:
    config.syncReconnectLookbackDays === undefined
      ? config.syncQuickLookbackSecs * second
      : config.syncReconnectLookbackDays * day,
  dailyMinMs: config.syncDailyMinHours * hour,
  dailyMaxMs: config.syncDailyMaxHours * hour,
  quietHours: config.syncQuietHours,
  maxFullSyncs: config.syncMaxFullSyncs,
  tidyMs: config.syncDisconnectCheckIntervalSecs * second,
  startupJitterMs: config.syncStartupJitterMs,
  baseBackoffMs: config.syncBaseBackoffSecs * second,
  maxBackoffMs: config.syncMaxBackoffSecs * second,
  steadyLinkMs: config.syncStableLinkSecs * second,
  deadAfterMs: config.syncDeadAfterHours * hour,
  deadRetryMs: config.syncDeadRetryHours * hour,
  rateLimitPauseMs: config.syncRateLimitPauseSecs * second,
  naughtyFailures: config.naughtyAfterFailures,
  naughtyOverMs: config.naughtyAfterSecs * second,
  naughtyForMs: config.naughtyListExpirationHours * hour,
  maxNewPerCoordinatePerDay: config.syncMaxEventsPerRepositoryPerDay,
  maxNewPerRelayPerDay: config.syncMaxEventsPerRelayPerDay,
  refusedWindow: config.syncRefusedSampleEvents,
  refusedShare: config.syncRefusedMaxPercent / 100,
  refusedPauseMs: config.syncRefusedPauseSecs * second,
  hotMs: config.rejectedHotCacheDurationSecs * second,
  maxHot: config.rejectedHotMaxEvents,
  coldMs: config.rejectedColdIndexExpirySecs * second,
  maxCold: config.rejectedColdMaxEvents,
});

export const linkTimes = (config: Config): LinkTimes => ({
  pingMs: config.syncPingIntervalSecs * second,
  silentMs: config.syncSilentLinkSecs * second,
  maxUnsentBytes: config.sendMaxBytes,
});
