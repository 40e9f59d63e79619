// What a seed means: how many relays, repositories and events, which manners each relay has, and what happens when.

import type { ConnectFailure } from "../src/net/relay-dialer.js";
import type { SyncConfig } from "../src/sync/core/config.js";
import { lies, type Manners } from "./model-relay.js";
import type { Chance } from "./random.js";

const minute = 60 * 1000;

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

/** What befalls our own server, or comes as regularly as the night. */
export interface Hardships {
  /** Our process stands still so often, or the machine sleeps. */
  readonly standstills: number;
  readonly sleeps: boolean;
  readonly diskFullMs: number;
  /** Waiting announcements an owner may have; more are refused. */
  readonly waitingPerOwner: number | undefined;
  /** Every link breaks so often, for longer than a quick reconnect allows. */
  readonly breaks: boolean;
  readonly nightlyRestarts: boolean;
  readonly deadNames: number;
  /** Events on one repository: more than its budget for a day. */
  readonly flood: number;
  readonly bans: boolean;
  /** Reading our own store takes longer than a relay may be silent. */
  readonly slowStore: boolean;
  /** So few live filters that most items are asked for in turn. */
  readonly fewFilters: boolean;
}

export const noHardships: Hardships = {
  standstills: 0,
  sleeps: false,
  diskFullMs: 0,
  waitingPerOwner: undefined,
  breaks: false,
  nightlyRestarts: false,
  deadNames: 0,
  flood: 0,
  bans: false,
  slowStore: false,
  fewFilters: false,
};

/** Each seed has one or two, so that it stays clear which one broke a property. */
export function drawHardships(chance: Chance): Hardships {
  const drawn: Partial<Hardships>[] = [
    { standstills: chance.between(1, 3), sleeps: chance.once(0.5) },
    { diskFullMs: chance.of([1, 5, 30, 180]) * minute },
    { waitingPerOwner: chance.of([0, 1]) },
    { breaks: true },
    { nightlyRestarts: true },
    { deadNames: chance.between(20, 40) },
    { flood: chance.between(60, 100) },
    { bans: true },
    { slowStore: true },
    { fewFilters: true },
  ];
  return Object.assign({}, noHardships, ...chance.some(drawn, chance.between(0, 2)));
}

/** Limits small enough for a small world to reach them. */
export const configFor = ({ deadNames, flood, fewFilters }: Hardships): Partial<SyncConfig> => ({
  ...(deadNames > 0 && { syncMaxRelays: 20 }),
  ...(flood > 0 && { syncMaxEventsPerRepositoryPerDay: 60 }),
  ...(fewFilters && { syncMaxFilters: 10, syncMaxTagsPerFilter: 4, syncConsolidatedTagsPerFilter: 5 }),
});

export interface Scenario {
  readonly size: Size;
  readonly hardships: Hardships;
  readonly trouble: Trouble;
  readonly bootstrap: boolean;
}

export function drawScenario(chance: Chance, hours: number | undefined, hardships: Hardships): Scenario {
  const harsh = chance.once(0.5);
  return {
    hardships,
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

/** What some relays do besides, drawn apart. */
export function drawHabits(chance: Chance): Partial<Manners> {
  const kind = chance.next();
  return {
    ...(kind < 0.1 && { negentropy: chance.of(["busy", "policy"] as const) }),
    ...(kind > 0.1 && kind < 0.2 && { maxValues: chance.of([25, 50]) }),
    ...(kind > 0.2 && kind < 0.25 && { refusesHistory: true }),
    ...(kind > 0.25 && kind < 0.35 && { ignoresLimitZero: true }),
    ...(kind > 0.35 && kind < 0.45 && { withholds: 0.3 }),
  };
}
