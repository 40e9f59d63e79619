// What a seed means: how many relays, repositories and events, which manners each relay has, and what happens when.

import type { ConnectFailure } from "../src/sync/core/messages.js";
import { lies, type Manners } from "./model-relay.js";
import type { Chance } from "./random.js";

export interface Size {
  readonly relays: number;
  readonly repos: number;
  /** Things that happen during the troubled hours: issues, comments, states, deletions, changes of relays… */
  readonly happenings: number;
  readonly hours: number;
}

export interface Trouble {
  /** Chances per answer that the link drops, stalls, repeats, reorders or cuts a message. */
  readonly drop: number;
  readonly stall: number;
  readonly repeat: number;
  readonly reorder: number;
  readonly truncate: number;
  /** Outages an hour and relay. */
  readonly outages: number;
  readonly storeTrouble: boolean;
  readonly clockJumps: boolean;
}

export const calmTrouble: Trouble = {
  drop: 0,
  stall: 0,
  repeat: 0,
  reorder: 0,
  truncate: 0,
  outages: 0,
  storeTrouble: false,
  clockJumps: false,
};

export interface Scenario {
  readonly size: Size;
  readonly trouble: Trouble;
  readonly bootstrap: boolean;
}

export function drawScenario(chance: Chance, hours: number | undefined): Scenario {
  const harsh = chance.once(0.5);
  return {
    size: {
      relays: chance.between(1, 8),
      repos: chance.between(1, 12),
      happenings: chance.between(5, 120),
      hours: hours ?? chance.between(2, 12),
    },
    trouble: {
      drop: harsh ? 0.02 : 0.002,
      stall: harsh ? 0.005 : 0,
      repeat: 0.05,
      reorder: 0.05,
      truncate: harsh ? 0.005 : 0,
      outages: harsh ? 0.5 : 0.05,
      storeTrouble: chance.once(0.2),
      clockJumps: chance.once(0.2),
    },
    bootstrap: chance.once(0.5),
  };
}

const failures: readonly ConnectFailure[] = ["dns-not-found", "certificate", "not-websocket", "refused", "timeout"];

export function drawManners(chance: Chance): Manners {
  const kind = chance.next();
  const caps = [25, 40, 500, 500, 500];
  const pageCap = chance.of(caps);
  const stated = chance.once(0.5);
  return {
    negentropy: chance.of(["yes", "yes", "yes", "notice", "error", "silent", "too-many-above-20"] as const),
    limits: stated
      ? {
          maxLimit: pageCap,
          ...(chance.once(0.5) && { maxSubscriptions: chance.of([10, 20, 300]) }),
          ...(chance.once(0.3) && { maxFilters: chance.of([1, 2, 10, 100]) }),
          ...(chance.once(0.3) && { maxFilterValues: chance.of([20, 1000, 5000]) }),
          ...(chance.once(0.3) && { maxMessageBytes: chance.of([16_384, 65_536, 5_000_000]) }),
        }
      : undefined,
    pageCap,
    refusesLimitZero: chance.once(0.2),
    refusesLongValues: chance.once(0.3),
    needsAuth: chance.once(0.2),
    requestsPerMinute: chance.once(0.2) ? chance.of([5, 20, 60]) : 100_000,
    rateLimitBy: chance.of(["closed", "notice"] as const),
    randomClosed: chance.once(0.3) ? 0.1 : 0,
    lies: kind < 0.25 ? chance.some(lies, chance.between(1, 2)) : [],
    ...(kind > 0.9 && { never: chance.of(failures) }),
  };
}
