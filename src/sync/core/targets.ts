// Targets: wanted turned inside out, relay → items. Applied once a window, at the cost of what changed. Keeps the caps
// on relays (spec "Following our own relay" 3 and 5): the relay that is there first stays; a relay that found no place
// is tried again when another has left. Places go to the useful (spec "Truth about oneself"): once a minute, relays
// that are dead or naughty, and then relays that brought nothing new for a month, give way to relays that found no
// place. Where all are useful, an owner without its share gets a place from the owner who has most to itself. A relay
// that gave way does not push others out for a day.

import { disconnect } from "./connection.js";
import {
  isListed,
  isWaitingOnly,
  log,
  type Relay,
  repoCount,
  type SyncState,
  waitingOnlyRelays,
} from "./core-state.js";
import { addItem, removeItem } from "./items.js";
import { allStatesItem, announcementsItem, layerOf, layers, repositoryItem, rootItem, stateItem } from "./job.js";
import { addRelay, endPassing, forgetRelay, noteUrl } from "./relay-table.js";
import { type Changes, type ListedRelay, listedRelay, type Repo } from "./wanted.js";

/** The cap that stands against a listing. */
function capAgainst(
  state: SyncState,
  repo: Repo,
  listed: ListedRelay,
): "owner" | "waiting" | "host" | "all" | undefined {
  const { config } = state;
  const known = state.relays.get(listed.key);
  const owners = state.byOwner.get(repo.owner);
  if (!(known && owners?.has(known.ix)) && (owners?.size ?? 0) >= config.syncMaxRelaysPerOwner) return "owner";
  const addsWaitingOnly = repo.level === "state-only" && !(known && isListed(known));
  if (addsWaitingOnly && waitingOnlyRelays(state) >= config.syncMaxRelaysForWaiting) return "waiting";
  if (known && !state.outbox.unlisted.has(known)) return undefined;
  if (listedOn(state, listed.host) >= config.syncMaxRelaysPerHost) return "host";
  return state.relays.size - state.outbox.unlisted.size >= config.syncMaxRelays ? "all" : undefined;
}

/** Relays on a host that announcements list: those that only participants name take no place from them. */
function listedOn({ byHost, byIx, outbox }: SyncState, host: string): number {
  let count = 0;
  for (const ix of byHost.get(host) ?? []) if (!outbox.unlisted.has(byIx[ix]!)) count += 1;
  return count;
}

/** The relay for a listing, or nothing when a cap stands against it. */
const relayFor = (state: SyncState, repo: Repo, listed: ListedRelay): Relay | undefined =>
  capAgainst(state, repo, listed) === undefined
    ? (state.relays.get(listed.key) ?? addRelay(state, listed, false))
    : undefined;

function place(state: SyncState, repo: Repo, relay: Relay, url: ListedRelay["url"]): void {
  if (!repo.placed.has(relay.ix)) {
    repo.placed.add(relay.ix);
    relay.repos[repo.level] += 1;
    const owners = state.byOwner.get(repo.owner) ?? new Map<number, number>();
    owners.set(relay.ix, (owners.get(relay.ix) ?? 0) + 1);
    state.byOwner.set(repo.owner, owners);
  }
  noteUrl(relay, url);
  becomeListed(state, relay);
  addRepoItems(state, relay, repo);
}

function becomeListed(state: SyncState, relay: Relay): void {
  state.outbox.unlisted.delete(relay);
  addItem(state, relay, announcementsItem);
}

/** It may still be asked what participants write there; where their lists are it was asked only because it was listed. */
function leaveToParticipants(state: SyncState, relay: Relay): void {
  if (isListed(relay)) return;
  if (relay.direct.size === 0) endPassing(relay);
  if (relay.outbox.size === 0) return;
  removeItem(state, relay, announcementsItem);
  state.outbox.unlisted.add(relay);
}

function addRepoItems(state: SyncState, relay: Relay, repo: Repo): void {
  if (!relay.bootstrap || state.bootstrapNamesStates) addItem(state, relay, stateItem(repo.ix));
  if (repo.level !== "full") return;
  addItem(state, relay, repositoryItem(repo.ix));
  for (const root of repo.roots) addItem(state, relay, rootItem(root));
}

function unplace(state: SyncState, repo: Repo, relay: Relay): void {
  repo.placed.delete(relay.ix);
  relay.repos[repo.placedLevel] -= 1;
  const owners = state.byOwner.get(repo.owner);
  const left = (owners?.get(relay.ix) ?? 1) - 1;
  if (left > 0) owners?.set(relay.ix, left);
  else owners?.delete(relay.ix);
  if (owners?.size === 0) state.byOwner.delete(repo.owner);
  if (!relay.bootstrap || repo.gone) removeItem(state, relay, stateItem(repo.ix));
  removeItem(state, relay, repositoryItem(repo.ix));
  relay.compared.delete(repo.ix);
  for (const root of repo.roots) removeRootAt(state, relay, root);
  leaveToParticipants(state, relay);
}

/** A root stays when another repo of the relay has it too. */
function removeRootAt(state: SyncState, relay: Relay, root: number): void {
  const kept = state.wanted.reposOfRoot(root).some((repo) => repo.level === "full" && repo.placed.has(relay.ix));
  if (!kept) removeItem(state, relay, rootItem(root));
}

function applyRepo(state: SyncState, repo: Repo): boolean {
  const keep = new Set<number>();
  let refused = false;
  let left = false;
  if (!repo.gone) {
    // A level that changed is counted anew on every relay.
    for (const ix of repo.placed) {
      state.byIx[ix]!.repos[repo.placedLevel] -= 1;
      state.byIx[ix]!.repos[repo.level] += 1;
    }
    repo.placedLevel = repo.level;
    for (const listed of repo.listed) {
      const known = state.relays.get(listed.key);
      const relay = known && repo.placed.has(known.ix) ? known : relayFor(state, repo, listed);
      if (relay) {
        place(state, repo, relay, listed.url);
        keep.add(relay.ix);
      } else refused = true;
    }
  }
  for (const ix of [...repo.placed]) {
    if (keep.has(ix)) continue;
    unplace(state, repo, state.byIx[ix]!);
    left = true;
  }
  if (refused) state.unplaced.add(repo.coordinate);
  else state.unplaced.delete(repo.coordinate);
  for (const relay of state.bootstrap) {
    if (repo.gone) removeItem(state, relay, stateItem(repo.ix));
    else if (state.bootstrapNamesStates) addItem(state, relay, stateItem(repo.ix));
  }
  return left;
}

/** At the start, and when the list has changed: those on it are followed whatever they hold, the others as any relay. */
export function followBootstrap(state: SyncState): void {
  const wanted = new Set<Relay>();
  for (const url of state.config.bootstrap) {
    const listed = listedRelay(url);
    if (!listed || state.config.ownServices.includes(listed.key)) continue;
    const relay = state.relays.get(listed.key) ?? addRelay(state, listed, true);
    wanted.add(relay);
    if (state.bootstrap.has(relay)) continue;
    noteUrl(relay, listed.url);
    becomeBootstrap(state, relay);
  }
  for (const relay of [...state.bootstrap]) if (!wanted.has(relay)) becomeOrdinary(state, relay);
}

function becomeBootstrap(state: SyncState, relay: Relay): void {
  relay.bootstrap = true;
  // Whatever it was before: these are never left alone.
  state.health.naughty.forgive(relay.key);
  state.bootstrap.add(relay);
  becomeListed(state, relay);
  if (!state.bootstrapNamesStates) takeAllStates(state, relay);
  else for (const repo of state.wanted.repos.values()) addItem(state, relay, stateItem(repo.ix));
  state.touched.add(relay);
}

function becomeOrdinary(state: SyncState, relay: Relay): void {
  relay.bootstrap = false;
  state.bootstrap.delete(relay);
  removeItem(state, relay, allStatesItem);
  for (const repo of state.wanted.repos.values()) {
    if (repo.placed.has(relay.ix)) addItem(state, relay, stateItem(repo.ix));
    else removeItem(state, relay, stateItem(repo.ix));
  }
  leaveToParticipants(state, relay);
  state.touched.add(relay);
}

function takeAllStates(state: SyncState, relay: Relay): void {
  for (const item of relay.items.keys()) if (layerOf(item) === layers.states) removeItem(state, relay, item);
  addItem(state, relay, allStatesItem);
}

/** Named one by one up to a thousand, then all states; back only well below, so that it does not swing. */
function nameStatesOrTakeAll(state: SyncState): void {
  const repos = state.wanted.repos.size;
  const max = state.config.syncMaxStateIdentifiers;
  const named = state.bootstrapNamesStates ? repos <= max : repos < max * 0.8;
  if (named === state.bootstrapNamesStates) return;
  state.bootstrapNamesStates = named;
  for (const relay of state.bootstrap) {
    if (named) {
      removeItem(state, relay, allStatesItem);
      for (const repo of state.wanted.repos.values()) addItem(state, relay, stateItem(repo.ix));
    } else takeAllStates(state, relay);
  }
}

/**
 * One window: all changes of wanted, once, which it answers. `state.touched` then holds the relays whose targets changed.
 */
export function applyWindow(state: SyncState): Changes {
  const changes = state.wanted.takeChanges();
  let left = false;
  for (const repo of changes.repos) left = applyRepo(state, repo) || left;
  for (const { root, repo } of changes.rootsAdded) {
    if (repo.gone || repo.level !== "full" || state.wanted.rootId(root) === undefined) continue;
    for (const ix of repo.placed) addItem(state, state.byIx[ix]!, rootItem(root));
  }
  for (const { root, repos } of changes.rootsRemoved) {
    for (const repo of repos) for (const ix of repo.placed) removeItem(state, state.byIx[ix]!, rootItem(root));
  }
  state.wanted.release(changes);
  nameStatesOrTakeAll(state);
  keepWaitingWithinCap(state);
  if (left) placeTheRefused(state);
  return changes;
}

export function placeTheRefused(state: SyncState): void {
  for (const coordinate of [...state.unplaced]) {
    const repo = state.wanted.repos.get(coordinate);
    if (repo) applyRepo(state, repo);
    else state.unplaced.delete(coordinate);
  }
}

/** When full repos leave, relays may be left with waiting ones only, and these have a cap of their own. */
function keepWaitingWithinCap(state: SyncState): void {
  for (const relay of state.relays.values()) {
    if (waitingOnlyRelays(state) <= state.config.syncMaxRelaysForWaiting) return;
    if (!isWaitingOnly(relay)) continue;
    for (const repo of state.wanted.repos.values()) {
      if (!repo.placed.has(relay.ix)) continue;
      unplace(state, repo, relay);
      state.unplaced.add(repo.coordinate);
    }
  }
}

/** 0: not useful, 1: hardly; undefined: useful. */
function uselessness({ health, config, now }: SyncState, relay: Relay): 0 | 1 | undefined {
  if (relay.bootstrap || !isListed(relay)) return undefined;
  if (relay.status !== "connected" && health.isHopeless(relay.key, now.monotonicMs)) return 0;
  return now.monotonicMs - relay.lastNewMs > config.uselessAfterMs ? 1 : undefined;
}

export function makeRoom(state: SyncState): void {
  if (state.unplaced.size === 0) return;
  const useless: Relay[][] = [[], []];
  for (const relay of state.relays.values()) {
    const rank = uselessness(state, relay);
    if (rank !== undefined) useless[rank]!.push(relay);
  }
  const mayClaim = ({ key }: ListedRelay): boolean => state.health.mayClaim(key, state.now.monotonicMs);
  claim(state, mayClaim, new Set(useless.flat()), state.config.maxReplacedAtOnce);
}

/** After a restart: who had a place before has it again, whoever our own history told of first. */
export function giveBackPlaces(state: SyncState): void {
  const had = new Set(state.keptRelays.keys());
  const leaving = [...state.relays.values()].filter((relay) => !relay.bootstrap && isListed(relay) && !relay.kept);
  if (had.size > 0) claim(state, ({ key }) => had.has(key), new Set(leaving), Number.POSITIVE_INFINITY);
}

type IsClaimant = (listed: ListedRelay) => boolean;

function claim(state: SyncState, isClaimant: IsClaimant, leaving: Set<Relay>, most: number): void {
  let left = most;
  for (const coordinate of [...state.unplaced]) {
    const repo = state.wanted.repos.get(coordinate);
    for (const listed of repo?.listed ?? []) {
      if (!repo || left === 0) return;
      if (isPlaced(state, repo, listed) || !isClaimant(listed)) continue;
      if (!makeRoomFor(state, repo, listed, leaving)) continue;
      left -= 1;
      const relay = relayFor(state, repo, listed);
      if (relay) place(state, repo, relay, listed.url);
    }
    if (repo?.listed.every((listed) => isPlaced(state, repo, listed))) state.unplaced.delete(coordinate);
  }
}

function isPlaced({ relays }: SyncState, repo: Repo, { key }: ListedRelay): boolean {
  const relay = relays.get(key);
  return relay !== undefined && repo.placed.has(relay.ix);
}

/** Every cap that stands against it must have somebody who gives way. */
function makeRoomFor(state: SyncState, repo: Repo, listed: ListedRelay, leaving: Set<Relay>): boolean {
  for (let cap = capAgainst(state, repo, listed); cap !== undefined; cap = capAgainst(state, repo, listed)) {
    const relay = [...leaving].find((one) => {
      if (cap === "host") return one.host === listed.host;
      if (cap === "owner") return state.byOwner.get(repo.owner)?.has(one.ix) ?? false;
      return cap === "all" || isWaitingOnly(one);
    });
    const goes = relay ?? (cap === "all" ? oneTooMany(state, repo.owner) : undefined);
    if (!goes) return false;
    leaving.delete(goes);
    giveWay(state, goes, cap === "owner" ? repo.owner : undefined);
  }
  return true;
}

/** A relay that only the owner with most relays lists, if that owner has more than its share and the claimant less. */
function oneTooMany(state: SyncState, claimant: string): Relay | undefined {
  const owners = state.byOwner.size + (state.byOwner.has(claimant) ? 0 : 1);
  const share = Math.max(1, Math.floor(state.config.syncMaxRelays / owners));
  if ((state.byOwner.get(claimant)?.size ?? 0) >= share) return undefined;
  let most: ReadonlyMap<number, number> | undefined;
  for (const [owner, relays] of state.byOwner) {
    if (owner !== claimant && relays.size > Math.max(share, most?.size ?? 0)) most = relays;
  }
  for (const [ix, repos] of most ?? []) {
    const relay = state.byIx[ix];
    if (relay && !relay.bootstrap && repoCount(relay) === repos) return relay;
  }
  return undefined;
}

/** `owner`: only that owner's repositories leave it. */
function giveWay(state: SyncState, relay: Relay, owner: string | undefined): void {
  for (const repo of state.wanted.repos.values()) {
    if (!repo.placed.has(relay.ix) || (owner !== undefined && repo.owner !== owner)) continue;
    unplace(state, repo, relay);
    state.unplaced.add(repo.coordinate);
  }
  state.health.of(relay.key).claimNotBeforeMs = state.now.monotonicMs + state.config.dayMs;
  if (repoCount(relay) + relay.outbox.size > 0) return;
  disconnect(state, relay);
  state.out.push({ type: "dropKept", relay: relay.key });
  log(state, "info", "relay-gave-way", relay);
  forgetRelay(state, relay);
}
