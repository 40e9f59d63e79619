// What the hunt obeys: the operator's settings (purgatory.md "Hunting", configuration.md), and numbers nobody sets. They
// may change while the hunt runs: they are read when they are needed.

import type { Config } from "../../config/config.js";
import type { ServiceName } from "../../net/url.js";
import type { JobKind } from "./messages.js";

type HuntSettings = Pick<
  Config,
  | Extract<keyof Config, `gitHunt${string}` | `gitDomain${string}` | `naughty${string}`>
  | "metricsMaxDomainLabels"
  | "gitMemoryBytes"
>;

interface LaneLimits {
  /** Fetches younger than `gitHuntOverlapSecs`, and fetches in all: slow servers must not take the places of quick ones. */
  readonly fresh: number;
  readonly total: number;
}

const lanes: Readonly<Record<JobKind, LaneLimits>> = {
  repository: { fresh: 16, total: 64 },
  "pull-request": { fresh: 4, total: 16 },
};

/** `windowMs`: in which a domain's connections are counted. */
export const huntConstants = { windowMs: 60_000, lanes };

export type HuntConfig = HuntSettings & Readonly<typeof huntConstants> & { readonly ours: readonly ServiceName[] };

export interface DomainLimits {
  /** Fetches in flight. */
  readonly concurrent: number;
  /** Connections started in any window. */
  readonly rate: number;
}

export function domainLimits(config: HuntConfig, domain: string): DomainLimits {
  const override = config.gitDomainOverrides.findLast(({ host }) => host === domain);
  return override
    ? { concurrent: override.concurrent, rate: override.startsPerMinute }
    : { concurrent: config.gitDomainConcurrent, rate: config.gitDomainRate };
}

/** 20 s, 40 s, 80 s, then 120 s each. `attempts` counts the incomplete ones so far, from 1. */
export const backoffMs = (config: HuntConfig, attempts: number): number =>
  Math.min(config.gitHuntBaseBackoffSecs * 2 ** (Math.max(attempts, 1) - 1), config.gitHuntMaxBackoffSecs) * 1_000;
