// Actions: targets − pending − confirmed, per connected relay. The only place that decides what history to fetch.
// The difference is not computed anew each time: an item's word says whether it is pending or confirmed, and the
// fresh lists name those that are neither. Batches are formed when there is room to send them, so chunks are full.

import { historyRoom, isLong, textOf, valueBytes } from "./filters.js";
import { failuresOf, type Item, type Layer, layers, phaseOf, phases, slotOf } from "./items.js";
import { type Relay, setWord } from "./relay.js";
import type { SyncState } from "./state.js";

const order: readonly Layer[] = [layers.announcements, layers.states, layers.repositories, layers.roots];

export interface Action {
  readonly layer: Layer;
  readonly items: readonly Item[];
}

const isFresh = (relay: Relay, item: Item): boolean => {
  const word = relay.items.get(item);
  return word >= 0 && phaseOf(word) === phases.fresh;
};

/** The layer whose turn it is, without taking anything. Stale entries at the end of the lists are dropped. */
export function nextLayer(relay: Relay): Layer | undefined {
  for (const layer of order) {
    const list = relay.fresh[layer]!;
    while (list.length > 0 && !isFresh(relay, list[list.length - 1]!)) list.pop();
    if (list.length > 0) return layer;
  }
  return undefined;
}

/** Takes the next group of items, lowest layer first, and makes them pending. */
export function nextAction(state: SyncState, relay: Relay): Action | undefined {
  const layer = nextLayer(relay);
  if (layer === undefined) return undefined;
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
    const word = relay.items.get(item);
    setWord(relay, item, phases.pending, failuresOf(word), slotOf(word), state.config.failuresUntilNoted);
    items.push(item);
    bytes += size;
    if (alone) break;
  }
  list.push(...longOnes);
  return items.length > 0 ? { layer, items } : undefined;
}

/** Forgets everything confirmed and pending: all targets are fresh, newest chunks last in the lists. */
export function allFresh(state: SyncState, relay: Relay): void {
  relay.fresh = [[], [], [], []];
  relay.retries = [];
  for (const item of relay.items.keys()) {
    const word = relay.items.get(item);
    setWord(relay, item, phases.fresh, 0, slotOf(word), state.config.failuresUntilNoted);
    relay.fresh[item & 3]!.push(item);
  }
}
