// What happens by time alone: when a relay must be looked at again if nothing happens before, what is done every
// minute, and what follows when time passed without us (spec "Truth about oneself", Time).

import { secondMs } from "./config.js";
import { disconnect, resyncDueMs } from "./connection.js";
import { log, type Step, type SyncState } from "./core-state.js";
import { workDueMs } from "./history.js";
import { isSyncing, makeFresh } from "./item-state.js";
import { type Item, repositoryItem, rootItem, stateItem } from "./job.js";
import { answerDueMs } from "./live.js";
import type { Account, Time } from "./messages.js";
import { compareAfterLists } from "./own-server.js";
import { passTurnsOn } from "./pacing.js";
import { owedDueMs, queryDeadlineMs } from "./query.js";
import { hasTargets, type Relay } from "./relay.js";
import { relatedDueMs } from "./rounds.js";
import { keep } from "./standing.js";
import { forgetRelay, makeRoom, placeTheRefused } from "./targets.js";
import type { Repo } from "./wanted.js";

/** Relays without targets go, memory that is over goes, a new day gives new budgets. */
export function everyMinute(state: SyncState, step: Step): void {
  let forgot = false;
  for (const relay of [...state.relays.values()]) {
    if (hasTargets(relay)) continue;
    disconnect(state, relay, step);
    step.out.push({ type: "dropKept", relay: relay.key });
    log(step, "info", "relay-dropped", relay);
    forgetRelay(state, relay);
    forgot = true;
  }
  if (forgot) placeTheRefused(state, step);
  makeRoom(state, step);
  passTurnsOn(state, step.now.monotonicMs);
  state.tidies += 1;
  const { keepEveryTidies } = state.config;
  for (const relay of state.relays.values()) {
    if ((relay.ix + state.tidies) % keepEveryTidies === 0) keep(state, relay, step);
  }
  state.remembered.tidy(step.now, step.out);
  compareAfterLists(state, step);
  state.health.tidy((key) => state.relays.has(key), step.now);
  for (const account of state.budgets.turnDay(step.now.monotonicMs)) fetchAgain(state, account);
}

/** The day's budget cut its history short. */
function fetchAgain(state: SyncState, account: Account): void {
  const items = ({ ix, roots }: Repo): Item[] =>
    "identifier" in account ? [stateItem(ix)] : [repositoryItem(ix), ...[...roots].map(rootItem)];
  for (const repo of state.wanted.reposOf(account)) askAgain(state, repo, items(repo));
}

function askAgain(state: SyncState, repo: Repo, items: readonly Item[]): void {
  for (const ix of repo.placed) {
    const relay = state.byIx[ix];
    if (!relay) continue;
    for (const item of items) makeFresh(state, relay, item);
    state.touched.add(relay);
  }
}

const never = Number.POSITIVE_INFINITY;

/** What is past and could not be done now is tried again soon, never in a tight circle. */
const soon = (dueMs: number, nowMs: number): number => (dueMs > nowMs ? dueMs : nowMs + 1000);

function whenConnected(state: SyncState, relay: Relay, nowMs: number): number {
  const { config } = state;
  let due = Math.min(relay.nextDailyMs, resyncDueMs(relay), relay.turns.roots.dueMs, relay.turns.repos.dueMs);
  if (relay.catchUpFailed) due = Math.min(due, relay.lastFullMs + config.syncStaleAfterSecs * secondMs);
  for (const job of relay.jobs)
    for (const query of job.queries) due = Math.min(due, queryDeadlineMs(state, relay, query));
  for (const retry of relay.retries) due = Math.min(due, retry.dueMs);
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
      const dialMs = Math.max(relay.notBeforeMs, state.health.dialAtMs(relay.key, now));
      return soon(dialMs, nowMs);
    }
  }
}

/**
 * The core is woken at least every minute; when much more lies between two steps, the process was stopped or the machine
 * slept, and nobody knows what the links missed. A wall clock that jumped says the same: what `since` would mean is not
 * known any more. Every link is given up as of the last step, the last moment at which anything is known of it.
 */
export function noticeGap(state: SyncState, step: Step): void {
  const last = state.lastStep;
  state.lastStep = step.now;
  if (!last) return;
  const { config, health } = state;
  const limitMs = Math.max(config.stoodStillMs, config.syncDisconnectCheckIntervalSecs * secondMs * 1.5);
  const passedMs = step.now.monotonicMs - last.monotonicMs;
  const wallPassedMs = step.now.wallMs - last.wallMs;
  if (Math.max(passedMs, wallPassedMs) <= limitMs && wallPassedMs >= passedMs - limitMs) return;
  log(step, "warn", "stood-still", undefined, { forMs: Math.round(passedMs), wallMs: Math.round(wallPassedMs) });
  health.stoodStill(passedMs);
  for (const relay of state.relays.values()) {
    for (const turn of Object.values(relay.turns)) turn.sinceWallMs = Math.min(turn.sinceWallMs, step.now.wallMs);
    if (relay.status === "disconnected") continue;
    disconnect(state, relay, step, last);
    relay.notBeforeMs = step.now.monotonicMs + step.random() * config.syncStartupJitterMs;
    state.touched.add(relay);
  }
}
