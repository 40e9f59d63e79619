// Places go to the useful (spec "Truth about oneself"). Under the caps who is there first stays; once a minute, relays
// that are dead or naughty, and then relays that brought nothing new for a month, give way to relays that found no
// place. Where all are useful, an owner without its share gets a place from the one who has most to itself. Who gave
// way does not push others out for a day.

import { disconnect } from "./connection.js";
import type { Relay } from "./relay.js";
import type { ListedRelay } from "./relays-of.js";
import type { Step, SyncState } from "./state.js";
import { capAgainst, forgetRelay, placeAt, takeAway } from "./targets.js";
import { log } from "./telling.js";
import type { Repo } from "./wanted.js";

/** 0: not useful, 1: hardly; undefined: useful. */
function uselessness({ health, config }: SyncState, relay: Relay, { now }: Step): 0 | 1 | undefined {
  if (relay.bootstrap) return undefined;
  if (relay.status !== "connected" && health.isHopeless(relay.key, now)) return 0;
  return now.monotonicMs - relay.lastNewMs > config.uselessAfterMs ? 1 : undefined;
}

export function makeRoom(state: SyncState, step: Step): void {
  if (state.unplaced.size === 0) return;
  const useless: Relay[][] = [[], []];
  for (const relay of state.relays.values()) {
    const rank = uselessness(state, relay, step);
    if (rank !== undefined) useless[rank]!.push(relay);
  }
  const mayClaim = ({ key }: ListedRelay): boolean => state.health.mayClaim(key, step.now);
  claim(state, mayClaim, new Set(useless.flat()), state.config.maxReplacedAtOnce, step);
}

/** After a restart: who had a place before has it again, whoever our own history told of first. */
export function giveBackPlaces(state: SyncState, step: Step): void {
  const had = new Set(state.keptRelays.keys());
  const leaving = [...state.relays.values()].filter((relay) => !relay.bootstrap && !relay.kept);
  if (had.size > 0) claim(state, ({ key }) => had.has(key), new Set(leaving), Number.POSITIVE_INFINITY, step);
}

type IsClaimant = (listed: ListedRelay) => boolean;

function claim(state: SyncState, isClaimant: IsClaimant, leaving: Set<Relay>, most: number, step: Step): void {
  let left = most;
  for (const coordinate of [...state.unplaced]) {
    const repo = state.wanted.repos.get(coordinate);
    for (const listed of repo?.listed ?? []) {
      if (!repo || left === 0) return;
      if (isPlaced(state, repo, listed) || !isClaimant(listed)) continue;
      if (!makeRoomFor(state, repo, listed, leaving, step)) continue;
      left -= 1;
      placeAt(state, repo, listed, step);
    }
    if (repo?.listed.every((listed) => isPlaced(state, repo, listed))) state.unplaced.delete(coordinate);
  }
}

function isPlaced({ relays }: SyncState, repo: Repo, { key }: ListedRelay): boolean {
  const relay = relays.get(key);
  return relay !== undefined && repo.placed.has(relay.ix);
}

/** Every cap that stands against it must have somebody who gives way. */
function makeRoomFor(state: SyncState, repo: Repo, listed: ListedRelay, leaving: Set<Relay>, step: Step): boolean {
  for (let cap = capAgainst(state, repo, listed); cap !== undefined; cap = capAgainst(state, repo, listed)) {
    const relay = [...leaving].find((one) => {
      if (cap === "host") return one.host === listed.host;
      if (cap === "owner") return state.byOwner.get(repo.owner)?.has(one.ix) ?? false;
      return cap === "all" || (one.fullRepos === 0 && one.waitingRepos > 0);
    });
    const goes = relay ?? (cap === "all" ? oneTooMany(state, repo.owner) : undefined);
    if (!goes) return false;
    leaving.delete(goes);
    giveWay(state, goes, cap === "owner" ? repo.owner : undefined, step);
  }
  return true;
}

/** A relay that only the owner with most relays lists, if that owner has more than its share and the claimant less. */
function oneTooMany(state: SyncState, claimant: string): Relay | undefined {
  const owners = state.byOwner.size + (state.byOwner.has(claimant) ? 0 : 1);
  const share = Math.max(1, Math.floor(state.config.maxRelays / owners));
  if ((state.byOwner.get(claimant)?.size ?? 0) >= share) return undefined;
  let most: ReadonlyMap<number, number> | undefined;
  for (const [owner, relays] of state.byOwner) {
    if (owner !== claimant && relays.size > Math.max(share, most?.size ?? 0)) most = relays;
  }
  for (const [ix, repos] of most ?? []) {
    const relay = state.byIx[ix];
    if (relay && !relay.bootstrap && relay.fullRepos + relay.waitingRepos === repos) return relay;
  }
  return undefined;
}

/** `owner`: only that owner's repositories leave it. */
function giveWay(state: SyncState, relay: Relay, owner: string | undefined, step: Step): void {
  for (const repo of state.wanted.repos.values()) {
    if (!repo.placed.has(relay.ix) || (owner !== undefined && repo.owner !== owner)) continue;
    takeAway(state, repo, relay);
    state.unplaced.add(repo.coordinate);
  }
  state.health.of(relay.key).claimNotBeforeMs = step.now.monotonicMs + state.config.dayMs;
  if (relay.fullRepos + relay.waitingRepos > 0) return;
  disconnect(state, relay, step);
  step.out.push({ type: "dropKept", relay: relay.key });
  log(step, "info", "relay-gave-way", relay);
  forgetRelay(state, relay);
}
