// Once a minute: relays without targets go, memory that is over goes, a new day gives new budgets.

import { disconnect } from "./connection.js";
import { repositoryItem, rootItem, stateItem } from "./items.js";
import { hasTargets } from "./relay.js";
import type { Step, SyncState } from "./state.js";
import { forgetRelay, placeTheRefused } from "./targets.js";
import { log } from "./telling.js";
import { makeFresh } from "./words.js";

export function tidy(state: SyncState, step: Step): void {
  let forgot = false;
  for (const relay of [...state.relays.values()]) {
    if (hasTargets(relay)) continue;
    disconnect(state, relay, step);
    log(step, "info", "relay-dropped", relay);
    forgetRelay(state, relay);
    forgot = true;
  }
  if (forgot) placeTheRefused(state, step);
  state.remembered.tidy(step.now, step.out);
  state.health.tidy((key) => state.relays.has(key), step.now);
  for (const coordinate of state.budgets.turnDay(step.now.monotonicMs)) fetchAgain(state, coordinate);
}

/** The day's budget cut its history short. */
function fetchAgain(state: SyncState, coordinate: string): void {
  const repo = state.wanted.repos.get(coordinate);
  if (!repo) return;
  const items = [stateItem(repo.ix), repositoryItem(repo.ix), ...[...repo.roots].map(rootItem)];
  for (const ix of repo.placed) {
    const relay = state.byIx[ix];
    if (!relay) continue;
    for (const item of items) makeFresh(state, relay, item);
    state.touched.add(relay);
  }
}
