// A restart is a reconnect (spec "Truth about oneself"): what is kept of each relay, so that a server that was away for
// a few minutes asks for the last hour and not for everything, and so that daily rounds come daily where the server
// restarts every night. Only a relay that was in step, with exactly the items that are wanted now and under the same
// rules, is believed; every other one is met for the first time.

import { textOf } from "./filters.js";
import { isInStep } from "./in-step.js";
import { allStatesItem, layerOf, phases } from "./items.js";
import type { KeptRelay } from "./messages.js";
import { lacksPromised } from "./owed.js";
import type { Relay } from "./relay.js";
import type { Step, SyncState } from "./state.js";
import { setPhase } from "./words.js";

/** Of all items, whatever their order, and of the rules under which their events were judged. */
function fingerprintOf(state: SyncState, relay: Relay): string {
  if (relay.fingerprint !== undefined) return relay.fingerprint;
  let [a, b] = [0, 0];
  for (const item of relay.items.keys()) {
    const text = `${layerOf(item)} ${item === allStatesItem ? "*" : (textOf(state.wanted, item) ?? "")}`;
    let [x, y] = [0x811c9dc5, 0x2545f491];
    for (let at = 0; at < text.length; at++) {
      x = Math.imul(x ^ text.charCodeAt(at), 0x01000193);
      y = Math.imul((y << 5) ^ (y >>> 3) ^ text.charCodeAt(at), 0x5bd1e995);
    }
    a = (a + x) >>> 0;
    b = (b + y) >>> 0;
  }
  relay.fingerprint = `${relay.items.size}-${a.toString(16)}-${b.toString(16)}`;
  return relay.fingerprint;
}

const toWall = (dueMs: number, { now }: Step): number => Math.round(now.wallMs + (dueMs - now.monotonicMs));

/** Says what is to be kept of a relay, if that has changed. */
export function keep(state: SyncState, relay: Relay, step: Step): void {
  if (relay.kept?.type === "loaded") return;
  if (isInStep(state, relay, step.now.monotonicMs)) {
    const items = `${fingerprintOf(state, relay)} ${state.config.rules}`;
    relay.lastWhole = { wallMs: step.now.wallMs, items };
  }
  // What our own trouble lost, and what the relay said it has and did not send, comes with a full sync, now or after
  // the restart.
  if (lacksPromised(relay) || relay.resyncMs !== Number.POSITIVE_INFINITY) relay.lastWhole = undefined;
  const entry: KeptRelay = {
    ...(relay.fourDueMs > 0 && { fourDueWallMs: toWall(relay.fourDueMs, step) }),
    ...(relay.nextDailyMs < Number.POSITIVE_INFINITY && { dailyDueWallMs: toWall(relay.nextDailyMs, step) }),
    newWallMs: toWall(relay.lastNewMs, step),
    ...(relay.lastWhole && { inStep: relay.lastWhole }),
  };
  const text = JSON.stringify(entry);
  if (relay.kept?.text === text) return;
  relay.kept = { type: "saved", text };
  step.out.push({ type: "keepRelay", relay: relay.key, entry });
}

/** Kept clocks are in force at once; whether the relay is believed to be whole is seen when the replay has ended. */
export function adopt(state: SyncState, relay: Relay, step: Step): void {
  const entry = state.keptRelays.get(relay.key);
  if (!entry || relay.status !== "disconnected") return;
  state.keptRelays.delete(relay.key);
  relay.kept = { type: "loaded", text: "", entry };
  if (entry.newWallMs !== undefined)
    relay.lastNewMs = step.now.monotonicMs - Math.max(0, step.now.wallMs - entry.newWallMs);
  if (entry.fourDueWallMs !== undefined) relay.fourDueMs = toMonotonic(state, entry.fourDueWallMs, step);
}

/** A due time that a clock gone wrong put too far away comes as late as it may. */
function toMonotonic({ config }: SyncState, dueWallMs: number, { now }: Step): number {
  return now.monotonicMs + Math.min(dueWallMs - now.wallMs, config.dailyMaxMs);
}

/** Our own history has been told and applied: relays that wait for that are dialled, as known or as new. */
export function resume(state: SyncState, step: Step): void {
  state.resumed = true;
  for (const relay of state.relays.values()) {
    if (relay.kept?.type !== "loaded") continue;
    const { inStep, dailyDueWallMs } = relay.kept.entry;
    relay.kept = undefined;
    state.touched.add(relay);
    if (!inStep || dailyDueWallMs === undefined) continue;
    if (inStep.items !== `${fingerprintOf(state, relay)} ${state.config.rules}`) continue;
    for (const item of relay.items.keys()) setPhase(state, relay, item, phases.confirmed, 0);
    const awayMs = step.now.wallMs - inStep.wallMs;
    relay.goodMoment = { wallMs: inStep.wallMs, monotonicMs: step.now.monotonicMs - Math.max(0, awayMs) };
    relay.lastInStep = relay.goodMoment;
    // A moment in the future: the clock went back, and nobody knows what `since` would leave out.
    if (awayMs < 0) relay.goodMoment = undefined;
    relay.lastWhole = inStep;
    relay.nextDailyMs = toMonotonic(state, dailyDueWallMs, step);
  }
  for (const relay of state.keptRelays.keys()) step.out.push({ type: "dropKept", relay });
  state.keptRelays.clear();
}
