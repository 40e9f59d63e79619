// Items without a live filter are covered by asking again for their recent past: roots every 6 h, repos hourly.

import { type Item, layerOf, layers, slotOf, slots } from "./items.js";
import type { Sweep } from "./job.js";
import type { Relay } from "./relay.js";
import type { Step, SyncState } from "./state.js";

const again = 5 * 60 * 1000;

function sweepOver(relay: Relay, layer: Sweep["layer"], since: number): void {
  const items: Item[] = [];
  for (const item of relay.items.keys()) {
    if (layerOf(item) === layer && slotOf(relay.items.get(item)) === slots.rotating) items.push(item);
  }
  if (items.length > 0) relay.sweeps.push({ source: "rotating", since, layer, items, cursor: 0, running: 0 });
}

export function rotate(state: SyncState, relay: Relay, step: Step): void {
  const { config } = state;
  const nowMs = step.now.monotonicMs;
  if (relay.rotatingRoots === 0) relay.rotateRootsMs = Number.POSITIVE_INFINITY;
  else if (relay.rotateRootsMs === Number.POSITIVE_INFINITY) relay.rotateRootsMs = nowMs + config.rotateRootsMs;
  if (relay.rotatingRepos === 0) relay.rotateReposMs = Number.POSITIVE_INFINITY;
  else if (relay.rotateReposMs === Number.POSITIVE_INFINITY) relay.rotateReposMs = nowMs + config.rotateReposMs;
  // A round that is still running is long enough ago when the next one begins.
  if (relay.sweeps.some((sweep) => sweep.source === "rotating")) return;
  const since = (last: number, everyMs: number): number =>
    Math.floor((last === 0 ? step.now.wallMs - 2 * everyMs : last) / 1000 - config.lookbackMs / 1000);
  if (relay.rotateRootsMs <= nowMs) {
    sweepOver(relay, layers.roots, since(relay.rotatedRootsSince, config.rotateRootsMs));
    relay.rotatedRootsSince = step.now.wallMs;
    relay.rotateRootsMs = nowMs + config.rotateRootsMs;
  }
  if (relay.rotateReposMs <= nowMs) {
    for (const layer of [layers.states, layers.repositories]) {
      sweepOver(relay, layer, since(relay.rotatedReposSince, config.rotateReposMs));
    }
    relay.rotatedReposSince = step.now.wallMs;
    relay.rotateReposMs = nowMs + config.rotateReposMs;
  }
}

/** A failed stretch is asked for again, from where it began. */
export function rotateAgainSoon(state: SyncState, relay: Relay, sweep: Sweep, step: Step): void {
  const began = sweep.since * 1000 + state.config.lookbackMs;
  if (sweep.layer === layers.roots) {
    relay.rotatedRootsSince = Math.min(relay.rotatedRootsSince, began);
    relay.rotateRootsMs = Math.min(relay.rotateRootsMs, step.now.monotonicMs + again);
  } else {
    relay.rotatedReposSince = Math.min(relay.rotatedReposSince, began);
    relay.rotateReposMs = Math.min(relay.rotateReposMs, step.now.monotonicMs + again);
  }
}
