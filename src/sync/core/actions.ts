// Actions: targets − pending − confirmed, per connected relay. The only place that decides what history to fetch.
// The difference is not computed anew each time: an item's word says whether it is pending or confirmed, and the
// fresh lists name those that are neither. Batches are formed when there is room to send them, so chunks are full.

import { isLong, textOf, valueBytes } from "./filters.js";
import { type Item, type Layer, layerOf, layers, phaseOf, phases, type Word } from "./items.js";
import { Sweep } from "./job.js";
import type { Relay } from "./relay.js";
import { historyRoom } from "./room.js";
import type { SyncState } from "./state.js";
import { setPhase } from "./words.js";

export const layerOrder: readonly Layer[] = [layers.announcements, layers.states, layers.repositories, layers.roots];

const isFresh = (relay: Relay, item: Item): boolean => phaseOf(relay.items.get(item)) === phases.fresh;

/** The layer whose turn it is, without taking anything. Stale entries at the end of the lists are dropped. */
export function nextLayer(relay: Relay): Layer | undefined {
  for (const layer of layerOrder) {
    const list = relay.fresh[layer]!;
    while (list.length > 0 && !isFresh(relay, list[list.length - 1]!)) list.pop();
    if (list.length > 0) return layer;
  }
  return undefined;
}

/** Takes items for one request from the end of a list: as many values as a filter may have, a long one by itself. */
export function takeGroup(state: SyncState, relay: Relay, list: Item[], isWanted: (item: Item) => boolean): Item[] {
  const room = historyRoom(state.config, relay);
  const group = new Set<Item>();
  const longOnes: Item[] = [];
  let bytes = 0;
  for (let item = list.pop(); item !== undefined; item = list.pop()) {
    if (!isWanted(item) || group.has(item)) continue;
    const value = textOf(state.wanted, item);
    const isAlone = value === undefined || isLong(state.config, value);
    if (isAlone && group.size > 0) {
      longOnes.push(item);
      continue;
    }
    bytes += value === undefined ? 0 : valueBytes(value);
    if (group.size > 0 && bytes > room.bytes) {
      list.push(item);
      break;
    }
    group.add(item);
    if (isAlone || group.size >= room.values) break;
  }
  list.push(...longOnes);
  return [...group];
}

/** Takes the next group of the layer whose turn it is, and makes them pending. */
export function takeAction(state: SyncState, relay: Relay, layer: Layer): Item[] {
  const items = takeGroup(state, relay, relay.fresh[layer]!, (item) => isFresh(relay, item));
  for (const item of items) setPhase(state, relay, item, phases.pending);
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

/** The recent past of those items of a layer whose word is meant is asked for once more. */
export function sweepOver(
  relay: Relay,
  source: Sweep["source"],
  since: number,
  layer: Layer,
  isMeant: (word: Word) => boolean,
): void {
  const items: Item[] = [];
  for (const [item, word] of relay.items) if (layerOf(item) === layer && isMeant(word)) items.push(item);
  if (items.length > 0) relay.sweeps.push(new Sweep(source, since, layer, items));
}
