// When a relay must be looked at again if nothing happens before. Everything that waits for time is listed here.

import { isSyncing, resyncDueMs } from "./connection.js";
import { workDueMs } from "./history.js";
import { relatedDueMs } from "./layer-four.js";
import { answerDueMs } from "./live.js";
import type { Time } from "./messages.js";
import { owedDueMs } from "./owed.js";
import { queryDeadlineMs } from "./query.js";
import { hasTargets, type Relay } from "./relay.js";
import type { SyncState } from "./state.js";

const never = Number.POSITIVE_INFINITY;

/** What is past and could not be done now is tried again soon, never in a tight circle. */
const soon = (dueMs: number, nowMs: number): number => (dueMs > nowMs ? dueMs : nowMs + 1000);

function whenConnected(state: SyncState, relay: Relay, nowMs: number): number {
  const { config } = state;
  let due = Math.min(relay.nextDailyMs, resyncDueMs(relay), relay.turns.roots.dueMs, relay.turns.repos.dueMs);
  if (relay.catchUpFailed) due = Math.min(due, relay.lastFullMs + config.staleAfterMs);
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

export function dueMsOf(state: SyncState, relay: Relay, now: Time): number {
  const nowMs = now.monotonicMs;
  switch (relay.status) {
    case "connected":
      return whenConnected(state, relay, nowMs);
    case "connecting":
      return relay.dialedMs + state.config.dialTimeoutMs * 1.5;
    case "disconnected": {
      if (state.ignored.has(relay.key) || relay.kept?.type === "loaded") return never;
      if (!hasTargets(relay) || relay.awaitsDial || (relay.wssUrl ?? relay.wsUrl) === undefined) return never;
      const dialMs = Math.max(relay.notBeforeMs, state.health.dialAtMs(relay.key, now));
      return soon(dialMs, nowMs);
    }
  }
}
