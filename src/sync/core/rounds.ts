// When a relay is asked, and how much in a while (spec "Truth about oneself", Pacing). Full syncs a few at a time over all
// relays, because hundreds that begin at once would have us read our own store for all of them together; requests to
// one relay in turns; bytes of history over all relays; live is open before and beside that. And what is asked for again
// by the clock: layer 4, which answers comments and statuses, every 23–25 h whatever links do; deletions and vanish
// requests (kinds 5 and 62), hourly by author; items without a live filter in turn, roots every 6 h, repos hourly, outboxes
// every 55 min.

import { groupsOf } from "../../base/collections.js";
import { kinds, type Pubkey } from "../../nostr/event.js";
import { hourMs, lookbackMs, secondMs } from "./config.js";
import { LayerFour, type Relay, type SyncState, type Turn } from "./core-state.js";
import { isSweeping, sweepOver } from "./items.js";
import { indexOf, type Layer, layerOf, layers, type Related, repositoryItem, slotOf, slots, type Word } from "./job.js";
import type { Input } from "./messages.js";

/** Whether a batch may be sent: outside a full sync always, within one when it is this relay's turn. */
export function hasTurn(state: SyncState, relay: Relay): boolean {
  const { fullSyncs, fullSyncQueue, config } = state;
  if (!relay.isInFullSync || fullSyncs.has(relay)) return true;
  if (fullSyncs.size >= config.syncMaxFullSyncs) {
    fullSyncQueue.add(relay);
    return false;
  }
  fullSyncQueue.delete(relay);
  fullSyncs.set(relay, state.now.monotonicMs);
  return true;
}

/** The round or the link has ended. */
export function giveUpTurn(state: SyncState, relay: Relay): void {
  state.fullSyncQueue.delete(relay);
  if (state.fullSyncs.delete(relay)) callNext(state);
}

/** Relays that have to be fetched from for the first time come before those that are merely compared again. */
function callNext({ fullSyncQueue, touched }: SyncState): void {
  const waiting = [...fullSyncQueue];
  const next = waiting.find((relay) => relay.round === "startup") ?? waiting[0];
  if (next) touched.add(next);
}

/** What is under way at a slow relay goes on; its next batch waits for another turn. */
export function passTurnsOn(state: SyncState, nowMs: number): void {
  const { fullSyncs, fullSyncQueue, config } = state;
  for (const [relay, sinceMs] of fullSyncs) {
    if (fullSyncQueue.size === 0) return;
    if (nowMs - sinceMs < config.fullSyncTurnMs) continue;
    fullSyncs.delete(relay);
    callNext(state);
  }
}

/** The next request waits until what history brought is within its share: nobody's clock runs meanwhile. */
export function noteDownload(state: SyncState, bytes: number, nowMs: number): void {
  const tookMs = (bytes * secondMs) / (state.config.syncBytesPerSec ?? Number.POSITIVE_INFINITY);
  state.pacedUntilMs = Math.max(state.pacedUntilMs, nowMs) + tookMs;
}

const dayMs = 24 * hourMs;

/** When the next daily sync is due: 23–25 h from now, or before that in the quiet hours, if there are any. */
export function nextDailyMs(
  { config }: Pick<SyncState, "config">,
  { now, random }: Pick<SyncState, "now" | "random">,
): number {
  const waitMs =
    config.syncDailyMinHours * hourMs +
    random() * (config.syncDailyMaxHours * hourMs - config.syncDailyMinHours * hourMs);
  const { syncQuietHours: quietHours } = config;
  if (!quietHours) return now.monotonicMs + waitMs;
  const lengthMs = ((quietHours.to - quietHours.from + 24) % 24 || 24) * hourMs;
  const sinceQuietMs = (((now.wallMs + waitMs - quietHours.from * hourMs) % dayMs) + dayMs) % dayMs;
  const movedMs = waitMs - sinceQuietMs + random() * lengthMs;
  const stays = sinceQuietMs < lengthMs || movedMs < (config.syncDailyMinHours * hourMs) / 4;
  return now.monotonicMs + (stays ? waitMs : movedMs);
}

/** It is asked what participants wrote: nobody waits for that, so that not even its first time is an exception. */
export const isAtOutbox = (relay: Relay): boolean => relay.jobs.some(({ layer }) => layer === layers.outbox);

/** It is asked once more for what failed. */
export const isRetrying = (relay: Relay): boolean => relay.jobs.some(({ isRetry }) => isRetry);

/** A request goes out. */
export function noteRequest({ config }: SyncState, relay: Relay, nowMs: number): void {
  if (relay.isInFullSync && !isAtOutbox(relay) && !isRetrying(relay)) return;
  if (nowMs >= relay.turnMs + config.requestTurnMs) {
    relay.turnMs = nowMs;
    relay.askedInTurn = 0;
  }
  relay.askedInTurn += 1;
}

/** When the relay may be asked again by this rule; past: now. */
export const nextTurnMs = ({ config }: SyncState, relay: Relay): number =>
  relay.askedInTurn < config.requestsPerTurn ? 0 : relay.turnMs + config.requestTurnMs;

/**
 * Layer 4. What is left of a round goes on with the next link. The core does not know these events; the shell looks
 * them up in the store, a hundred repositories at a time. Who wrote them is kept for the hourly look at deletions.
 * Answers the next group to ask for; begins a round that is due.
 */
export function takeRelated(state: SyncState, relay: Relay): Related | undefined {
  const nowMs = state.now.monotonicMs;
  if (!relay.layerFour) {
    if (relay.fourDueMs <= nowMs) relay.layerFour = new LayerFour("everything", repositoriesOf(relay), nowMs);
    else if (relay.deletions.dueMs <= nowMs && !relay.authors)
      relay.layerFour = new LayerFour("authors", repositoriesOf(relay), nowMs);
  }
  return takeOfRound(state, relay) ?? takeDeletions(state, relay);
}

function repositoriesOf(relay: Relay): number[] {
  const repos: number[] = [];
  for (const item of relay.items.keys()) if (layerOf(item) === layers.repositories) repos.push(indexOf(item));
  return repos;
}

/** Asks the store for more when nothing is ready. */
function takeOfRound(state: SyncState, relay: Relay): Related | undefined {
  const four = relay.layerFour;
  if (!four) return undefined;
  const ready = four.ready.shift();
  if (ready) return ready;
  const nowMs = state.now.monotonicMs;
  if (four.request !== undefined && nowMs - four.requestedMs < state.config.syncHistorySilenceSecs * secondMs)
    return undefined;
  if (four.request === undefined && four.after === undefined) {
    const perFilter = state.config.syncMaxTagsPerFilter;
    const coordinates: string[] = [];
    while (coordinates.length < perFilter && four.repos.length > 0) {
      const repo = state.wanted.repo(four.repos.pop()!);
      if (repo && relay.items.has(repositoryItem(repo.ix))) coordinates.push(repo.coordinate);
    }
    if (coordinates.length === 0) {
      // Done, unless a group is still on its way and may come back.
      const isRunning = relay.jobs.some((job) => job.related && job.related.since === undefined);
      if (!isRunning) endRound(state, relay, four);
      return undefined;
    }
    four.coordinates = coordinates;
  }
  four.request = state.nextJob++;
  four.requestedMs = nowMs;
  state.out.push({
    type: "lookUpRelated",
    relay: relay.key,
    request: four.request,
    coordinates: four.coordinates,
    ...(four.after !== undefined && { after: four.after }),
  });
  return undefined;
}

function endRound({ config, random }: SyncState, relay: Relay, four: LayerFour): void {
  relay.layerFour = undefined;
  relay.authors = four.authors;
  if (four.about === "authors") return;
  // From its beginning: a round at a slow relay takes hours, and the next must not come later for it.
  relay.fourDueMs =
    four.begunMs +
    config.syncDailyMinHours * hourMs +
    random() * (config.syncDailyMaxHours * hourMs - config.syncDailyMinHours * hourMs);
}

export function onRelated(state: SyncState, relay: Relay, input: Extract<Input, { type: "related" }>): void {
  const four = relay.layerFour;
  if (four?.request !== input.request) return;
  four.request = undefined;
  four.after = input.after;
  for (const author of input.authors) {
    if (four.authors.size < state.config.maxAuthors) four.authors.add(state.sharedAuthor(author));
  }
  if (four.about === "authors") return;
  const size = state.config.syncMaxTagsPerFilter;
  for (const ids of groupsOf(input.ids, size)) four.ready.push({ ids, authors: [], failures: 0 });
  for (const authors of groupsOf(input.authors, size)) four.ready.push({ ids: [], authors, failures: 0 });
}

/** Back to where it was taken from: it could not be sent, or its link is gone. */
export function putBack(relay: Relay, related: Related): void {
  if (related.since !== undefined) relay.deletions.ready.unshift(related);
  else relay.layerFour?.ready.unshift(related);
}

/** A few times; then it is left to the next round, which begins where this one did. */
export function tryRelatedAgain(state: SyncState, relay: Relay, related: Related): void {
  related.failures += 1;
  if (related.failures <= state.config.syncItemMaxFailures) putBack(relay, related);
  else if (related.since !== undefined) relay.deletions.failed = true;
}

/** When layer 4 or the deletions want to be looked at; what is under way is looked at with every answer. */
export function relatedDueMs({ config }: SyncState, { layerFour, deletions, fourDueMs }: Relay): number {
  if (layerFour?.request !== undefined) return layerFour.requestedMs + config.syncHistorySilenceSecs * secondMs;
  const isRunning = layerFour !== undefined || deletions.startedWallMs !== undefined;
  return isRunning ? Number.POSITIVE_INFINITY : Math.min(fourDueMs, deletions.dueMs);
}

const deletionKinds: readonly number[] = [kinds.deletion, kinds.vanish];

/**
 * Deletions: a deleted comment names an event that no live filter of ours asks for. At most a thousand authors a round,
 * the next ones an hour later, each asked from where the last pass over all of them began. Answers the next group of
 * authors; begins a round that is due, and ends one that is answered.
 */
function takeDeletions(state: SyncState, relay: Relay): Related | undefined {
  const { deletions } = relay;
  if (deletions.startedWallMs === undefined) {
    if (deletions.dueMs > state.now.monotonicMs || !relay.authors) return undefined;
    beginDeletions(state, relay);
  }
  const ready = deletions.ready.shift();
  if (!ready && !relay.jobs.some((job) => job.related?.since !== undefined)) endDeletions(state, relay);
  return ready;
}

function beginDeletions(state: SyncState, relay: Relay): void {
  const { config, wanted } = state;
  const { deletions } = relay;
  deletions.startedWallMs = state.now.wallMs;
  deletions.failed = false;
  if (deletions.at === 0) {
    // Owners of repositories that came since the authors were looked up belong to them.
    const all = new Set<Pubkey>(relay.authors);
    for (const item of relay.items.keys()) {
      const owner = layerOf(item) === layers.repositories ? wanted.repo(indexOf(item))?.owner : undefined;
      if (owner !== undefined) all.add(owner);
    }
    deletions.all = [...all];
    deletions.passWallMs = state.now.wallMs;
  }
  const fromMs = (deletions.sinceWallMs ?? state.now.wallMs - config.syncDailyMaxHours * hourMs) - lookbackMs(config);
  const since = Math.max(0, Math.floor(fromMs / 1000));
  const inRound = deletions.all.slice(deletions.at, deletions.at + config.deletionAuthorsPerRound);
  for (const authors of groupsOf(inRound, config.syncMaxTagsPerFilter))
    deletions.ready.push({ ids: [], authors, failures: 0, kinds: deletionKinds, since });
}

/** A round that failed is repeated an hour later; only success moves on. */
function endDeletions({ config, now }: SyncState, relay: Relay): void {
  const { deletions } = relay;
  deletions.startedWallMs = undefined;
  deletions.dueMs = now.monotonicMs + config.deletionsMs;
  if (deletions.failed) return;
  deletions.at += config.deletionAuthorsPerRound;
  if (deletions.at < deletions.all.length) return;
  deletions.at = 0;
  deletions.sinceWallMs = deletions.passWallMs;
}

const never = Number.POSITIVE_INFINITY;

/**
 * A round ends when all of it was answered; only then does the next one begin later. What failed, or was cut off with
 * its link, is asked again from where the round began (history.ts).
 */
export function rotate(state: SyncState, relay: Relay): void {
  const { syncRotateRootsHours, syncRotateReposHours } = state.config;
  takeTurn(state, relay, relay.turns.roots, syncRotateRootsHours * hourMs, [layers.roots]);
  takeTurn(state, relay, relay.turns.repos, syncRotateReposHours * hourMs, [layers.states, layers.repositories]);
  takeTurn(state, relay, relay.turns.outbox, state.config.outboxPassMs, [layers.outbox]);
}

function takeTurn(state: SyncState, relay: Relay, turn: Turn, everyMs: number, ofLayers: readonly Layer[]): void {
  const { now } = state;
  if (isSweeping(relay, "rotating", ofLayers)) return;
  if (turn.round) {
    turn.sinceWallMs = Math.min(turn.round.wallMs, now.wallMs);
    turn.dueMs = turn.round.monotonicMs + everyMs;
    turn.round = undefined;
  }
  if (turn.items === 0) turn.dueMs = never;
  else if (turn.dueMs === never) turn.dueMs = now.monotonicMs + everyMs;
  if (turn.dueMs > now.monotonicMs) return;
  turn.dueMs = never;
  turn.round = now;
  const fromMs = (turn.sinceWallMs === 0 ? now.wallMs - 2 * everyMs : turn.sinceWallMs) - lookbackMs(state.config);
  const isMeant = (word: Word): boolean => slotOf(word) === slots.rotating;
  for (const layer of ofLayers) sweepOver(relay, "rotating", Math.floor(fromMs / 1000), layer, isMeant);
}
