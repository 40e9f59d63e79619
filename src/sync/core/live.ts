// The live subscriptions of a connected relay (spec "Layers and filters"): opens, replaces, merges and reopens chunks,
// and what EOSE, CLOSED, a NOTICE, an answered challenge, the end of the link and new limits mean for them. A
// replacement is opened before the old one is closed, one at a time, so that the relay never sees more than three
// filters above the budget. One bad value is found by halves.

import type { Filter } from "../../nostr/filter.js";
import type { Meaning } from "./closed-reasons.js";
import { lookbackMs, retryDelayMs, secondMs } from "./config.js";
import { type Chunk, log, openFilters, type Relay, type SyncState } from "./core-state.js";
import { filterOf, liveCapacity, requestsOf, setSlot, tagsOf, valueBytes, valuesOf } from "./items.js";
import { indexOf, layers, phaseOf, phases, slots } from "./job.js";
import { addToChunk, mergeable, newChunk, placeItems } from "./live-set.js";
import { outboxLiveFilters } from "./outbox-filters.js";
import { halves } from "./paging.js";
import { learnLimit, learnValues } from "./query-answers.js";
import { noteRequest } from "./rounds.js";

export function unsubscribe(state: SyncState, relay: Relay, subs: readonly string[]): void {
  for (const subscription of subs) {
    if (!relay.liveSubs.delete(subscription)) continue;
    state.out.push({ type: "unsubscribe", relay: relay.key, link: relay.link, subscription });
  }
}

/** Values that left since are not in the new filters. */
function requestsFor(state: SyncState, relay: Relay, chunk: Chunk): Filter[][] {
  const bounds =
    relay.liveMode === "limit-0"
      ? { limit: 0 }
      : { since: Math.floor((state.now.wallMs - state.config.syncLiveLookbackSecs * secondMs) / 1000) };
  if (chunk.layer === layers.outbox) {
    const { filters, bytes } = outboxLiveFilters(state, relay, chunk, bounds);
    chunk.bytes = bytes;
    return requestsOf(state.config, relay, filters, bytes);
  }
  const values = valuesOf(state.wanted, chunk.items);
  chunk.bytes = values.reduce((sum, value) => sum + valueBytes(value), 0);
  const tags = tagsOf(chunk.layer, chunk.items);
  const filters =
    tags.length === 0
      ? [filterOf(chunk.layer, undefined, [], bounds)]
      : tags.map((tag) => filterOf(chunk.layer, tag, values, bounds));
  return requestsOf(state.config, relay, filters, chunk.bytes);
}

function send(state: SyncState, relay: Relay, chunk: Chunk, requests: readonly Filter[][]): void {
  chunk.subs = [];
  for (const filters of requests) {
    const subscription = `l${state.nextName++}`;
    state.out.push({ type: "subscribe", relay: relay.key, link: relay.link, subscription, filters });
    noteRequest(state, relay, state.now.monotonicMs);
    relay.liveSubs.set(subscription, { chunk, filters: filters.length });
    chunk.subs.push(subscription);
  }
  chunk.unanswered = [...chunk.subs];
  chunk.openedMs = state.now.monotonicMs;
  chunk.dirty = false;
  chunk.retryAtMs = 0;
  chunk.awaitsAuth = false;
}

function catchUp(state: SyncState, relay: Relay, chunk: Chunk): void {
  if (chunk.lostAtWallMs === undefined) return;
  const since = Math.floor((chunk.lostAtWallMs - lookbackMs(state.config)) / 1000);
  chunk.lostAtWallMs = undefined;
  const items = chunk.items.filter((item) => phaseOf(relay.items.get(item)) === phases.confirmed);
  if (items.length > 0) relay.sweeps.push({ source: "reconnect", since, layer: chunk.layer, items, notBeforeMs: 0 });
}

function removeChunk(relay: Relay, chunk: Chunk): void {
  relay.chunks = relay.chunks.filter((other) => other !== chunk);
}

function finishReplacement(state: SyncState, relay: Relay): void {
  const replacement = relay.replacement;
  if (!replacement) return;
  relay.replacement = undefined;
  unsubscribe(state, relay, replacement.oldSubs);
}

function replace(state: SyncState, relay: Relay, oldSubs: readonly string[], into: Chunk): void {
  send(state, relay, into, requestsFor(state, relay, into));
  relay.replacement = { into, oldSubs, deadlineMs: state.now.monotonicMs + state.config.liveReplaceTimeoutMs };
}

function merge(state: SyncState, relay: Relay, group: Chunk[]): void {
  const into = newChunk(relay, group[0]!.layer, false);
  for (const chunk of group) {
    for (const item of chunk.items) addToChunk(state, relay, into, item);
    if (chunk.lostAtWallMs !== undefined) {
      into.lostAtWallMs = Math.min(into.lostAtWallMs ?? Number.POSITIVE_INFINITY, chunk.lostAtWallMs);
    }
    removeChunk(relay, chunk);
  }
  const oldSubs = group.flatMap((chunk) => chunk.subs);
  replace(state, relay, oldSubs, into);
  catchUp(state, relay, into);
}

/** The relay has no subscription left for it. */
function leaveToRotation(state: SyncState, relay: Relay, chunk: Chunk): void {
  for (const item of chunk.items) setSlot(state, relay, item, slots.rotating);
  removeChunk(relay, chunk);
}

/** When an answer is overdue. A relay that never says EOSE is believed to listen after some tries. */
export const answerDueMs = (state: SyncState, { deafSinceMs }: Relay, chunk: Chunk): number =>
  deafSinceMs === undefined && chunk.unanswered.length > 0 && chunk.refusals < state.config.syncItemMaxFailures
    ? chunk.openedMs + state.config.syncHistorySilenceSecs * secondMs
    : Number.POSITIVE_INFINITY;

/** The chunk is not open any more; what comes meanwhile is caught up when it is. */
function closeChunk(state: SyncState, relay: Relay, chunk: Chunk): void {
  if (relay.replacement?.into === chunk) finishReplacement(state, relay);
  unsubscribe(state, relay, chunk.subs);
  chunk.subs = [];
  chunk.unanswered = [];
  chunk.lostAtWallMs ??= state.now.wallMs;
}

/** Tried again after a while that grows. */
export function delay(state: SyncState, chunk: Chunk): void {
  chunk.retryAtMs = state.now.monotonicMs + retryDelayMs(state.config, chunk.refusals);
  chunk.refusals += 1;
}

/** The relay may never have taken it: asked again later. */
function reopenLater(state: SyncState, relay: Relay, chunk: Chunk): void {
  closeChunk(state, relay, chunk);
  delay(state, chunk);
}

/** Brings what is open nearer to what shall be open. Call only when the relay may be asked. */
export function pumpLive(state: SyncState, relay: Relay): void {
  const { config } = state;
  const nowMs = state.now.monotonicMs;
  if (relay.replacement && relay.replacement.deadlineMs <= nowMs) finishReplacement(state, relay);
  for (const chunk of relay.chunks) if (answerDueMs(state, relay, chunk) <= nowMs) reopenLater(state, relay, chunk);
  placeItems(state, relay);
  for (const chunk of relay.chunks) if (chunk.items.length === 0) unsubscribe(state, relay, chunk.subs);
  if (relay.chunks.some((chunk) => chunk.items.length === 0)) {
    relay.chunks = relay.chunks.filter((chunk) => chunk.items.length > 0);
    placeItems(state, relay);
  }
  const budget = liveCapacity(config, relay);
  for (const chunk of [...relay.chunks]) {
    if (chunk.subs.length > 0 || chunk.retryAtMs > nowMs) continue;
    if (chunk.awaitsAuth) {
      // Nobody answered the challenge, or it did not help.
      chunk.awaitsAuth = false;
      delay(state, chunk);
      continue;
    }
    const requests = requestsFor(state, relay, chunk);
    const filters = requests.reduce((sum, request) => sum + request.length, 0);
    const fits =
      openFilters(relay) + filters <= budget.filters && relay.liveSubs.size + requests.length <= budget.subscriptions;
    if (fits) {
      send(state, relay, chunk, requests);
      catchUp(state, relay, chunk);
    } else if (!relay.replacement) leaveToRotation(state, relay, chunk);
  }
  if (relay.replacement) return;
  // Chunks are merged when somebody waits for the room.
  const group = relay.placingWaits ? mergeable(state, relay) : undefined;
  if (group) {
    merge(state, relay, group);
    return;
  }
  const changed = relay.chunks.find((chunk) => chunk.dirty && chunk.subs.length > 0);
  if (changed) replace(state, relay, changed.subs, changed);
}

/** History may begin: everything in targets is live, rotating, or waits for a retry. */
export function liveIsOpen(relay: Relay, nowMs: number): boolean {
  if (relay.unplaced.length > 0) return false;
  return relay.chunks.every((chunk) => (chunk.subs.length > 0 ? !chunk.dirty : chunk.retryAtMs > nowMs));
}

/** Nothing is missed at this moment. */
export const liveIsWhole = (relay: Relay): boolean =>
  relay.unplaced.length === 0 && relay.chunks.every((chunk) => chunk.subs.length > 0);

/** A NOTICE told us to slow down, and nobody knows which request it dropped. */
export function reopenUnanswered(state: SyncState, relay: Relay): void {
  for (const chunk of relay.chunks) if (chunk.unanswered.length > 0) reopenLater(state, relay, chunk);
}

export function onLiveEose(state: SyncState, relay: Relay, sub: string): void {
  const chunk = relay.liveSubs.get(sub)?.chunk;
  if (!chunk) return;
  chunk.refusals = 0;
  chunk.unanswered = chunk.unanswered.filter((other) => other !== sub);
  if (relay.replacement?.into === chunk && chunk.unanswered.length === 0) finishReplacement(state, relay);
}

export function onLiveClosed(state: SyncState, relay: Relay, sub: string, meaning: Meaning): void {
  const live = relay.liveSubs.get(sub);
  if (!live) return;
  const { chunk, filters } = live;
  relay.liveSubs.delete(sub);
  // An old subscription that was about to go.
  if (!chunk.subs.includes(sub)) return;
  closeChunk(state, relay, chunk);
  if (meaning === "rate-limited") return;
  if (meaning === "auth-required") {
    chunk.awaitsAuth = true;
    chunk.retryAtMs = state.now.monotonicMs + state.config.authTimeoutMs;
    return;
  }
  if (meaning === "too-many-filters" && filters > 1) {
    learnLimit(relay, { maxFilters: 1 });
    return;
  }
  const canHalve = chunk.layer !== layers.announcements && (meaning === "invalid" || meaning === "too-many-values");
  if (meaning === "too-many-values" && chunk.items.length > 1) {
    learnValues(relay, chunk.items.length);
    halve(state, relay, chunk);
    return;
  }
  if (relay.liveMode === "limit-0") {
    relay.liveMode = "since";
    return;
  }
  if (canHalve) halve(state, relay, chunk);
  else delay(state, chunk);
}

/** One bad value must not cost the others their live subscription. */
function halve(state: SyncState, relay: Relay, chunk: Chunk): void {
  if (chunk.items.length <= 1) {
    for (const item of chunk.items) log(state, "warn", "value-refused", relay, { index: indexOf(item) });
    leaveToRotation(state, relay, chunk);
    return;
  }
  removeChunk(relay, chunk);
  for (const items of halves(chunk.items)) {
    const half = newChunk(relay, chunk.layer, true);
    half.lostAtWallMs = chunk.lostAtWallMs;
    for (const item of items) addToChunk(state, relay, half, item);
  }
}

/** The challenge was answered: what was refused for it is asked again. */
export function onLiveAuth(relay: Relay): void {
  for (const chunk of relay.chunks) {
    if (!chunk.awaitsAuth) continue;
    chunk.awaitsAuth = false;
    chunk.retryAtMs = 0;
  }
}

/** The link is gone; which items are live together stays. */
export function liveLost(relay: Relay): void {
  relay.liveSubs.clear();
  relay.replacement = undefined;
  for (const chunk of relay.chunks) {
    chunk.subs = [];
    chunk.unanswered = [];
    chunk.retryAtMs = 0;
    chunk.awaitsAuth = false;
    chunk.refusals = 0;
    chunk.lostAtWallMs = undefined;
  }
}

/** The relay's stated limits are smaller than what is open: everything is placed anew. */
export function rebuildLive(state: SyncState, relay: Relay): void {
  const room = liveCapacity(state.config, relay);
  const fits =
    relay.chunks.every((chunk) => chunk.items.length <= room.values) &&
    openFilters(relay) <= room.filters &&
    relay.liveSubs.size <= room.subscriptions;
  if (fits) return;
  finishReplacement(state, relay);
  for (const chunk of relay.chunks) {
    unsubscribe(state, relay, chunk.subs);
    for (const item of chunk.items) {
      setSlot(state, relay, item, slots.unplaced);
      relay.unplaced.push(item);
    }
  }
  relay.chunks = [];
  relay.outboxMoved = true;
  relay.leastActive = Number.POSITIVE_INFINITY;
}
