// The hunt for missing git data and the repair of what is here, from settings as operators name them.

import type { Config } from "../config/config.js";
import type { Context } from "../context.js";
import type { GitHost } from "../git/git-host.js";
import { reachOf } from "../net/address.js";
import { guardWith } from "../net/guard.js";
import { naughtyDefaults } from "../net/naughty.js";
import { type Resolve, systemResolver } from "../net/resolve.js";
import type { ServiceName } from "../net/url.js";
import type { Purgatory } from "../purgatory/purgatory.js";
import { type HuntConfig, huntDefaults } from "./core/config.js";
import { PlainHosts } from "./fetch-server.js";
import { Hunting } from "./hunting.js";
import { createHuntMetrics } from "./metrics.js";
import { Repair } from "./repair.js";

interface UsedRooms {
  readonly gitHost: Pick<GitHost, "git" | "launcher" | "repositories">;
  readonly purgatory: Purgatory;
  /** Instead of the system's; for tests. */
  readonly resolve?: Resolve;
  /** Instead of what the settings say; for tests. */
  readonly huntConfig?: (config: HuntConfig) => HuntConfig;
}

export interface HuntingRoom {
  readonly hunting: Hunting;
  readonly repair: Repair;
  close(): Promise<void>;
}

export async function startHunting(context: Context, parts: UsedRooms): Promise<HuntingRoom> {
  const { live, logger, clock, store, services, registry, onFault } = context;
  const { purgatory } = parts;
  const { repositories, git, launcher } = parts.gitHost;
  const fromSettings = (): HuntConfig => {
    const settings = huntConfig(live.current, services);
    return parts.huntConfig?.(settings) ?? settings;
  };
  const config = fromSettings();
  // The core reads its numbers when it needs them, in the objects it was given.
  const stopListening = live.onChange(() => {
    const { naughty, ...others } = fromSettings();
    Object.assign(config.naughty, naughty);
    Object.assign(config, others);
  });
  const metrics = createHuntMetrics(registry);
  const guard = guardWith({ resolve: parts.resolve ?? systemResolver(clock), reach: reachOf(live.current) });
  const hunting: Hunting = new Hunting({
    store,
    repositories,
    purgatory,
    clock,
    config,
    metrics,
    logger,
    onFault,
    repaired: (name) => void repair.check(name).catch(onFault),
    server: {
      git,
      clock,
      guard,
      plainHosts: new PlainHosts(clock),
      get limits() {
        return config.fetch;
      },
      get maxRequests() {
        return config.maxRequests;
      },
      scratchRoot: launcher.scratchDirectory,
      fetched: (bytes, seconds) => metrics.fetched(bytes, seconds),
    },
  });
  const repair: Repair = new Repair({
    store,
    repositories,
    purgatory,
    clock,
    intervalMs: () => live.current.gitRepairIntervalHours * 3_600_000,
    found: (name, found) => hunting.found(name, found),
    logger,
    onFault,
  });
  await hunting.open();
  repair.open();
  return {
    hunting,
    repair,
    async close() {
      stopListening();
      await repair.close();
      await hunting.close();
    },
  };
}

export function huntConfig(config: Config, ours: readonly ServiceName[]): HuntConfig {
  const { lanes } = huntDefaults;
  const overrides = config.gitDomainOverrides.map(
    ({ host, concurrent, startsPerMinute }) => [host, { concurrent, rate: startsPerMinute }] as const,
  );
  return {
    ...huntDefaults,
    directDelayMs: config.gitHuntDirectDelayMs,
    syncDelayMs: config.gitHuntSyncDelayMs,
    backoffMs: backoffSteps(config.gitHuntBaseBackoffSecs, config.gitHuntMaxBackoffSecs),
    revisitMs: config.gitHuntIntervalSecs * 1_000,
    slowFetchMs: config.gitHuntOverlapSecs * 1_000,
    domain: { concurrent: config.gitDomainConcurrent, rate: config.gitDomainRate },
    overrides: new Map(overrides),
    urls: {
      perAnnouncement: config.gitHuntMaxUrlsPerAnnouncement,
      perHost: config.gitHuntMaxUrlsPerHost,
      perRepository: config.gitHuntMaxUrlsPerRepository,
      perPullRequest: config.gitHuntMaxUrlsPerPr,
    },
    maxRequests: config.gitHuntMaxRequests,
    fetch: {
      totalMs: config.gitHuntTotalSecs * 1_000,
      minBytesPerSecond: config.gitHuntMinBytesPerSecond,
      slowForMs: config.gitHuntSlowSecs * 1_000,
      maxObjects: config.gitHuntMaxObjects,
      gitMemoryBytes: config.gitMemoryBytes,
      maxUnadvertised: config.gitHuntMaxUnadvertised,
      maxRedirects: config.gitHuntMaxRedirects,
    },
    lanes: {
      repository: { ...lanes.repository, maxBytes: config.gitHuntMaxBytes },
      "pull-request": { ...lanes["pull-request"], maxBytes: config.gitHuntPrMaxBytes },
    },
    maxDomainLabels: config.metricsMaxDomainLabels,
    ours,
    naughty: {
      ...naughtyDefaults,
      banMs: config.naughtyListExpirationHours * 3_600_000,
      failures: config.naughtyAfterFailures,
      spanMs: config.naughtyAfterSecs * 1_000,
    },
  };
}

/** 20 s, 40 s, 80 s, then 120 s each. */
function backoffSteps(baseSeconds: number, maxSeconds: number): number[] {
  const steps: number[] = [];
  for (let seconds = baseSeconds; seconds < maxSeconds; seconds *= 2) steps.push(seconds * 1_000);
  return [...steps, maxSeconds * 1_000];
}
