// What the core knows of one relay. Data only: each part is changed by the file that is named beside it.

import type { RelayUrl } from "../../net/url.js";
import type { EventId } from "../../nostr/ids.js";
import { IntMap } from "./int-map.js";
import { type Item, type Layer, slots } from "./items.js";
import type { Asked, Job, Related, Sweep } from "./job.js";
import type { RelayKey, RelayLimits, Time } from "./messages.js";

/** A live subscription over one group of items (live.ts). Three filters of the same values, or one. */
export interface Chunk {
  readonly id: number;
  readonly layer: Layer;
  items: Item[];
  bytes: number;
  /** Open subscriptions; several when the filters do not fit into one frame. */
  subs: string[];
  /** Subscriptions among them that have not reached EOSE. */
  unanswered: string[];
  openedMs: number;
  /** Items changed since it was opened. */
  dirty: boolean;
  /** Made by halving or for one long value: takes no new items. */
  closedToNew: boolean;
  retryAtMs: number;
  refusals: number;
  awaitsAuth: boolean;
  /** Wall time at which the relay closed it: what came since then is caught up after reopening. */
  lostAtWallMs: number | undefined;
}

export interface Replacement {
  readonly into: Chunk;
  /** Subscriptions that go when the chunk's new ones have answered. */
  readonly oldSubs: readonly string[];
  readonly deadlineMs: number;
}

/** The daily round's last step (layer-four.ts). */
export interface LayerFour {
  readonly repos: readonly number[];
  cursor: number;
  request: number | undefined;
  requestedMs: number;
  coordinates: readonly string[];
  after: string | undefined;
  ready: Related[];
}

/** Items without a live filter, asked for in turn (rotation.ts). */
export interface Turn {
  items: number;
  dueMs: number;
  /** Wall time at which the last round began; 0 when there was none. */
  sinceWallMs: number;
}

const newTurn = (): Turn => ({ items: 0, dueMs: Number.POSITIVE_INFINITY, sinceWallMs: 0 });

export interface Relay {
  readonly ix: number;
  readonly key: RelayKey;
  readonly host: string;
  /** Always wanted, never forgotten; changes with the list of services that are mirrored (targets.ts). */
  bootstrap: boolean;
  // targets.ts
  wsUrl: RelayUrl | undefined;
  wssUrl: RelayUrl | undefined;
  fullRepos: number;
  waitingRepos: number;
  readonly items: IntMap;
  /** Per layer; entries are checked against `items` when taken. */
  fresh: Item[][];
  unplaced: Item[];
  failedItems: number;
  confirmedItems: number;
  barredItems: number;
  // connection.ts
  status: "disconnected" | "connecting" | "connected";
  link: number;
  dialedMs: number;
  connectedMs: number;
  awaitsDial: boolean;
  notBeforeMs: number;
  historyNotBeforeMs: number;
  limits: RelayLimits;
  good: boolean;
  goodMoment: Time | undefined;
  catchUpFailed: boolean;
  nextDailyMs: number;
  lastFullMs: number;
  /** Why items are fresh: names the source of what their history brings. */
  round: "startup" | "daily";
  /** New events by what brought them, until the next summary in the log. */
  newSince: { startup: number; reconnect: number; daily: number };
  authPending: boolean;
  // live.ts
  chunks: Chunk[];
  readonly liveSubs: Map<string, { readonly chunk: Chunk; readonly filters: number }>;
  openFilters: number;
  nextChunk: number;
  /** Items wait for a merge to end before they are placed. */
  placingWaits: boolean;
  consolidated: boolean;
  /** No live root was active before this second; some may all have become active later. */
  leastActive: number;
  liveMode: "limit-0" | "since";
  replacement: Replacement | undefined;
  // rotation.ts
  readonly turns: { readonly roots: Turn; readonly repos: Turn };
  // history.ts
  jobs: Job[];
  readonly bySub: Map<string, Asked>;
  sweeps: Sweep[];
  retries: { readonly dueMs: number; readonly items: readonly Item[] }[];
  direct: EventId[];
  layerFour: LayerFour | undefined;
  learnedCap: number;
  noNegentropyUntilMs: number;
  negentropyFailures: number;
  warnedNegentropy: boolean;
  peerMissing: number;
  peerMissingTold: number;
  // arrivals.ts
  offersInFlight: number;
  readingPaused: boolean;
  dayStartMs: number;
  newToday: number;
  judged: number;
  refused: number;
  // core.ts
  armedMs: number;
  forgotten: boolean;
}

export function newRelay(ix: number, key: RelayKey, host: string, bootstrap: boolean, nowMs: number): Relay {
  return {
    ix,
    key,
    host,
    bootstrap,
    wsUrl: undefined,
    wssUrl: undefined,
    fullRepos: 0,
    waitingRepos: 0,
    items: new IntMap(),
    fresh: [[], [], [], []],
    unplaced: [],
    failedItems: 0,
    confirmedItems: 0,
    barredItems: 0,
    status: "disconnected",
    link: 0,
    dialedMs: 0,
    connectedMs: 0,
    awaitsDial: false,
    notBeforeMs: nowMs,
    historyNotBeforeMs: 0,
    limits: {},
    good: false,
    goodMoment: undefined,
    catchUpFailed: false,
    nextDailyMs: Number.POSITIVE_INFINITY,
    lastFullMs: Number.NEGATIVE_INFINITY,
    round: "startup",
    newSince: { startup: 0, reconnect: 0, daily: 0 },
    authPending: false,
    chunks: [],
    liveSubs: new Map(),
    openFilters: 0,
    nextChunk: slots.firstChunk,
    placingWaits: false,
    consolidated: false,
    leastActive: Number.POSITIVE_INFINITY,
    liveMode: "limit-0",
    replacement: undefined,
    turns: { roots: newTurn(), repos: newTurn() },
    jobs: [],
    bySub: new Map(),
    sweeps: [],
    retries: [],
    direct: [],
    layerFour: undefined,
    learnedCap: Number.POSITIVE_INFINITY,
    noNegentropyUntilMs: 0,
    negentropyFailures: 0,
    warnedNegentropy: false,
    peerMissing: 0,
    peerMissingTold: 0,
    offersInFlight: 0,
    readingPaused: false,
    dayStartMs: nowMs,
    newToday: 0,
    judged: 0,
    refused: 0,
    armedMs: Number.POSITIVE_INFINITY,
    forgotten: false,
  };
}

export const hasTargets = (relay: Relay): boolean => relay.bootstrap || relay.fullRepos + relay.waitingRepos > 0;
