// Filters of the layers (spec "Layers and filters"), and how large they may be on a relay: our own limits, and what its
// NIP-11 states. One builder serves live and history; `since` and the rest are arguments.

import type { Filter } from "../../nostr/filter.js";
import type { Pubkey } from "../../nostr/ids.js";
import { kinds } from "../../nostr/kinds.js";
import type { SyncConfig } from "./config.js";
import { allStatesItem, type Item, indexOf, type Layer, layerOf, layers } from "./job.js";
import type { Relay } from "./relay.js";
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

const tagsOfLayer: readonly (readonly string[])[] = [[], ["d"], ["a", "A", "q"], ["e", "E", "q"]];

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
  const requests: Filter[][] = [];
  for (let from = 0; from < filters.length; from += together) requests.push(filters.slice(from, from + together));
  return requests;
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
