// Whether everything a relay has for us is here (spec "Truth about oneself"), and when each repository was last
// compared with it and nothing was missing here. What is shown of a relay comes from this file, so it must never say
// more than is known.

import { type Item, indexOf, layerOf, layers, phaseOf, phases, repositoryItem, rootItem, stateItem } from "./items.js";
import type { Job } from "./job.js";
import type { RelayKey, Sides } from "./messages.js";
import { type Compared, type Relay, urlOf } from "./relay.js";
import type { SyncState } from "./state.js";
import type { Repo } from "./wanted.js";

/** A repository's copy at one relay. */
export interface Copy {
  readonly relay: RelayKey;
  readonly url: string | undefined;
  readonly connected: boolean;
  /** Nothing of this repository is known to be missing here now. */
  readonly inStep: boolean;
  readonly compared: Compared | undefined;
}

/** Live without a gap, and nothing asked for that has not been answered and judged. */
function isCaughtUp(relay: Relay, nowMs: number): boolean {
  const isOverdue = Object.values(relay.turns).some((turn) => turn.round || (turn.items > 0 && turn.dueMs <= nowMs));
  const asked = relay.jobs.length + relay.sweeps.length + relay.direct.length + relay.owed.length;
  const inFlight = asked + relay.offersInFlight;
  const isLive = relay.status === "connected" && relay.good && !relay.gaveUpIds;
  return isLive && !isOverdue && inFlight + relay.held.length === 0;
}

/** A repository that has used up its day lacks what came after. */
const isCutShort = (state: SyncState, relay: Relay): boolean =>
  [...state.budgets.over].some((account) =>
    [...state.wanted.reposOf(account)].some((repo) => repo.placed.has(relay.ix)),
  );

export const isInStep = (state: SyncState, relay: Relay, nowMs: number): boolean =>
  isCaughtUp(relay, nowMs) && relay.confirmedItems === relay.items.size && !isCutShort(state, relay);

const isConfirmed = (relay: Relay, item: Item): boolean => phaseOf(relay.items.get(item)) === phases.confirmed;

/** A bootstrap relay that is asked for all states has no item for this repository's. */
function isWholeAt(relay: Relay, repo: Repo): boolean {
  if (relay.confirmedItems === relay.items.size) return true;
  const hasState = !relay.items.has(stateItem(repo.ix)) || isConfirmed(relay, stateItem(repo.ix));
  if (!hasState || !isConfirmed(relay, repositoryItem(repo.ix))) return false;
  for (const root of repo.roots) if (!isConfirmed(relay, rootItem(root))) return false;
  return true;
}

function reposOf({ wanted }: SyncState, item: Item): readonly Repo[] {
  if (layerOf(item) === layers.roots) return wanted.reposOfRoot(indexOf(item));
  const repo = wanted.repo(indexOf(item));
  return repo ? [repo] : [];
}

const exclusiveOr = (a: string, b: string): string =>
  (BigInt(`0x${a || "0"}`) ^ BigInt(`0x${b || "0"}`)).toString(16).padStart(Math.max(a.length, b.length), "0");

/** What several sessions over one thing said, as one. */
export function addSides(a: Sides | undefined, b: Sides | undefined): Sides | undefined {
  if (!a || !b) return a ?? b;
  const side = (name: "ours" | "theirs") => ({
    count: a[name].count + b[name].count,
    fingerprint: exclusiveOr(a[name].fingerprint, b[name].fingerprint),
  });
  return { ours: side("ours"), theirs: side("theirs"), theyLack: a.theyLack + b.theyLack };
}

/** A batch was confirmed: its repositories are looked at when the round has ended. */
export function noteBatch(state: SyncState, relay: Relay, job: Job): void {
  const repos = new Set<number>();
  for (const item of job.items) {
    for (const { ix, placed } of reposOf(state, item)) if (placed.has(relay.ix)) repos.add(ix);
  }
  // What the relay claims to have and does not send is missing here.
  if (job.undelivered > 0) for (const ix of repos) relay.unclean.add(ix);
  // Numbers of several repositories together say nothing about one.
  const sides = repos.size === 1 && job.method === "negentropy" ? job.sides : undefined;
  for (const ix of repos) relay.comparing.set(ix, addSides(relay.comparing.get(ix), sides));
}

/** The round has ended and what it brought is judged: which repositories lack nothing. */
export function noteCompared(state: SyncState, relay: Relay, cleanWallMs: number): void {
  for (const [ix, sides] of relay.comparing) {
    const repo = state.wanted.repo(ix);
    if (repo?.level !== "full" || !repo.placed.has(relay.ix) || state.budgets.cutsShort(repo)) continue;
    if (isWholeAt(relay, repo) && !relay.unclean.has(ix)) relay.compared.set(ix, { cleanWallMs, sides });
  }
  relay.comparing.clear();
  relay.unclean.clear();
}

export function copiesOf(state: SyncState, coordinate: string, nowMs: number): Copy[] {
  const repo = state.wanted.repos.get(coordinate);
  return [...(repo?.placed ?? [])].flatMap((ix) => {
    const relay = state.byIx[ix];
    if (!repo || !relay) return [];
    const inStep = isCaughtUp(relay, nowMs) && isWholeAt(relay, repo) && !state.budgets.cutsShort(repo);
    const connected = relay.status === "connected";
    return { relay: relay.key, url: urlOf(relay), connected, inStep, compared: relay.compared.get(repo.ix) };
  });
}
