// Everything the core holds between two inputs, and what one step may use. Data only.

import { Budgets } from "./budgets.js";
import type { SyncConfig } from "./config.js";
import { DueHeap } from "./due-heap.js";
import { HealthBook } from "./health.js";
import type { Command, Random, RelayKey, Time } from "./messages.js";
import type { Relay } from "./relay.js";
import { Remembered } from "./remembered.js";
import { Wanted } from "./wanted.js";

export interface SyncState {
  readonly config: SyncConfig;
  readonly wanted: Wanted;
  readonly health: HealthBook;
  readonly remembered: Remembered;
  readonly budgets: Budgets;
  readonly relays: Map<RelayKey, Relay>;
  readonly byIx: (Relay | undefined)[];
  readonly freeIx: number[];
  readonly byHost: Map<string, Set<number>>;
  /** owner → relay number → how many of his repos list it. */
  readonly byOwner: Map<string, Map<number, number>>;
  /** Coordinates some of whose listed relays found no place under the caps. */
  readonly unplaced: Set<string>;
  /** The operator wants nothing to do with these. */
  ignored: ReadonlySet<RelayKey>;
  waitingOnlyRelays: number;
  /** Few, and walked for every repo that changes. */
  readonly bootstrap: Set<Relay>;
  bootstrapNamesStates: boolean;
  /** Relays that targets changed in this step. */
  readonly touched: Set<Relay>;
  readonly dialing: Set<Relay>;
  readonly dialQueue: Relay[];
  readonly due: DueHeap<Relay>;
  windowEndMs: number;
  tidyMs: number;
  nextName: number;
  nextJob: number;
  nextLink: number;
  started: boolean;
}

/** What one step may use: the time, random numbers, and where its commands go. */
export interface Step {
  readonly now: Time;
  readonly random: Random;
  readonly out: Command[];
}

export function newState(config: SyncConfig): SyncState {
  return {
    config,
    wanted: new Wanted(config),
    health: new HealthBook(config),
    remembered: new Remembered(config),
    budgets: new Budgets(config),
    relays: new Map(),
    byIx: [],
    freeIx: [],
    byHost: new Map(),
    byOwner: new Map(),
    unplaced: new Set(),
    ignored: new Set(),
    waitingOnlyRelays: 0,
    bootstrap: new Set(),
    bootstrapNamesStates: true,
    touched: new Set(),
    dialing: new Set(),
    dialQueue: [],
    due: new DueHeap(),
    windowEndMs: Number.POSITIVE_INFINITY,
    tidyMs: Number.POSITIVE_INFINITY,
    nextName: 1,
    nextJob: 1,
    nextLink: 1,
    started: false,
  };
}
