// Items without a live filter are covered by asking again for their recent past: roots every 6 h, repos hourly. A round
// ends when all of it was answered; only then does the next one begin later. What failed, or was cut off with its link,
// is asked again from where the round began.

import { sweepOver } from "./actions.js";
import { type Item, type Layer, layerOf, layers, slotOf, slots, type Word } from "./items.js";
import { Sweep } from "./job.js";
import type { Relay, Round, Turn } from "./relay.js";
import type { Step, SyncState } from "./state.js";
import { turnOf } from "./words.js";

const againMs = 5 * 60 * 1000;
const never = Number.POSITIVE_INFINITY;

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
  if (relay.sweeps.some((sweep) => sweep.source === "rotating" && ofLayers.includes(sweep.layer))) return;
  const { monotonicMs: nowMs } = step.now;
  if (turn.round?.failed.length === 0) {
    turn.sinceWallMs = Math.min(turn.round.beganWallMs, step.now.wallMs);
    turn.dueMs = turn.round.beganMs + everyMs;
    turn.round = undefined;
  }
  if (turn.round) turn.dueMs = turn.round.againMs;
  else if (turn.items === 0) turn.dueMs = never;
  else if (turn.dueMs === never) turn.dueMs = nowMs + everyMs;
  if (turn.dueMs > nowMs) return;
  // Until it has ended.
  turn.dueMs = never;
  if (turn.round) goOn(relay, turn.round, ofLayers);
  else begin(state, relay, turn, everyMs, ofLayers, step);
}

function begin(
  state: SyncState,
  relay: Relay,
  turn: Turn,
  everyMs: number,
  ofLayers: readonly Layer[],
  step: Step,
): void {
  const { monotonicMs, wallMs } = step.now;
  const fromMs = (turn.sinceWallMs === 0 ? wallMs - 2 * everyMs : turn.sinceWallMs) - state.config.lookbackMs;
  const since = Math.floor(fromMs / 1000);
  turn.round = { since, beganMs: monotonicMs, beganWallMs: wallMs, failed: [], againMs: 0 };
  const isMeant = (word: Word): boolean => slotOf(word) === slots.rotating;
  for (const layer of ofLayers) sweepOver(relay, "rotating", since, layer, isMeant);
}

function goOn(relay: Relay, round: Round, ofLayers: readonly Layer[]): void {
  const failed = round.failed.splice(0);
  for (const layer of ofLayers) {
    const items = failed.filter((item) => layerOf(item) === layer);
    if (items.length > 0) relay.sweeps.push(new Sweep("rotating", round.since, layer, items));
  }
}

/** A failed part is asked for again in a while. */
export function rotateAgainSoon(relay: Relay, sweep: Sweep, items: readonly Item[], nowMs: number): void {
  const { round } = turnOf(relay, sweep.layer);
  round?.failed.push(...items);
  if (round) round.againMs = nowMs + againMs;
}

/** The link is gone, or a full sync begins: what was not answered is asked for again at once. */
export function cutRounds(relay: Relay): void {
  for (const { source, layer, items } of relay.sweeps) {
    if (source === "rotating") turnOf(relay, layer).round?.failed.push(...items);
  }
  for (const { sweep, items } of relay.jobs) {
    if (sweep?.source === "rotating") turnOf(relay, sweep.layer).round?.failed.push(...items);
  }
  for (const { round } of Object.values(relay.turns)) if (round) round.againMs = 0;
}
