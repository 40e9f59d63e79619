// What a relay knows of its items, and what history is fetched next. The only place that writes an item's word, so that
// the counts that follow from the words are always right; and the only place that decides what history to fetch:
// targets − pending − confirmed. That difference is not computed anew each time: an item's word says whether it is
// pending or confirmed, and the fresh lists name those that are neither. Batches are formed when there is room to send
// them, so chunks are full.

import type { SyncState } from "./core-state.js";
import { historyCapacity, isLong, textOf, valueBytes } from "./filters.js";
import {
  failuresOf,
  type Item,
  type Layer,
  layerOf,
  layers,
  type Phase,
  phaseOf,
  phases,
  Sweep,
  slotOf,
  slots,
  type Word,
  wordOf,
} from "./job.js";
import type { Relay, Turn } from "./relay.js";

function count(state: SyncState, relay: Relay, item: Item, word: number, by: 1 | -1): void {
  if (phaseOf(word) === phases.confirmed) relay.confirmedItems += by;
  else if (phaseOf(word) === phases.barred) relay.barredItems += by;
  else if (failuresOf(word) >= state.config.syncItemMaxFailures) relay.failedItems += by;
  if (slotOf(word) === slots.rotating) turnOf(relay, layerOf(item)).items += by;
}

function setWord(state: SyncState, relay: Relay, item: Item, before: number, word: number): void {
  relay.items.set(item, word);
  count(state, relay, item, before, -1);
  count(state, relay, item, word, 1);
}

/** Whose turn items without a live filter wait for. */
export const turnOf = ({ turns }: Relay, layer: Layer): Turn => (layer === layers.roots ? turns.roots : turns.repos);

/** Does nothing when the item has left targets; failures stay as they are unless given. */
export function setPhase(state: SyncState, relay: Relay, item: Item, phase: Phase, failures?: number): void {
  const word = relay.items.get(item);
  if (word === undefined) return;
  setWord(state, relay, item, word, wordOf(phase, failures ?? failuresOf(word), slotOf(word)));
}

export function setSlot(state: SyncState, relay: Relay, item: Item, slot: number): void {
  const word = relay.items.get(item);
  if (word !== undefined) setWord(state, relay, item, word, wordOf(phaseOf(word), failuresOf(word), slot));
}

export function makeFresh(state: SyncState, relay: Relay, item: Item): void {
  if (!relay.items.has(item)) return;
  setPhase(state, relay, item, phases.fresh);
  relay.fresh[layerOf(item)]!.push(item);
}

export function addItem(state: SyncState, relay: Relay, item: Item): void {
  if (relay.items.has(item)) return;
  relay.items.set(item, wordOf(phases.fresh, 0, slots.unplaced));
  relay.fingerprint = undefined;
  relay.fresh[layerOf(item)]!.push(item);
  relay.unplaced.push(item);
  state.touched.add(relay);
}

/** What leaves targets leaves confirmed, pending and live too: they are all in the item's word. */
export function removeItem(state: SyncState, relay: Relay, item: Item): void {
  const word = relay.items.get(item);
  if (word === undefined) return;
  count(state, relay, item, word, -1);
  relay.items.delete(item);
  relay.fingerprint = undefined;
  state.touched.add(relay);
  const chunk = relay.chunks.find((other) => other.id === slotOf(word));
  const at = chunk?.items.indexOf(item) ?? -1;
  if (!chunk || at < 0) return;
  chunk.items.splice(at, 1);
  chunk.dirty = true;
}

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
  const room = historyCapacity(state.config, relay);
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

export const isSyncing = (relay: Relay): boolean =>
  nextLayer(relay) !== undefined || relay.jobs.some((job) => job.kind === "batch");
