// The live subscriptions of a connected relay: opens, replaces, merges and reopens chunks (spec "Layers and filters"). A replacement is opened before the old one is closed, one at a time, so that the relay never sees more
// than three filters above the budget.

import type { Filter } from "../../nostr/filter.js";
import { filterOf, requestsOf, tagsOf, valueBytes, valuesOf } from "./filters.js";
import { phaseOf, phases, slots } from "./items.js";
import { Sweep } from "./job.js";
import { addToChunk, mergeable, newChunk, placeItems } from "./live-set.js";
import { noteRequest } from "./pace.js";
import type { Chunk, Relay } from "./relay.js";
import { liveRoom } from "./room.js";
import type { Step, SyncState } from "./state.js";
import { setSlot } from "./words.js";

export function closeSub(relay: Relay, sub: string): void {
  relay.openFilters -= relay.liveSubs.get(sub)?.filters ?? 0;
  relay.liveSubs.delete(sub);
}

export function unsubscribe(relay: Relay, subs: readonly string[], step: Step): void {
  for (const subscription of subs) {
    if (!relay.liveSubs.has(subscription)) continue;
    closeSub(relay, subscription);
    step.out.push({ type: "unsubscribe", relay: relay.key, link: relay.link, subscription });
  }
}

/** Values that left since are not in the new filters. */
function requestsFor(state: SyncState, relay: Relay, chunk: Chunk, step: Step): Filter[][] {
  const values = valuesOf(state.wanted, chunk.items);
  chunk.bytes = values.reduce((sum, value) => sum + valueBytes(value), 0);
  const bounds =
    relay.liveMode === "limit-0"
      ? { limit: 0 }
      : { since: Math.floor((step.now.wallMs - state.config.liveSinceMs) / 1000) };
  const tags = tagsOf(chunk.layer, chunk.items);
  const filters =
    tags.length === 0
      ? [filterOf(chunk.layer, undefined, [], bounds)]
      : tags.map((tag) => filterOf(chunk.layer, tag, values, bounds));
  return requestsOf(state.config, relay, filters, chunk.bytes);
}

function send(state: SyncState, relay: Relay, chunk: Chunk, requests: readonly Filter[][], step: Step): void {
  chunk.subs = [];
  for (const filters of requests) {
    const subscription = `l${state.nextName++}`;
    step.out.push({ type: "subscribe", relay: relay.key, link: relay.link, subscription, filters });
    noteRequest(state, relay, step.now.monotonicMs);
    relay.liveSubs.set(subscription, { chunk, filters: filters.length });
    relay.openFilters += filters.length;
    chunk.subs.push(subscription);
  }
  chunk.unanswered = [...chunk.subs];
  chunk.openedMs = step.now.monotonicMs;
  chunk.dirty = false;
  chunk.retryAtMs = 0;
  chunk.awaitsAuth = false;
}

function catchUp(state: SyncState, relay: Relay, chunk: Chunk): void {
  if (chunk.lostAtWallMs === undefined) return;
  const since = Math.floor((chunk.lostAtWallMs - state.config.lookbackMs) / 1000);
  chunk.lostAtWallMs = undefined;
  const items = chunk.items.filter((item) => phaseOf(relay.items.get(item)) === phases.confirmed);
  if (items.length > 0) relay.sweeps.push(new Sweep("reconnect", since, chunk.layer, items));
}

export function removeChunk(relay: Relay, chunk: Chunk): void {
  relay.chunks = relay.chunks.filter((other) => other !== chunk);
}

export function finishReplacement(relay: Relay, step: Step): void {
  const replacement = relay.replacement;
  if (!replacement) return;
  relay.replacement = undefined;
  unsubscribe(relay, replacement.oldSubs, step);
}

function replace(state: SyncState, relay: Relay, oldSubs: readonly string[], into: Chunk, step: Step): void {
  send(state, relay, into, requestsFor(state, relay, into, step), step);
  relay.replacement = { into, oldSubs, deadlineMs: step.now.monotonicMs + state.config.liveReplaceTimeoutMs };
}

function merge(state: SyncState, relay: Relay, group: Chunk[], step: Step): void {
  const into = newChunk(relay, group[0]!.layer, false);
  for (const chunk of group) {
    for (const item of chunk.items) addToChunk(state, relay, into, item);
    if (chunk.lostAtWallMs !== undefined) {
      into.lostAtWallMs = Math.min(into.lostAtWallMs ?? Number.POSITIVE_INFINITY, chunk.lostAtWallMs);
    }
    removeChunk(relay, chunk);
  }
  const oldSubs = group.flatMap((chunk) => chunk.subs);
  replace(state, relay, oldSubs, into, step);
  catchUp(state, relay, into);
}

/** The relay has no subscription left for it. */
export function leaveToRotation(state: SyncState, relay: Relay, chunk: Chunk): void {
  for (const item of chunk.items) setSlot(state, relay, item, slots.rotating);
  removeChunk(relay, chunk);
}

/** When an answer is overdue. A relay that never says EOSE is believed to listen after some tries. */
export const answerDueMs = (state: SyncState, { deafSinceMs }: Relay, chunk: Chunk): number =>
  deafSinceMs === undefined && chunk.unanswered.length > 0 && chunk.refusals < state.config.failuresUntilNoted
    ? chunk.openedMs + state.config.silenceMs
    : Number.POSITIVE_INFINITY;

/** The chunk is not open any more; what comes meanwhile is caught up when it is. */
export function closeChunk(relay: Relay, chunk: Chunk, step: Step): void {
  if (relay.replacement?.into === chunk) finishReplacement(relay, step);
  unsubscribe(relay, chunk.subs, step);
  chunk.subs = [];
  chunk.unanswered = [];
  chunk.lostAtWallMs ??= step.now.wallMs;
}

/** Tried again after a while that grows. */
export function delay(state: SyncState, chunk: Chunk, step: Step): void {
  const { retryDelaysMs } = state.config;
  chunk.retryAtMs = step.now.monotonicMs + retryDelaysMs[Math.min(chunk.refusals, retryDelaysMs.length - 1)]!;
  chunk.refusals += 1;
}

/** The relay may never have taken it: asked again later. */
export function reopenLater(state: SyncState, relay: Relay, chunk: Chunk, step: Step): void {
  closeChunk(relay, chunk, step);
  delay(state, chunk, step);
}

/** Brings what is open nearer to what shall be open. Call only when the relay may be asked. */
export function pumpLive(state: SyncState, relay: Relay, step: Step): void {
  const { config } = state;
  const nowMs = step.now.monotonicMs;
  if (relay.replacement && relay.replacement.deadlineMs <= nowMs) finishReplacement(relay, step);
  for (const chunk of relay.chunks)
    if (answerDueMs(state, relay, chunk) <= nowMs) reopenLater(state, relay, chunk, step);
  placeItems(state, relay, step);
  for (const chunk of relay.chunks) if (chunk.items.length === 0) unsubscribe(relay, chunk.subs, step);
  if (relay.chunks.some((chunk) => chunk.items.length === 0)) {
    relay.chunks = relay.chunks.filter((chunk) => chunk.items.length > 0);
    placeItems(state, relay, step);
  }
  const budget = liveRoom(config, relay);
  for (const chunk of [...relay.chunks]) {
    if (chunk.subs.length > 0 || chunk.retryAtMs > nowMs) continue;
    if (chunk.awaitsAuth) {
      // Nobody answered the challenge, or it did not help.
      chunk.awaitsAuth = false;
      delay(state, chunk, step);
      continue;
    }
    const requests = requestsFor(state, relay, chunk, step);
    const filters = requests.reduce((sum, request) => sum + request.length, 0);
    const fits =
      relay.openFilters + filters <= budget.filters && relay.liveSubs.size + requests.length <= budget.subscriptions;
    if (fits) {
      send(state, relay, chunk, requests, step);
      catchUp(state, relay, chunk);
    } else if (!relay.replacement) leaveToRotation(state, relay, chunk);
  }
  if (relay.replacement) return;
  // Chunks are merged when somebody waits for the room.
  const group = relay.placingWaits ? mergeable(state, relay) : undefined;
  if (group) {
    merge(state, relay, group, step);
    return;
  }
  const changed = relay.chunks.find((chunk) => chunk.dirty && chunk.subs.length > 0);
  if (changed) replace(state, relay, changed.subs, changed, step);
}

/** History may begin: everything in targets is live, rotating, or waits for a retry. */
export function liveIsOpen(relay: Relay, nowMs: number): boolean {
  if (relay.unplaced.length > 0) return false;
  return relay.chunks.every((chunk) => (chunk.subs.length > 0 ? !chunk.dirty : chunk.retryAtMs > nowMs));
}

/** Nothing is missed at this moment. */
export const liveIsWhole = (relay: Relay): boolean =>
  relay.unplaced.length === 0 && relay.chunks.every((chunk) => chunk.subs.length > 0);
