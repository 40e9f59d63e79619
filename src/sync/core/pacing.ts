// How much is asked in a while (spec "Truth about oneself", Pacing): full syncs a few at a time over all relays,
// because hundreds that begin at once would have us read our own store for all of them together; requests to one relay
// in turns; bytes of history over all relays. Live is open before and beside it.

import { hourMs, secondMs } from "./config.js";
import type { Step, SyncState } from "./core-state.js";
import type { Relay } from "./relay.js";

/** Whether a batch may be sent: outside a full sync always, within one when it is this relay's turn. */
export function hasTurn(state: SyncState, relay: Relay, step: Step): boolean {
  const { fullSyncs, fullSyncQueue, config } = state;
  if (!relay.isInFullSync || fullSyncs.has(relay)) return true;
  if (fullSyncs.size >= config.syncMaxFullSyncs) {
    fullSyncQueue.add(relay);
    return false;
  }
  fullSyncQueue.delete(relay);
  fullSyncs.set(relay, step.now.monotonicMs);
  return true;
}

/** The round or the link has ended. */
export function giveUpTurn(state: SyncState, relay: Relay): void {
  state.fullSyncQueue.delete(relay);
  if (state.fullSyncs.delete(relay)) callNext(state);
}

/** Relays that have to be fetched from for the first time come before those that are merely compared again. */
function callNext({ fullSyncQueue, touched }: SyncState): void {
  const waiting = [...fullSyncQueue];
  const next = waiting.find((relay) => relay.round === "startup") ?? waiting[0];
  if (next) touched.add(next);
}

/** What is under way at a slow relay goes on; its next batch waits for another turn. */
export function passTurnsOn(state: SyncState, nowMs: number): void {
  const { fullSyncs, fullSyncQueue, config } = state;
  for (const [relay, sinceMs] of fullSyncs) {
    if (fullSyncQueue.size === 0) return;
    if (nowMs - sinceMs < config.fullSyncTurnMs) continue;
    fullSyncs.delete(relay);
    callNext(state);
  }
}

/** The next request waits until what history brought is within its share: nobody's clock runs meanwhile. */
export function noteDownload(state: SyncState, bytes: number, nowMs: number): void {
  const tookMs = (bytes * secondMs) / (state.config.syncBytesPerSec ?? Number.POSITIVE_INFINITY);
  state.pacedUntilMs = Math.max(state.pacedUntilMs, nowMs) + tookMs;
}

const dayMs = 24 * hourMs;

/** When the next daily sync is due: 23–25 h from now, or before that in the quiet hours, if there are any. */
export function nextDailyMs(
  { config }: Pick<SyncState, "config">,
  { now, random }: Pick<Step, "now" | "random">,
): number {
  const waitMs =
    config.syncDailyMinHours * hourMs +
    random() * (config.syncDailyMaxHours * hourMs - config.syncDailyMinHours * hourMs);
  const { syncQuietHours: quietHours } = config;
  if (!quietHours) return now.monotonicMs + waitMs;
  const lengthMs = ((quietHours.to - quietHours.from + 24) % 24 || 24) * hourMs;
  const sinceQuietMs = (((now.wallMs + waitMs - quietHours.from * hourMs) % dayMs) + dayMs) % dayMs;
  const movedMs = waitMs - sinceQuietMs + random() * lengthMs;
  const stays = sinceQuietMs < lengthMs || movedMs < (config.syncDailyMinHours * hourMs) / 4;
  return now.monotonicMs + (stays ? waitMs : movedMs);
}

/** A request goes out. */
export function noteRequest({ config }: SyncState, relay: Relay, nowMs: number): void {
  if (relay.isInFullSync) return;
  if (nowMs >= relay.turnMs + config.requestTurnMs) {
    relay.turnMs = nowMs;
    relay.askedInTurn = 0;
  }
  relay.askedInTurn += 1;
}

/** When the relay may be asked again by this rule; past: now. */
export const nextTurnMs = ({ config }: SyncState, relay: Relay): number =>
  relay.askedInTurn < config.requestsPerTurn ? 0 : relay.turnMs + config.requestTurnMs;
