// The hunt's numbers, with the specification's defaults (purgatory.md "Hunting", configuration.md).

import { type NaughtyRules, naughtyDefaults } from "../../net/naughty.js";
import type { ServiceName } from "../../net/url.js";
import type { JobKind } from "./messages.js";

export interface DomainLimits {
  /** Fetches in flight. */
  readonly concurrent: number;
  /** Connections started in any window. */
  readonly rate: number;
}

export interface UrlLimits {
  readonly perAnnouncement: number;
  readonly perHost: number;
  readonly perRepository: number;
  readonly perPullRequest: number;
}

interface LaneLimits {
  /** Fetches younger than `slowFetchMs`, and fetches in all: slow servers must not take the places of quick ones. */
  readonly fresh: number;
  readonly total: number;
  readonly maxBytes: number;
}

/** What ends one `git fetch`, whatever the server does. */
export interface FetchLimits {
  readonly totalMs: number;
  /** Slower than this for `slowForMs` ends it. */
  readonly minBytesPerSecond: number;
  readonly slowForMs: number;
  readonly maxObjects: number;
  /** What each git process may use: a server may advertise hundreds of megabytes of refs. */
  readonly gitMemoryBytes: number;
  /** Ids asked for although the server does not advertise them. */
  readonly maxUnadvertised: number;
  readonly maxRedirects: number;
}

export interface HuntConfig {
  readonly directDelayMs: number;
  readonly syncDelayMs: number;
  /** After the first, second, … incomplete attempt; the last one repeats. */
  readonly backoffMs: readonly number[];
  readonly revisitMs: number;
  readonly slowFetchMs: number;
  readonly windowMs: number;
  readonly domain: DomainLimits;
  readonly overrides: ReadonlyMap<string, DomainLimits>;
  readonly urls: UrlLimits;
  /** Connections of one fetch, look-ups and redirects included. */
  readonly maxRequests: number;
  readonly fetch: FetchLimits;
  readonly lanes: Readonly<Record<JobKind, LaneLimits>>;
  readonly maxDomainLabels: number;
  readonly ours: readonly ServiceName[];
  readonly naughty: NaughtyRules;
}

export const huntDefaults: HuntConfig = {
  directDelayMs: 180_000,
  syncDelayMs: 500,
  backoffMs: [20_000, 40_000, 80_000, 120_000],
  revisitMs: 3_600_000,
  slowFetchMs: 30_000,
  windowMs: 60_000,
  domain: { concurrent: 5, rate: 30 },
  overrides: new Map(),
  urls: { perAnnouncement: 5, perHost: 3, perRepository: 20, perPullRequest: 3 },
  maxRequests: 12,
  fetch: {
    totalMs: 600_000,
    minBytesPerSecond: 1_000,
    slowForMs: 30_000,
    maxObjects: 5_000_000,
    gitMemoryBytes: 512 * 1024 ** 2,
    maxUnadvertised: 8,
    maxRedirects: 3,
  },
  lanes: {
    repository: { fresh: 16, total: 64, maxBytes: 2 * 1024 ** 3 },
    "pull-request": { fresh: 4, total: 16, maxBytes: 200 * 1024 ** 2 },
  },
  maxDomainLabels: 100,
  ours: [],
  naughty: naughtyDefaults,
};

/** 20 s, 40 s, 80 s, then 120 s each. `attempts` counts the incomplete ones so far, from 1. */
export function backoffMs(config: Pick<HuntConfig, "backoffMs">, attempts: number): number {
  const last = config.backoffMs.length - 1;
  return config.backoffMs[Math.min(Math.max(attempts, 1) - 1, last)] ?? 0;
}
