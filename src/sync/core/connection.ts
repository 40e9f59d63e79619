// A relay's link: when to dial, what kind of sync a new link begins with, what its end means (spec "Connections"), when
// the relay must be looked at again if nothing happens before, and what follows when time passed without us (spec "Truth
// about oneself", Time). States shown: disconnected, connecting, syncing, live, live with failures.

import type { ConnectFailure } from "../../net/relay-dialer.js";
import { lookbackMs, secondMs } from "./config.js";
import { hasTargets, log, type Relay, type SyncState, tally, urlOf } from "./core-state.js";
import { cancelJobs, dropJobs, workDueMs } from "./history.js";
import { allFresh, isSweeping, isSyncing, layerOrder, sweepOver } from "./items.js";
import { type Item, layerOf, layers, phaseOf, phases, slotOf, slots, type Word } from "./job.js";
import { answerDueMs, liveIsWhole, liveLost } from "./live.js";
import { reconsider } from "./live-set.js";
import type { Time } from "./messages.js";
import { owedDueMs, queryDeadlineMs } from "./query.js";
import { giveUpTurn, nextDailyMs, relatedDueMs } from "./rounds.js";
import { isInStep, keep, noteCompared } from "./standing.js";

export function tryDial(state: SyncState, relay: Relay): void {
  if (relay.status !== "disconnected" || relay.awaitsDial || relay.forgotten || !hasTargets(relay)) return;
  if (state.ignored.has(relay.key) || relay.kept?.type === "loaded") return;
  if (
    relay.notBeforeMs > state.now.monotonicMs ||
    state.health.dialAtMs(relay.key, state.now.monotonicMs) > state.now.monotonicMs
  )
    return;
  if (state.dialing.size >= state.config.syncConcurrentDials) {
    relay.awaitsDial = true;
    state.dialQueue.push(relay);
    return;
  }
  const url = urlOf(relay);
  if (url === undefined) return;
  const { naughty } = state.health;
  if (naughty.untilMs(relay.key) > 0 && naughty.forgive(relay.key)) {
    state.out.push({ type: "dropNaughty", relay: relay.key });
  }
  relay.status = "connecting";
  relay.link = state.nextLink++;
  relay.dialedMs = state.now.monotonicMs;
  state.dialing.add(relay);
  state.out.push({ type: "connect", relay: relay.key, link: relay.link, url });
}

/** A dial has ended, one way or the other: the next in the queue may begin. */
function dialEnded(state: SyncState, relay: Relay): void {
  state.dialing.delete(relay);
  while (state.dialing.size < state.config.syncConcurrentDials) {
    const next = state.dialQueue.shift();
    if (!next) return;
    next.awaitsDial = false;
    tryDial(state, next);
    state.touched.add(next);
  }
}

export function onConnected(state: SyncState, relay: Relay): void {
  const { config } = state;
  const nowMs = state.now.monotonicMs;
  dialEnded(state, relay);
  relay.status = "connected";
  relay.connectedMs = nowMs;
  state.health.naughty.worked(relay.key);
  relay.authPending = false;
  relay.readingPaused = false;
  tally(state, "connection_attempts", relay, "success");
  const good = relay.goodMoment;
  const quick = good !== undefined && !relay.catchUpFailed && isRecent(config, good, state.now);
  log(state, "info", "connected", relay, { sync: quick ? "quick" : "full" });
  relay.historyNotBeforeMs =
    nowMs + (good ? config.syncReconnectDelaySecs * secondMs : config.syncStartupDelaySecs * secondMs);
  if (!quick) {
    if (good) log(state, "info", "stale-reset", relay);
    fullSync(state, relay, good ? "stale" : "first");
    return;
  }
  const since = Math.max(0, Math.floor((good.wallMs - lookbackMs(config)) / 1000));
  const isMeant = (word: Word): boolean => phaseOf(word) === phases.confirmed && slotOf(word) !== slots.rotating;
  for (const layer of layerOrder) sweepOver(relay, "reconnect", since, layer, isMeant);
}

/** Short ago by both clocks: where the wall clock jumped, nobody knows what `since` would leave out. */
function isRecent({ syncStaleAfterSecs, stoodStillMs }: SyncState["config"], good: Time, now: Time): boolean {
  const awayMs = now.monotonicMs - good.monotonicMs;
  const wallMs = now.wallMs - good.wallMs;
  return Math.max(awayMs, wallMs) <= syncStaleAfterSecs * secondMs && wallMs >= awayMs - stoodStillMs;
}

/** `trouble`: ours, which has ended. `stale`: away for too long, or a catch-up failed. */
type FullSyncReason = "first" | "stale" | "trouble" | "daily";

/** Confirmed forgotten, full history; live stays open. */
function fullSync(state: SyncState, relay: Relay, reason: FullSyncReason): void {
  tally(state, "full_syncs", relay, reason);
  cancelJobs(state, relay);
  // A pass over outboxes looks back to the last that succeeded, however long ago: it is due, and need not begin anew.
  const isKept = (item: Item, word: Word): boolean =>
    reason === "stale" && layerOf(item) === layers.outbox && phaseOf(word) === phases.confirmed;
  allFresh(state, relay, (item, word) => !isKept(item, word));
  if (relay.turns.outbox.dueMs < Number.POSITIVE_INFINITY) relay.turns.outbox.dueMs = state.now.monotonicMs;
  relay.round = reason === "daily" ? "daily" : "startup";
  relay.peerMissing = 0;
  relay.catchUpFailed = false;
  relay.gaveUpIds = false;
  relay.resyncMs = Number.POSITIVE_INFINITY;
  relay.lastFullMs = state.now.monotonicMs;
  relay.nextDailyMs = nextDailyMs(state, state);
  relay.isInFullSync = true;
  relay.owesKeeping = true;
  if (relay.turns.roots.items + relay.turns.repos.items > 0) {
    for (const item of relay.items.keys()) reconsider(state, relay, item);
  }
}

/** The daily full sync, and those a failed catch-up (not more often than a link may be stale) or our trouble call for. */
export function syncAgain(state: SyncState, relay: Relay): void {
  const nowMs = state.now.monotonicMs;
  if (relay.catchUpFailed)
    relay.nextDailyMs = Math.min(relay.nextDailyMs, relay.lastFullMs + state.config.syncStaleAfterSecs * secondMs);
  if (resyncDueMs(relay) <= nowMs) {
    relay.resyncs += 1;
    log(state, "info", "resync", relay);
    fullSync(state, relay, "trouble");
  }
  if (relay.nextDailyMs > nowMs) return;
  const reason = relay.catchUpFailed ? "stale" : "daily";
  log(state, "info", reason === "daily" ? "daily-sync" : "stale-reset", relay);
  fullSync(state, relay, reason);
}

/** What was lost here is fetched with one full sync, when nothing was lost for a while; longer each time. */
export function resyncLater({ config, touched, now }: SyncState, relay: Relay): void {
  const waitMs = config.resyncAfterTroubleMs * 2 ** relay.resyncs;
  relay.resyncMs = now.monotonicMs + Math.min(waitMs, config.maxResyncWaitMs);
  touched.add(relay);
}

/** A sync that is under way is not called off for another. */
export const resyncDueMs = (relay: Relay): number => (isSyncing(relay) ? Number.POSITIVE_INFINITY : relay.resyncMs);

/** Keeps the good moment and notes the end of a round. */
export function noteProgress(state: SyncState, relay: Relay): void {
  const syncing = isSyncing(relay);
  const good =
    !syncing &&
    !relay.catchUpFailed &&
    relay.resyncMs === Number.POSITIVE_INFINITY &&
    liveIsWhole(relay) &&
    !isSweeping(relay, "reconnect", layerOrder);
  if (relay.good && !good) relay.goodMoment = state.now;
  relay.good = good;
  if (good) state.health.succeed(relay.key);
  const inStep = isInStep(state, relay, state.now.monotonicMs);
  if (relay.inStep && !inStep) relay.lastInStep = state.now;
  relay.inStep = inStep;
  if (inStep && relay.owesKeeping) {
    // Not left to the next round of keeping: a kill before that would ask for all history once more.
    relay.owesKeeping = false;
    keep(state, relay);
  }
  if (relay.isInFullSync && !syncing) {
    relay.isInFullSync = false;
    giveUpTurn(state, relay);
  }
  if (syncing || !good || relay.offersInFlight > 0) return;
  noteCompared(state, relay, state.now.wallMs);
  // What failed is asked for again in a moment: until then nothing has succeeded.
  if (relay.retries.length === 0) relay.resyncs = 0;
  summarise(state, relay);
  relay.round = "startup";
}

const summaryLevels = { startup: "info", reconnect: "warn", daily: "error" } as const;

/** What history brought since the last summary: gaps are worth a louder word than a first sync. */
function summarise(state: SyncState, relay: Relay): void {
  for (const source of ["startup", "reconnect", "daily"] as const) {
    const newEvents = relay.newSince[source];
    if (newEvents === 0) continue;
    log(state, summaryLevels[source], `${source}-summary`, relay, { newEvents });
    relay.newSince[source] = 0;
  }
  if (relay.peerMissing > relay.peerMissingTold) {
    log(state, "warn", "peer-missing-events", relay, { count: relay.peerMissing });
  }
  relay.peerMissingTold = relay.peerMissing;
}

export function onConnectFailed(state: SyncState, relay: Relay, kind: ConnectFailure): void {
  dialEnded(state, relay);
  relay.status = "disconnected";
  tally(state, "connection_attempts", relay, "failure");
  const { wallMs, monotonicMs } = state.now;
  const ban = relay.bootstrap ? undefined : state.health.naughty.failed(relay.key, relay.host, kind, monotonicMs);
  if (ban) {
    const untilWallMs = wallMs + ban.untilMs - monotonicMs;
    state.out.push({ type: "saveNaughty", relay: relay.key, kind: ban.kind, untilWallMs });
    log(state, "warn", "relay-naughty", relay, { kind: ban.kind });
  }
  noteFailure(state, relay, "connect-failed", kind);
}

function noteFailure(state: SyncState, relay: Relay, code: string, kind: string): void {
  const { waitMs, died } = state.health.fail(relay.key, state.now.monotonicMs, state.random);
  state.health.of(relay.key).lastFailure = { kind, wallMs: state.now.wallMs };
  const { failures, firstFailureMs } = state.health.of(relay.key);
  log(state, "warn", code, relay, { kind, attempt: failures, waitMs: Math.round(waitMs) });
  if (died) log(state, "error", "relay-dead", relay, { forMs: Math.round(state.now.monotonicMs - firstFailureMs) });
}

/** Both clocks, so much earlier. */
export const earlier = ({ wallMs, monotonicMs }: Time, byMs: number): Time => ({
  wallMs: wallMs - byMs,
  monotonicMs: monotonicMs - byMs,
});

/** What was noted after the last that is known of a link was noted in vain. */
const notAfter = (heard: Time, noted: Time | undefined): Time | undefined =>
  noted && noted.monotonicMs > heard.monotonicMs ? heard : noted;

/** The link is gone; `heard` is the last that is known of it. One that we closed is no failure of the relay's. */
export function onLost(state: SyncState, relay: Relay, how: "lost" | "closed-by-us", heard: Time): void {
  if (relay.status !== "connected") return;
  relay.goodMoment = relay.good ? heard : notAfter(heard, relay.goodMoment);
  relay.lastInStep = relay.inStep ? heard : notAfter(heard, relay.lastInStep);
  relay.good = false;
  relay.inStep = false;
  relay.comparing.clear();
  relay.status = "disconnected";
  relay.limits = {};
  dropJobs(state, relay);
  giveUpTurn(state, relay);
  liveLost(relay);
  state.health.linkEnded(relay.key, heard.monotonicMs - relay.connectedMs);
  if (how === "lost") noteFailure(state, relay, "link-lost", "closed");
}

export function disconnect(state: SyncState, relay: Relay, heard = state.now): void {
  if (relay.status === "disconnected") return;
  state.out.push({ type: "disconnect", relay: relay.key, link: relay.link });
  if (relay.status === "connecting") {
    dialEnded(state, relay);
    relay.status = "disconnected";
  } else onLost(state, relay, "closed-by-us", heard);
}

const never = Number.POSITIVE_INFINITY;

/** What is past and could not be done now is tried again soon, never in a tight circle. */
const soon = (dueMs: number, nowMs: number): number => (dueMs > nowMs ? dueMs : nowMs + 1000);

function whenConnected(state: SyncState, relay: Relay, nowMs: number): number {
  let due = Math.min(relay.nextDailyMs, resyncDueMs(relay), ...Object.values(relay.turns).map(({ dueMs }) => dueMs));
  for (const job of relay.jobs)
    for (const query of job.queries) due = Math.min(due, queryDeadlineMs(state, relay, query));
  for (const retry of relay.retries) due = Math.min(due, retry.dueMs);
  for (const { notBeforeMs } of relay.sweeps) if (notBeforeMs > nowMs) due = Math.min(due, notBeforeMs);
  const askAgainMs = state.health.of(relay.key).askAgainMs;
  if (askAgainMs > nowMs) return Math.min(soon(due, nowMs), askAgainMs);
  due = Math.min(due, workDueMs(state, relay, nowMs), owedDueMs(relay, nowMs));
  if (relay.replacement) due = Math.min(due, relay.replacement.deadlineMs);
  // The end of a sync looks at layer 4 by itself.
  if (!isSyncing(relay)) due = Math.min(due, relatedDueMs(state, relay));
  for (const chunk of relay.chunks) {
    due = Math.min(due, answerDueMs(state, relay, chunk));
    if (chunk.retryAtMs > nowMs) due = Math.min(due, chunk.retryAtMs);
  }
  return soon(due, nowMs);
}

/** Everything that waits for time is listed here. */
export function dueMsOf(state: SyncState, relay: Relay, now: Time): number {
  const nowMs = now.monotonicMs;
  switch (relay.status) {
    case "connected":
      return whenConnected(state, relay, nowMs);
    case "connecting":
      return relay.dialedMs + state.config.syncDialTimeoutSecs * secondMs * 1.5;
    case "disconnected": {
      if (state.ignored.has(relay.key) || relay.kept?.type === "loaded") return never;
      if (!hasTargets(relay) || relay.awaitsDial || (relay.wssUrl ?? relay.wsUrl) === undefined) return never;
      const dialMs = Math.max(relay.notBeforeMs, state.health.dialAtMs(relay.key, nowMs));
      return soon(dialMs, nowMs);
    }
  }
}

/**
 * The core is woken at least every minute; when much more lies between two steps, the process was stopped or the machine
 * slept, and nobody knows what the links missed. A wall clock that jumped says the same: what `since` would mean is not
 * known any more. Every link is given up as of the last step, the last moment at which anything is known of it.
 */
export function noticeGap(state: SyncState): void {
  const last = state.lastStep;
  state.lastStep = state.now;
  if (!last) return;
  const { config, health } = state;
  const limitMs = Math.max(config.stoodStillMs, config.syncDisconnectCheckIntervalSecs * secondMs * 1.5);
  const passedMs = state.now.monotonicMs - last.monotonicMs;
  const wallPassedMs = state.now.wallMs - last.wallMs;
  if (Math.max(passedMs, wallPassedMs) <= limitMs && wallPassedMs >= passedMs - limitMs) return;
  log(state, "warn", "stood-still", undefined, { forMs: Math.round(passedMs), wallMs: Math.round(wallPassedMs) });
  // A clock that jumped did not keep anybody from answering.
  if (passedMs > limitMs) health.stoodStill(passedMs);
  for (const relay of state.relays.values()) {
    for (const turn of Object.values(relay.turns)) turn.sinceWallMs = Math.min(turn.sinceWallMs, state.now.wallMs);
    if (relay.status === "disconnected") continue;
    disconnect(state, relay, last);
    relay.notBeforeMs = state.now.monotonicMs + state.random() * config.syncStartupJitterMs;
    state.touched.add(relay);
  }
}
