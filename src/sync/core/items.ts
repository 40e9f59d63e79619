// The items of a relay: the filters that ask for them (spec "Layers and filters"; one builder serves live and history),
// how large these may be there, and what is known of each item. The only place that writes an item's word, so that the
// counts that follow from the words are always right; and the only place that decides what history to fetch: targets −
// pending − confirmed. That difference is not computed anew each time: an item's word says whether it is pending or
// confirmed, and the fresh lists name those that are neither. Batches are formed when there is room to send them, so
// chunks are full.

import { groupsOf } from "../../base/collections.js";
import { kinds, type Pubkey } from "../../nostr/event.js";
import type { Filter } from "../../nostr/filter.js";
import type { SyncConfig } from "./config.js";
import { freshLists, type Relay, type SyncState, type Turn } from "./core-state.js";
import {
  allStatesItem,
  failuresOf,
  type Item,
  indexOf,
  type Layer,
  layerOf,
  layers,
  type Phase,
  phaseOf,
  phases,
  type Sweep,
  slotOf,
  slots,
  type Word,
  wordOf,
} from "./job.js";
import type { Wanted } from "./wanted.js";

interface Bounds {
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  readonly limit?: number | undefined;
  readonly kinds?: readonly number[] | undefined;
  readonly authors?: readonly Pubkey[] | undefined;
}

/** What layer 4 asks of people rather than about repositories. */
export const authorKinds: readonly number[] = [kinds.deletion, kinds.vanish, kinds.graspList];

const tagsOfLayer: readonly (readonly string[])[] = [
  [],
  ["d"],
  ["a", "A", "q"],
  ["e", "E", "q"],
  ["a", "A", "e", "E", "q"],
];

/** The tags by which a layer is asked: one filter each. Layer 1, and all states, are asked by kind alone. */
export const tagsOf = (layer: Layer, items: readonly Item[]): readonly string[] =>
  items[0] === allStatesItem ? [] : tagsOfLayer[layer]!;

export const filtersPerChunk = (layer: Layer, items: readonly Item[]): number =>
  Math.max(1, tagsOf(layer, items).length);

export function textOf(wanted: Wanted, item: Item): string | undefined {
  switch (layerOf(item)) {
    case layers.announcements:
      return undefined;
    case layers.states:
      return wanted.repo(indexOf(item))?.identifier;
    case layers.repositories:
    case layers.outbox:
      return wanted.repo(indexOf(item))?.coordinate;
    case layers.roots:
      return wanted.rootId(indexOf(item));
  }
}

/** Several owners may use one identifier: each value once. */
export function valuesOf(wanted: Wanted, items: readonly Item[]): string[] {
  const values = new Set<string>();
  for (const item of items) {
    const value = textOf(wanted, item);
    if (value !== undefined) values.add(value);
  }
  return [...values];
}

export function filterOf(layer: Layer, tag: string | undefined, values: readonly string[], bounds: Bounds): Filter {
  const fixed =
    layer === layers.announcements ? [kinds.announcement] : layer === layers.states ? [kinds.state] : bounds.kinds;
  return {
    ...(fixed && { kinds: fixed }),
    ...(bounds.authors && { authors: bounds.authors }),
    ...(tag !== undefined && { tags: new Map([[tag, values]]) }),
    ...(bounds.since !== undefined && { since: bounds.since }),
    ...(bounds.until !== undefined && { until: bounds.until }),
    ...(bounds.limit !== undefined && { limit: bounds.limit }),
  };
}

/** Bytes a value takes inside a filter: quotes, comma, and as much again for what JSON must escape at worst. */
export const valueBytes = (value: string): number => Buffer.byteLength(value) + 3;

export const isLong = (config: SyncConfig, value: string | undefined): boolean =>
  value !== undefined &&
  value.length * 3 > config.syncMaxSharedValueBytes &&
  Buffer.byteLength(value) > config.syncMaxSharedValueBytes;

/** Filters into requests: as many together as the relay takes and a frame holds. */
export function requestsOf(
  config: SyncConfig,
  relay: Relay,
  filters: readonly Filter[],
  bytesEach: number,
): Filter[][] {
  const perRequest = Math.max(
    1,
    Math.min(relay.limits.maxFilters ?? config.syncMaxFiltersPerReq, config.syncMaxFiltersPerReq),
  );
  const room = frameBytes(config, relay, relay.consolidated);
  const together = Math.max(1, Math.min(perRequest, Math.floor(room / (bytesEach + overheadBytes / 2))));
  return groupsOf(filters, together);
}

/** Room for one filter, its keys and the REQ around it taken off. */
const overheadBytes = 400;

export function frameBytes(config: SyncConfig, { limits }: Relay, consolidated: boolean): number {
  if (limits.maxMessageBytes === undefined) return config.syncMaxFrameBytes;
  const stated = Math.max(2000, Math.floor(limits.maxMessageBytes * 0.9));
  return consolidated ? stated : Math.min(stated, config.syncMaxFrameBytes);
}

interface ChunkCapacity {
  readonly values: number;
  readonly bytes: number;
}

export interface LiveCapacity extends ChunkCapacity {
  readonly filters: number;
  readonly subscriptions: number;
}

/** A layer's kind is a value as well where, as here, all values of a filter are counted together. */
const valuesStated = ({ limits: { maxFilterValues } }: Relay): number | undefined =>
  maxFilterValues === undefined ? undefined : Math.max(1, maxFilterValues - 1);

export function liveCapacity(config: SyncConfig, relay: Relay): LiveCapacity {
  const { maxSubscriptions } = relay.limits;
  const maxFilterValues = valuesStated(relay);
  const most = relay.consolidated
    ? Math.max(config.syncConsolidatedTagsPerFilter, maxFilterValues ?? 0)
    : config.syncMaxTagsPerFilter;
  // History and one replacement need subscriptions too.
  const subscriptions =
    maxSubscriptions === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(4, maxSubscriptions - config.syncHistorySubscriptions - 1);
  return {
    values: Math.max(1, Math.min(most, maxFilterValues ?? most)),
    bytes: frameBytes(config, relay, relay.consolidated) - overheadBytes,
    filters: Math.min(config.syncMaxFilters, subscriptions * 3),
    subscriptions,
  };
}

export function historyCapacity(config: SyncConfig, relay: Relay): ChunkCapacity {
  const stated = valuesStated(relay);
  const values = stated === undefined ? config.syncMaxTagsPerFilter : Math.min(stated, config.maxHistoryTagsPerFilter);
  return { values: Math.max(1, values), bytes: frameBytes(config, relay, false) - overheadBytes };
}

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
export const turnOf = ({ turns }: Relay, layer: Layer): Turn =>
  layer === layers.roots ? turns.roots : layer === layers.outbox ? turns.outbox : turns.repos;

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
  if (layerOf(item) === layers.outbox) relay.outboxMoved = true;
  const chunk = relay.chunks.find((other) => other.id === slotOf(word));
  const at = chunk?.items.indexOf(item) ?? -1;
  if (!chunk || at < 0) return;
  chunk.items.splice(at, 1);
  chunk.dirty = true;
}

export const layerOrder: readonly Layer[] = [
  layers.announcements,
  layers.states,
  layers.repositories,
  layers.roots,
  layers.outbox,
];

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
export function takeAction(state: SyncState, relay: Relay, layer: Layer, take = takeGroup): Item[] {
  const items = take(state, relay, relay.fresh[layer]!, (item) => isFresh(relay, item));
  for (const item of items) setPhase(state, relay, item, phases.pending);
  return items;
}

/** Forgets everything confirmed and pending: all targets are fresh, newest chunks last in the lists. */
export function allFresh(state: SyncState, relay: Relay, isMeant: (item: Item, word: Word) => boolean): void {
  relay.fresh = freshLists();
  relay.retries = [];
  for (const [item, word] of relay.items) {
    if (!isMeant(item, word)) continue;
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
  if (items.length > 0) relay.sweeps.push({ source, since, layer, items, notBeforeMs: 0 });
}

/** Some of it waits to be asked for, or to be answered. */
export const isSweeping = (relay: Relay, source: Sweep["source"], ofLayers: readonly Layer[]): boolean =>
  [...relay.sweeps, ...relay.jobs.flatMap(({ sweep }) => sweep ?? [])].some(
    (sweep) => sweep.source === source && ofLayers.includes(sweep.layer),
  );

export const isSyncing = (relay: Relay): boolean =>
  nextLayer(relay) !== undefined || relay.jobs.some((job) => job.kind === "batch");
