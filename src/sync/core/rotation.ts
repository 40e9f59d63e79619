// Items without a live filter are covered by asking again for their recent past: roots every 6 h, repos hourly.

import { sweepOver } from "./actions.js";
import { type Layer, layers, slotOf, slots, type Word } from "./items.js";
import type { Sweep } from "./job.js";
import type { Relay, Turn } from "./relay.js";
import type { Step, SyncState } from "./state.js";
import { turnOf } from "./words.js";

const againMs = 5 * 60 * 1000;

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
  const isMeant = (word: Word): boolean => slotOf(word) === slots.rotating;
  for (const layer of ofLayers) sweepOver(relay, "rotating", Math.floor(fromMs / 1000), layer, isMeant);
  turn.sinceWallMs = wallMs;
  turn.dueMs = nowMs + everyMs;
}

/** A failed stretch is asked for again, from where it began. */
export function rotateAgainSoon(state: SyncState, relay: Relay, sweep: Sweep, step: Step): void {
  const turn = turnOf(relay, sweep.layer);
  turn.sinceWallMs = Math.min(turn.sinceWallMs, sweep.since * 1000 + state.config.lookbackMs);
  turn.dueMs = Math.min(turn.dueMs, step.now.monotonicMs + againMs);
}
