// What happens to live subscriptions: EOSE, CLOSED, a NOTICE, an answered challenge, the end of the link, new limits
// (spec "Layers and filters"). One bad value is found by halves.

import type { Meaning } from "./answers.js";
import { indexOf, layers, slots } from "./items.js";
import {
  closeChunk,
  closeSub,
  delay,
  finishReplacement,
  leaveToRotation,
  removeChunk,
  reopenLater,
  unsubscribe,
} from "./live.js";
import { addToChunk, newChunk } from "./live-set.js";
import { halves } from "./paging.js";
import { learnLimit, learnValues } from "./query-refused.js";
import type { Chunk, Relay } from "./relay.js";
import { liveRoom } from "./room.js";
import type { Step, SyncState } from "./state.js";
import { log } from "./telling.js";
import { setSlot } from "./words.js";

/** A NOTICE told us to slow down, and nobody knows which request it dropped. */
export function reopenUnanswered(state: SyncState, relay: Relay, step: Step): void {
  for (const chunk of relay.chunks) if (chunk.unanswered.length > 0) reopenLater(state, relay, chunk, step);
}

export function onLiveEose(relay: Relay, sub: string, step: Step): void {
  const chunk = relay.liveSubs.get(sub)?.chunk;
  if (!chunk) return;
  chunk.refusals = 0;
  chunk.unanswered = chunk.unanswered.filter((other) => other !== sub);
  if (relay.replacement?.into === chunk && chunk.unanswered.length === 0) finishReplacement(relay, step);
}

export function onLiveClosed(state: SyncState, relay: Relay, sub: string, meaning: Meaning, step: Step): void {
  const live = relay.liveSubs.get(sub);
  if (!live) return;
  const { chunk, filters } = live;
  closeSub(relay, sub);
  // An old subscription that was about to go.
  if (!chunk.subs.includes(sub)) return;
  closeChunk(relay, chunk, step);
  if (meaning === "rate-limited") return;
  if (meaning === "auth-required") {
    chunk.awaitsAuth = true;
    chunk.retryAtMs = step.now.monotonicMs + state.config.authTimeoutMs;
    return;
  }
  if (meaning === "too-many-filters" && filters > 1) {
    learnLimit(relay, { maxFilters: 1 });
    return;
  }
  const canHalve = chunk.layer !== layers.announcements && (meaning === "invalid" || meaning === "too-many-values");
  if (meaning === "too-many-values" && chunk.items.length > 1) {
    learnValues(relay, chunk.items.length);
    halve(state, relay, chunk, step);
    return;
  }
  if (relay.liveMode === "limit-0") {
    relay.liveMode = "since";
    return;
  }
  if (canHalve) halve(state, relay, chunk, step);
  else delay(state, chunk, step);
}

/** One bad value must not cost the others their live subscription. */
function halve(state: SyncState, relay: Relay, chunk: Chunk, step: Step): void {
  if (chunk.items.length <= 1) {
    for (const item of chunk.items) log(step, "warn", "value-refused", relay, { index: indexOf(item) });
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
  relay.openFilters = 0;
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
export function rebuildLive(state: SyncState, relay: Relay, step: Step): void {
  const room = liveRoom(state.config, relay);
  const fits =
    relay.chunks.every((chunk) => chunk.items.length <= room.values) &&
    relay.openFilters <= room.filters &&
    relay.liveSubs.size <= room.subscriptions;
  if (fits) return;
  finishReplacement(relay, step);
  for (const chunk of relay.chunks) {
    unsubscribe(relay, chunk.subs, step);
    for (const item of chunk.items) {
      setSlot(state, relay, item, slots.unplaced);
      relay.unplaced.push(item);
    }
  }
  relay.chunks = [];
  relay.leastActive = Number.POSITIVE_INFINITY;
}
