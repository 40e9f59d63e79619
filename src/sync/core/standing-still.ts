// Time that passed without us (spec "Truth about oneself", Time). The core is woken at least every minute; when much
// more lies between two steps, the process was stopped or the machine slept, and nobody knows what the links missed.
// A wall clock that jumped says the same: what `since` would mean is not known any more.

import { disconnect } from "./connection.js";
import type { Step, SyncState } from "./state.js";
import { log } from "./telling.js";

/** Every link is given up as of the last step, which is the last moment at which anything is known of it. */
export function noticeGap(state: SyncState, step: Step): void {
  const last = state.lastStep;
  state.lastStep = step.now;
  if (!last) return;
  const { config, health } = state;
  const limitMs = Math.max(config.stoodStillMs, config.tidyMs * 1.5);
  const passedMs = step.now.monotonicMs - last.monotonicMs;
  const wallPassedMs = step.now.wallMs - last.wallMs;
  if (Math.max(passedMs, wallPassedMs) <= limitMs && wallPassedMs >= passedMs - limitMs) return;
  log(step, "warn", "stood-still", undefined, { forMs: Math.round(passedMs), wallMs: Math.round(wallPassedMs) });
  health.stoodStill(passedMs);
  for (const relay of state.relays.values()) {
    for (const turn of Object.values(relay.turns)) turn.sinceWallMs = Math.min(turn.sinceWallMs, step.now.wallMs);
    if (relay.status === "disconnected") continue;
    disconnect(state, relay, step, last);
    relay.notBeforeMs = step.now.monotonicMs + step.random() * config.startupJitterMs;
    state.touched.add(relay);
  }
}
