// Items without a live filter are covered by asking again for their recent past: roots every 6 h, repos hourly.

import { type Item, type Layer, layerOf, layers, slotOf, slots } from "./items.js";
import { Sweep } from "./job.js";
import type { Relay, Turn } from "./relay.js";
import type { Step, SyncState } from "./state.js";

const againMs = 5 * 60 * 1000;

function sweepOver(relay: Relay, layer: Layer, since: number): void {
  const items: Item[] = [];
  for (const item of relay.items.keys()) {
    if (layerOf(item) === layer && slotOf(relay.items.get(item)) === slots.rotating) items.push(item);
  }
  if (items.length > 0) relay.sweeps.push(new Sweep("rotating", since, layer, items));
}

export function rotate(state: SyncState, relay: Relay, step: Step): void {
  const { rotateRootsMs, rotateReposMs } = state.config;
  takeTurn(state, relay, relay.turns.roots, rotateRootsMs, [layers.roots], step);
  takeTurn(state, relay, relay.turns.repos, rotateReposMs, [layers.states, layers.repositories], step);
}

function takeTurn(
  state: SyncState,
  relay: Relay,
  turn: Turn,
  everyMs: number,
  ofLayers: readonly Layer[],
  step: Step,
): void {
  const { monotonicMs: nowMs, wallMs } = step.now;
  if (turn.items === 0) turn.dueMs = Number.POSITIVE_INFINITY;
  else if (turn.dueMs === Number.POSITIVE_INFINITY) turn.dueMs = nowMs + everyMs;
  if (turn.dueMs > nowMs) return;
  // A round that is still running is long enough ago when the next one begins.
  if (relay.sweeps.some((sweep) => sweep.source === "rotating" && ofLayers.includes(sweep.layer))) return;
  const fromMs = (turn.sinceWallMs === 0 ? wallMs - 2 * everyMs : turn.sinceWallMs) - state.config.lookbackMs;
  for (const layer of ofLayers) sweepOver(relay, layer, Math.floor(fromMs / 1000));
  turn.sinceWallMs = wallMs;
  turn.dueMs = nowMs + everyMs;
}

/** A failed stretch is asked for again, from where it began. */
export function rotateAgainSoon(state: SyncState, relay: Relay, sweep: Sweep, step: Step): void {
  const turn = sweep.layer === layers.roots ? relay.turns.roots : relay.turns.repos;
  turn.sinceWallMs = Math.min(turn.sinceWallMs, sweep.since * 1000 + state.config.lookbackMs);
  turn.dueMs = Math.min(turn.dueMs, step.now.monotonicMs + againMs);
}
