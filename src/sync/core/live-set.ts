// Which items are live and in which chunk (spec "Filter budget"). Decides only; live.ts opens and closes. New items
// fill the last chunk that has room; above the budget chunks grow; when that is not enough, the least recently
// active roots, and last repos, are left to rotating history. Outbox items always rotate; what filters are left over are
// theirs too (outbox-filters.ts).

import { Chunk, log, type Relay, type SyncState } from "./core-state.js";
import { filtersPerChunk, isLong, type LiveCapacity, liveCapacity, setSlot, textOf, valueBytes } from "./items.js";
import { type Item, indexOf, type Layer, layerOf, layers, slotOf, slots } from "./job.js";
import { liveGroups } from "./outbox-filters.js";

export function newChunk(relay: Relay, layer: Layer, closedToNew: boolean): Chunk {
  const chunk = new Chunk(relay.nextChunk++, layer, closedToNew);
  relay.chunks.push(chunk);
  return chunk;
}

export function addToChunk(state: SyncState, relay: Relay, chunk: Chunk, item: Item): void {
  chunk.items.push(item);
  chunk.bytes += valueBytes(textOf(state.wanted, item) ?? "");
  if (chunk.layer === layers.roots) relay.leastActive = Math.min(relay.leastActive, activity(state, item));
  chunk.dirty = true;
  if (chunk.layer !== layers.outbox) setSlot(state, relay, item, chunk.id);
}

/** Filters all chunks need, open or not yet, without what is only left over for outboxes. */
const committedFilters = (relay: Relay): number =>
  relay.chunks.reduce(
    (sum, chunk) => (chunk.layer === layers.outbox ? sum : sum + filtersPerChunk(chunk.layer, chunk.items)),
    0,
  );

function chunkWithRoom(relay: Relay, layer: Layer, bytes: number, room: LiveCapacity): Chunk | undefined {
  for (let at = relay.chunks.length - 1; at >= 0; at--) {
    const chunk = relay.chunks[at]!;
    if (chunk.layer !== layer || chunk.closedToNew) continue;
    if (chunk.items.length < room.values && chunk.bytes + bytes <= room.bytes) return chunk;
  }
  return undefined;
}

/** Two or more chunks of a layer that fit into one. */
export function mergeable(state: SyncState, relay: Relay): Chunk[] | undefined {
  const room = liveCapacity(state.config, relay);
  if (!relay.consolidated || committedFilters(relay) * 2 <= room.filters) return undefined;
  for (const layer of [layers.roots, layers.repositories, layers.states]) {
    const group: Chunk[] = [];
    let values = 0;
    let bytes = 0;
    const chunks = relay.chunks.filter(
      (chunk) => chunk.layer === layer && !chunk.closedToNew && chunk.items.length > 0,
    );
    for (const chunk of chunks.sort((a, b) => a.items.length - b.items.length)) {
      if (values + chunk.items.length > room.values || bytes + chunk.bytes > room.bytes) break;
      values += chunk.items.length;
      bytes += chunk.bytes;
      group.push(chunk);
    }
    if (group.length > 1) return group;
  }
  return undefined;
}

const activity = (state: SyncState, item: Item): number => state.wanted.activeSeconds(indexOf(item));

/**
 * The least active twentieth of the live roots gives way to a more active one, so that this is done seldom. Finds out
 * who is least active only when the bound that is kept says that somebody may be less active.
 */
function evictRoots(state: SyncState, relay: Relay, active: number): void {
  if (active <= relay.leastActive) return;
  const live = relay.chunks.flatMap((chunk) => (chunk.layer === layers.roots ? chunk.items : []));
  live.sort((a, b) => activity(state, a) - activity(state, b));
  const leastAt = (at: number): number => (at < live.length ? activity(state, live[at]!) : Number.POSITIVE_INFINITY);
  relay.leastActive = leastAt(0);
  if (active <= relay.leastActive) return;
  const leaving = new Set(live.slice(0, Math.ceil(live.length / 20)));
  for (const item of leaving) setSlot(state, relay, item, slots.rotating);
  for (const chunk of relay.chunks) {
    if (chunk.layer !== layers.roots) continue;
    const staying = chunk.items.filter((item) => !leaving.has(item));
    if (staying.length < chunk.items.length) Object.assign(chunk, { items: staying, dirty: true });
  }
  relay.leastActive = leastAt(leaving.size);
}

/** A repo needs a chunk: the chunk of the least recently active roots gives its filters. */
function giveUpRootChunk(state: SyncState, relay: Relay): boolean {
  let least: Chunk | undefined;
  let leastSum = Number.POSITIVE_INFINITY;
  for (const chunk of relay.chunks) {
    if (chunk.layer !== layers.roots || chunk.items.length === 0) continue;
    const mean = chunk.items.reduce((sum, item) => sum + activity(state, item), 0) / chunk.items.length;
    if (mean < leastSum) [least, leastSum] = [chunk, mean];
  }
  if (!least) return false;
  for (const item of least.items) setSlot(state, relay, item, slots.rotating);
  Object.assign(least, { items: [], dirty: true });
  return true;
}

interface Placing {
  readonly state: SyncState;
  readonly relay: Relay;
  room: LiveCapacity;
  /** Counted once and kept: walking all chunks for each of half a million items would be quadratic. */
  committed: number;
  /** Where the last item of a layer went; undefined when no chunk of the layer has room. */
  readonly last: (Chunk | undefined)[];
  /** Until the answer is no: placing items only makes chunks fuller. */
  mayMerge: boolean;
}

function chunkFor(placing: Placing, layer: Layer, bytes: number): Chunk | undefined {
  const { relay, room, last } = placing;
  const tried = last[layer];
  if (tried && tried.items.length < room.values && tried.bytes + bytes <= room.bytes) return tried;
  last[layer] = chunkWithRoom(relay, layer, bytes, room);
  return last[layer];
}

function placeAlone(placing: Placing, item: Item, long: boolean): void {
  const { state, relay } = placing;
  const isLongChunk = (chunk: Chunk): boolean => isLong(state.config, textOf(state.wanted, chunk.items[0] ?? 0));
  if (long && relay.chunks.filter(isLongChunk).length >= state.config.maxLongChunks) {
    setSlot(state, relay, item, slots.rotating);
    return;
  }
  const layer = layerOf(item);
  addToChunk(state, relay, newChunk(relay, layer, true), item);
  placing.committed += filtersPerChunk(layer, [item]);
}

/** A chunk for the item within the budget, letting chunks grow when it is used up. */
function findChunk(placing: Placing, item: Item, bytes: number): Chunk | undefined {
  const { state, relay } = placing;
  const layer = layerOf(item);
  const found = chunkFor(placing, layer, bytes);
  if (found) return found;
  const needed = filtersPerChunk(layer, [item]);
  if (placing.committed + needed > placing.room.filters && !relay.consolidated) {
    relay.consolidated = true;
    placing.room = liveCapacity(state.config, relay);
    log(state, "info", "live-consolidated", relay, { filters: placing.committed });
    const grown = chunkFor(placing, layer, bytes);
    if (grown) return grown;
  }
  if (placing.committed + needed > placing.room.filters) return undefined;
  placing.committed += needed;
  placing.last[layer] = newChunk(relay, layer, false);
  return placing.last[layer];
}

/** No room within the budget: a less active root gives way, or the item rotates. False when it must wait. */
function placeBeyondBudget(placing: Placing, item: Item, bytes: number): boolean {
  const { state, relay } = placing;
  if (layerOf(item) !== layers.roots) {
    if (giveUpRootChunk(state, relay)) return false;
    setSlot(state, relay, item, slots.rotating);
    return true;
  }
  evictRoots(state, relay, activity(state, item));
  const chunk = chunkFor(placing, layers.roots, bytes);
  if (chunk) addToChunk(state, relay, chunk, item);
  else setSlot(state, relay, item, slots.rotating);
  return true;
}

/** Finds a place for every item that has none, then for outboxes. Leaves some for later while chunks are being merged. */
export function placeItems(state: SyncState, relay: Relay): void {
  if (relay.placingWaits && relay.replacement) return;
  const committed = committedFilters(relay);
  if (relay.unplaced.length > 0) placeUnplaced(state, relay);
  if (relay.outboxMoved || committedFilters(relay) !== committed) arrangeOutbox(state, relay);
}

/** Chunks that hold the same as before stay open. */
function arrangeOutbox(state: SyncState, relay: Relay): void {
  const hasMoved = relay.outboxMoved;
  relay.outboxMoved = false;
  const groups = liveGroups(state, relay, committedFilters(relay));
  const chunks = relay.chunks.filter(({ layer }) => layer === layers.outbox);
  for (const [at, items] of groups.entries()) {
    const chunk = chunks[at] ?? newChunk(relay, layers.outbox, true);
    const isSame = items.length === chunk.items.length && items.every((item) => chunk.items.includes(item));
    // Its authors or roots may be others even where its repositories are the same.
    Object.assign(chunk, { items, dirty: chunk.dirty || hasMoved || !isSame });
  }
  for (const chunk of chunks.slice(groups.length)) Object.assign(chunk, { items: [], dirty: true });
}

function placeUnplaced(state: SyncState, relay: Relay): void {
  const { config } = state;
  relay.placingWaits = false;
  const isUnplaced = (item: Item): boolean => slotOf(relay.items.get(item)) === slots.unplaced;
  const waiting = relay.unplaced.filter(isUnplaced);
  relay.unplaced = [];
  const placing: Placing = {
    state,
    relay,
    room: liveCapacity(config, relay),
    committed: committedFilters(relay),
    last: [],
    mayMerge: true,
  };
  if (waiting.length > placing.room.values) {
    waiting.sort(
      (a, b) =>
        layerOf(a) - layerOf(b) || (layerOf(a) === layers.roots ? activity(state, b) - activity(state, a) : a - b),
    );
  }
  for (let at = 0; at < waiting.length; at++) {
    const item = waiting[at]!;
    // The same item may have been noted twice.
    if (!isUnplaced(item)) continue;
    if (layerOf(item) === layers.outbox) {
      setSlot(state, relay, item, slots.rotating);
      continue;
    }
    const value = textOf(state.wanted, item);
    if (value === undefined || isLong(config, value)) {
      placeAlone(placing, item, value !== undefined);
      continue;
    }
    const bytes = valueBytes(value);
    const chunk = findChunk(placing, item, bytes);
    if (chunk) addToChunk(state, relay, chunk, item);
    else if (mergeAhead(placing) || !placeBeyondBudget(placing, item, bytes)) {
      // Its filters are free once live.ts has merged or closed what it must.
      relay.placingWaits = true;
      relay.unplaced = waiting.slice(at);
      return;
    }
  }
}

function mergeAhead(placing: Placing): boolean {
  placing.mayMerge &&= mergeable(placing.state, placing.relay) !== undefined;
  return placing.mayMerge;
}

/** Rotating items are given another chance: with a full sync, or when a root comes alive again. */
export function reconsider(state: SyncState, relay: Relay, item: Item): void {
  if (slotOf(relay.items.get(item)) !== slots.rotating) return;
  setSlot(state, relay, item, slots.unplaced);
  relay.unplaced.push(item);
  state.touched.add(relay);
}
