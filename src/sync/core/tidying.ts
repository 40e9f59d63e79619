// Once a minute: relays without targets go, memory that is over goes, a new day gives new budgets.

import type { Account } from "./budgets.js";
import { disconnect } from "./connection.js";
import { passTurnsOn } from "./full-syncs.js";
import { type Item, repositoryItem, rootItem, stateItem } from "./items.js";
import { makeRoom } from "./places.js";
import { compareAfterLists } from "./rejudging.js";
import { hasTargets } from "./relay.js";
import { keep } from "./restart.js";
import type { Step, SyncState } from "./state.js";
import { forgetRelay, placeTheRefused } from "./targets.js";
import { log } from "./telling.js";
import type { Repo } from "./wanted.js";
import { makeFresh } from "./words.js";

export function tidy(state: SyncState, step: Step): void {
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
