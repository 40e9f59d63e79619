// Actions: targets − pending − confirmed, per connected relay. The only place that decides what history to fetch.
// The difference is not computed anew each time: an item's word says whether it is pending or confirmed, and the
// fresh lists name those that are neither. Batches are formed when there is room to send them, so chunks are full.

import { isLong, textOf, valueBytes } from "./filters.js";
import { type Item, type Layer, layerOf, layers, phaseOf, phases } from "./items.js";
import type { Relay } from "./relay.js";
import { historyRoom } from "./room.js";
import type { SyncState } from "./state.js";
import { setPhase } from "./words.js";

const order: readonly Layer[] = [layers.announcements, layers.states, layers.repositories, layers.roots];

const isFresh = (relay: Relay, item: Item): boolean => phaseOf(relay.items.get(item)) === phases.fresh;

/** The layer whose turn it is, without taking anything. Stale entries at the end of the lists are dropped. */
export function nextLayer(relay: Relay): Layer | undefined {
  for (const layer of order) {
    const list = relay.fresh[layer]!;
    while (list.length > 0 && !isFresh(relay, list[list.length - 1]!)) list.pop();
    if (list.length > 0) return layer;
  }
  return undefined;
}

/** Takes the next group of the layer whose turn it is, and makes them pending. */
export function takeAction(state: SyncState, relay: Relay, layer: Layer): Item[] {
  const room = historyRoom(state.config, relay);
  const list = relay.fresh[layer]!;
  const items: Item[] = [];
  const longOnes: Item[] = [];
  let bytes = 0;
  while (list.length > 0) {
    const item = list[list.length - 1]!;
    if (!isFresh(relay, item)) {
      list.pop();
      continue;
    }
    const value = textOf(state.wanted, item);
    const alone = value === undefined || isLong(state.config, value);
    const size = value === undefined ? 0 : valueBytes(value);
    if (items.length > 0 && (items.length >= room.values || bytes + size > room.bytes)) break;
    list.pop();
    if (alone && items.length > 0) {
      longOnes.push(item);
      continue;
    }
    setPhase(state, relay, item, phases.pending);
    items.push(item);
    bytes += size;
    if (alone) break;
  }
  list.push(...longOnes);
  return items;
}

/** Forgets everything confirmed and pending: all targets are fresh, newest chunks last in the lists. */
export function allFresh(state: SyncState, relay: Relay): void {
  relay.fresh = [[], [], [], []];
  relay.retries = [];
  for (const item of relay.items.keys()) {
    setPhase(state, relay, item, phases.fresh, 0);
    relay.fresh[layerOf(item)]!.push(item);
  }
}
