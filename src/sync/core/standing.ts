// How far we are with a relay: whether everything it has for us is here (spec "Truth about oneself"), when each
// repository was last compared with it and nothing was missing here, what of that is kept over a restart, and the view
// for gauges, the status page and the simulator. It must never say more than is known.

import { hourMs, secondMs } from "./config.js";
import { type Compared, openFilters, type Relay, type SyncState, urlOf, waitingOnlyRelays } from "./core-state.js";
import { isSyncing, setPhase, textOf } from "./items.js";
import {
  allStatesItem,
  type Item,
  indexOf,
  type Job,
  layerOf,
  layers,
  phaseOf,
  phases,
  repositoryItem,
  rootItem,
  stateItem,
} from "./job.js";
import type { KeptRelay, NaughtyKind, RelayKey, Sides, Time } from "./messages.js";
import { outboxSnapshot } from "./outbox-standing.js";
import { lacksPromised } from "./query.js";
import type { Repo } from "./wanted.js";

/** A repository's copy at one relay. */
export interface Copy {
  readonly relay: RelayKey;
  readonly url: string | undefined;
  readonly connected: boolean;
  /** Nothing of this repository is known to be missing here now. */
  readonly inStep: boolean;
  readonly compared: Compared | undefined;
}

/** Live without a gap, and nothing asked for that has not been answered and judged. */
function isCaughtUp(relay: Relay, nowMs: number): boolean {
  const isOverdue = Object.values(relay.turns).some((turn) => turn.round || (turn.items > 0 && turn.dueMs <= nowMs));
  const asked = relay.jobs.length + relay.sweeps.length + relay.direct.size + relay.owed.length;
  const inFlight = asked + relay.offersInFlight;
  const isLive = relay.status === "connected" && relay.good && !relay.gaveUpIds;
  return isLive && !isOverdue && inFlight + relay.held.length === 0;
}

/** A repository that has used up its day lacks what came after. */
const isCutShort = (state: SyncState, relay: Relay): boolean =>
  [...state.budgets.over].some((account) =>
    [...state.wanted.reposOf(account)].some((repo) => repo.placed.has(relay.ix) || repo.outbox.has(relay.ix)),
  );

export const isInStep = (state: SyncState, relay: Relay, nowMs: number): boolean =>
  isCaughtUp(relay, nowMs) && relay.confirmedItems === relay.items.size && !isCutShort(state, relay);

const isConfirmed = (relay: Relay, item: Item): boolean => phaseOf(relay.items.get(item)) === phases.confirmed;

/** A bootstrap relay that is asked for all states has no item for this repository's. */
function isWholeAt(relay: Relay, repo: Repo): boolean {
  if (relay.confirmedItems === relay.items.size) return true;
  const hasState = !relay.items.has(stateItem(repo.ix)) || isConfirmed(relay, stateItem(repo.ix));
  if (!hasState || !isConfirmed(relay, repositoryItem(repo.ix))) return false;
  for (const root of repo.roots) if (!isConfirmed(relay, rootItem(root))) return false;
  return true;
}

function reposOf({ wanted }: SyncState, item: Item): readonly Repo[] {
  if (layerOf(item) === layers.roots) return wanted.reposOfRoot(indexOf(item));
  const repo = wanted.repo(indexOf(item));
  return repo ? [repo] : [];
}

const exclusiveOr = (a: string, b: string): string =>
  (BigInt(`0x${a || "0"}`) ^ BigInt(`0x${b || "0"}`)).toString(16).padStart(Math.max(a.length, b.length), "0");

/** What several sessions over one thing said, as one. */
export function addSides(a: Sides | undefined, b: Sides | undefined): Sides | undefined {
  if (!a || !b) return a ?? b;
  const side = (name: "ours" | "theirs") => ({
    count: a[name].count + b[name].count,
    fingerprint: exclusiveOr(a[name].fingerprint, b[name].fingerprint),
  });
  return { ours: side("ours"), theirs: side("theirs"), theyLack: a.theyLack + b.theyLack };
}

/** A batch was confirmed: its repositories are looked at when the round has ended. */
export function noteBatch(state: SyncState, relay: Relay, job: Job): void {
  const repos = new Set<number>();
  for (const item of job.items) {
    for (const { ix, placed } of reposOf(state, item)) if (placed.has(relay.ix)) repos.add(ix);
  }
  // What the relay claims to have and does not send is missing here.
  if (job.undelivered > 0) for (const ix of repos) relay.unclean.add(ix);
  // Numbers of several repositories together say nothing about one.
  const sides = repos.size === 1 && job.method === "negentropy" ? job.sides : undefined;
  for (const ix of repos) relay.comparing.set(ix, addSides(relay.comparing.get(ix), sides));
}

/** The round has ended and what it brought is judged: which repositories lack nothing. */
export function noteCompared(state: SyncState, relay: Relay, cleanWallMs: number): void {
  for (const [ix, sides] of relay.comparing) {
    const repo = state.wanted.repo(ix);
    if (repo?.level !== "full" || !repo.placed.has(relay.ix) || state.budgets.cutsShort(repo)) continue;
    if (isWholeAt(relay, repo) && !relay.unclean.has(ix)) relay.compared.set(ix, { cleanWallMs, sides });
  }
  relay.comparing.clear();
  relay.unclean.clear();
}

export function copiesOf(state: SyncState, coordinate: string, nowMs: number): Copy[] {
  const repo = state.wanted.repos.get(coordinate);
  return [...(repo?.placed ?? [])].flatMap((ix) => {
    const relay = state.byIx[ix];
    if (!repo || !relay) return [];
    const inStep = isCaughtUp(relay, nowMs) && isWholeAt(relay, repo) && !state.budgets.cutsShort(repo);
    const connected = relay.status === "connected";
    return { relay: relay.key, url: urlOf(relay), connected, inStep, compared: relay.compared.get(repo.ix) };
  });
}

/**
 * A restart is a reconnect (spec "Truth about oneself"): a server that was away for a few minutes asks for the last
 * hour and not for everything, and daily rounds come daily where the server restarts every night. Only a relay that was
 * in step, with exactly the items that are wanted now and under the same rules, is believed; every other one is met for
 * the first time. The fingerprint is of all items, whatever their order.
 */
function fingerprintOf(state: SyncState, relay: Relay): string {
  if (relay.fingerprint !== undefined) return relay.fingerprint;
  let [a, b] = [0, 0];
  for (const item of relay.items.keys()) {
    // Who takes part is found out anew after a start.
    if (layerOf(item) === layers.outbox) continue;
    const text = `${layerOf(item)} ${item === allStatesItem ? "*" : (textOf(state.wanted, item) ?? "")}`;
    let [x, y] = [0x811c9dc5, 0x2545f491];
    for (let at = 0; at < text.length; at++) {
      x = Math.imul(x ^ text.charCodeAt(at), 0x01000193);
      y = Math.imul((y << 5) ^ (y >>> 3) ^ text.charCodeAt(at), 0x5bd1e995);
    }
    a = (a + x) >>> 0;
    b = (b + y) >>> 0;
  }
  relay.fingerprint = `${relay.items.size - relay.outbox.size}-${a.toString(16)}-${b.toString(16)}`;
  return relay.fingerprint;
}

const toWall = ({ now }: SyncState, dueMs: number): number => Math.round(now.wallMs + (dueMs - now.monotonicMs));

/** Says what is to be kept of a relay, if that has changed. */
export function keep(state: SyncState, relay: Relay): void {
  if (relay.kept?.type === "loaded") return;
  if (isInStep(state, relay, state.now.monotonicMs)) {
    const items = `${fingerprintOf(state, relay)} ${state.config.rules}`;
    relay.lastWhole = { wallMs: state.now.wallMs, items };
  }
  // What our own trouble lost, and what the relay said it has and did not send, comes with a full sync, now or after
  // the restart.
  if (lacksPromised(relay) || relay.resyncMs !== Number.POSITIVE_INFINITY) relay.lastWhole = undefined;
  const entry: KeptRelay = {
    ...(relay.fourDueMs > 0 && { fourDueWallMs: toWall(state, relay.fourDueMs) }),
    ...(relay.nextDailyMs < Number.POSITIVE_INFINITY && { dailyDueWallMs: toWall(state, relay.nextDailyMs) }),
    newWallMs: toWall(state, relay.lastNewMs),
    ...(relay.lastWhole && { inStep: relay.lastWhole }),
  };
  const text = JSON.stringify(entry);
  if (relay.kept?.text === text) return;
  relay.kept = { type: "saved", text };
  state.out.push({ type: "keepRelay", relay: relay.key, entry });
}

/** Kept clocks are in force at once; whether the relay is believed to be whole is seen when the replay has ended. */
export function adopt(state: SyncState, relay: Relay): void {
  const entry = state.keptRelays.get(relay.key);
  if (!entry || relay.status !== "disconnected") return;
  state.keptRelays.delete(relay.key);
  relay.kept = { type: "loaded", text: "", entry };
  if (entry.newWallMs !== undefined)
    relay.lastNewMs = state.now.monotonicMs - Math.max(0, state.now.wallMs - entry.newWallMs);
  if (entry.fourDueWallMs !== undefined) relay.fourDueMs = toMonotonic(state, entry.fourDueWallMs);
}

/** A due time that a clock gone wrong put too far away comes as late as it may. */
function toMonotonic({ config, now }: SyncState, dueWallMs: number): number {
  return now.monotonicMs + Math.min(dueWallMs - now.wallMs, config.syncDailyMaxHours * hourMs);
}

/** Our own history has been told and applied: relays that wait for that are dialled, as known or as new. */
export function resume(state: SyncState): void {
  state.resumed = true;
  for (const relay of state.relays.values()) {
    if (relay.kept?.type !== "loaded") continue;
    const { inStep, dailyDueWallMs } = relay.kept.entry;
    relay.kept = undefined;
    state.touched.add(relay);
    if (!inStep || dailyDueWallMs === undefined) continue;
    if (inStep.items !== `${fingerprintOf(state, relay)} ${state.config.rules}`) continue;
    for (const item of relay.items.keys()) {
      if (layerOf(item) !== layers.outbox) setPhase(state, relay, item, phases.confirmed, 0);
    }
    const awayMs = state.now.wallMs - inStep.wallMs;
    relay.goodMoment = { wallMs: inStep.wallMs, monotonicMs: state.now.monotonicMs - Math.max(0, awayMs) };
    relay.lastInStep = relay.goodMoment;
    // A moment in the future: the clock went back, and nobody knows what `since` would leave out.
    if (awayMs < 0) relay.goodMoment = undefined;
    relay.lastWhole = inStep;
    relay.nextDailyMs = toMonotonic(state, dailyDueWallMs);
  }
  for (const relay of state.keptRelays.keys()) state.out.push({ type: "dropKept", relay });
  state.keptRelays.clear();
}

export type RelayStateName = "disconnected" | "connecting" | "syncing" | "live" | "live-with-failures";

function stateName(relay: Relay): RelayStateName {
  if (relay.status !== "connected") return relay.status;
  if (isSyncing(relay)) return "syncing";
  return relay.failedItems > 0 ? "live-with-failures" : "live";
}

function oldestOf({ compared }: Relay): number | undefined {
  let oldest: number | undefined;
  for (const { cleanWallMs } of compared.values()) oldest = Math.min(oldest ?? cleanWallMs, cleanWallMs);
  return oldest;
}

function relaySnapshot(state: SyncState, relay: Relay, now: Time) {
  const connected = relay.status === "connected";
  const linkMs = connected ? now.monotonicMs - relay.connectedMs : undefined;
  const inStep = isInStep(state, relay, now.monotonicMs);
  // An event on its way is noticed here before the relay is looked at again.
  const lastInStep = relay.inStep ? now : relay.lastInStep;
  const batches = relay.jobs.filter((job) => job.kind === "batch");
  return {
    relay: relay.key,
    url: urlOf(relay) as string | undefined,
    bootstrap: relay.bootstrap,
    /** Only announcements that wait, or participants, name it: who is followed for them is not for strangers to know. */
    waitingOnly: !relay.bootstrap && relay.repos.full === 0,
    /** No announcement lists it: how it does says nothing about the server. */
    isUnlisted: state.outbox.unlisted.has(relay),
    /** Repositories it is asked about as a participant's own relay, and for how many participants. */
    outboxRepositories: relay.outbox.size,
    outboxParticipants: relay.outboxAuthors.size,
    isOutboxLive: relay.isOutboxLive,
    state: stateName(relay),
    connected,
    status: state.health.status(relay.key, now.monotonicMs, linkMs),
    /** A link that has lasted says more than what was before it. */
    failures: (linkMs ?? 0) >= state.config.syncStableLinkSecs * secondMs ? 0 : state.health.of(relay.key).failures,
    lastFailure: state.health.of(relay.key).lastFailure,
    ignored: state.ignored.has(relay.key),
    /** Every wanted item confirmed, none failed, barred or overdue, and nothing in flight. */
    inStep,
    /** Wall time at which it was last in step; undefined when it never was, or is now. */
    inStepUntilMs: inStep ? undefined : lastInStep?.wallMs,
    /** Since it was last in step, or since it is followed if it never was; 0 while it is. */
    outOfStepMs: inStep ? 0 : Math.max(0, now.monotonicMs - (lastInStep?.monotonicMs ?? relay.followedMs)),
    /** Repositories followed there; how many were ever compared clean, and when the one that waits longest was. */
    repositories: relay.repos.full,
    comparedRepositories: relay.compared.size,
    oldestComparedWallMs: oldestOf(relay),
    /** Monotonic time before which it is not dialled. */
    nextDialMs: Math.max(relay.notBeforeMs, state.health.dialAtMs(relay.key, now.monotonicMs)),
    items: relay.items.size,
    confirmedItems: relay.confirmedItems,
    failedItems: relay.failedItems,
    retryingItems: relay.retries.reduce((sum, retry) => sum + retry.items.length, 0),
    barredItems: relay.barredItems,
    pendingBatches: batches.length,
    /** Monotonic time at which the oldest batch started. */
    oldestBatchMs: batches.length > 0 ? Math.min(...batches.map((job) => job.startedMs)) : undefined,
    liveFilters: openFilters(relay),
    rotatingRoots: relay.turns.roots.items,
    rotatingRepos: relay.turns.repos.items,
    peerMissing: relay.peerMissing,
    lastEventWallMs: relay.lastEventWallMs,
    offersInFlight: relay.offersInFlight,
    historySubscriptions: relay.bySub.size,
  };
}

export type RelaySnapshot = Readonly<ReturnType<typeof relaySnapshot>>;

export function snapshotOf(state: SyncState, now: Time) {
  const relays: readonly RelaySnapshot[] = [...state.relays.values()].map((relay) => relaySnapshot(state, relay, now));
  return {
    relays,
    connected: relays.filter((relay) => relay.connected && !relay.isUnlisted).length,
    dead: relays.filter((relay) => relay.status === 3 && !relay.isUnlisted).length,
    naughty: naughtyByKind(state, now.monotonicMs),
    hot: state.remembered.hotSize,
    cold: state.remembered.cold.size,
    repos: state.wanted.repos.size,
    roots: state.wanted.rootCount,
    /** Places in tables, free ones included: what memory follows. */
    tables: state.wanted.tableSizes,
    unplaced: state.unplaced.size,
    outbox: outboxSnapshot(state),
    waitingOnlyRelays: waitingOnlyRelays(state),
  };
}

export type CoreSnapshot = Readonly<ReturnType<typeof snapshotOf>>;

function naughtyByKind({ health }: SyncState, nowMs: number): Record<NaughtyKind, number> {
  const counts = { "dns-not-found": 0, certificate: 0, "not-websocket": 0 };
  for (const { kind } of health.naughty.entries(nowMs)) counts[kind] += 1;
  return counts;
}
