// Changes to what a relay knows of an item: the only place that writes an item's word, so that the counts that follow
// from the words are always right.

import {
  failuresOf,
  type Item,
  type Layer,
  layerOf,
  layers,
  type Phase,
  phaseOf,
  phases,
  slotOf,
  slots,
  wordOf,
} from "./items.js";
import type { Relay, Turn } from "./relay.js";
import type { SyncState } from "./state.js";

function count(state: SyncState, relay: Relay, item: Item, word: number, by: 1 | -1): void {
  if (phaseOf(word) === phases.confirmed) relay.confirmedItems += by;
  else if (phaseOf(word) === phases.barred) relay.barredItems += by;
  else if (failuresOf(word) >= state.config.failuresUntilNoted) relay.failedItems += by;
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
