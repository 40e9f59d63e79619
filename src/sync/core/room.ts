// How large a chunk may be on a relay, and how many filters and subscriptions live may use there: our own limits, and
// what its NIP-11 states.

import type { SyncConfig } from "./config.js";
import type { Relay } from "./relay.js";

/** Room for one filter, its keys and the REQ around it taken off. */
export const overheadBytes = 400;

export function frameBytes(config: SyncConfig, { limits }: Relay, consolidated: boolean): number {
  if (limits.maxMessageBytes === undefined) return config.maxFrameBytes;
  const stated = Math.max(2000, Math.floor(limits.maxMessageBytes * 0.9));
  return consolidated ? stated : Math.min(stated, config.maxFrameBytes);
}

interface ChunkRoom {
  readonly values: number;
  readonly bytes: number;
}

export interface LiveRoom extends ChunkRoom {
  readonly filters: number;
  readonly subscriptions: number;
}

/** A layer's kind is a value as well where, as here, all values of a filter are counted together. */
const valuesStated = ({ limits: { maxFilterValues } }: Relay): number | undefined =>
  maxFilterValues === undefined ? undefined : Math.max(1, maxFilterValues - 1);

export function liveRoom(config: SyncConfig, relay: Relay): LiveRoom {
  const { maxSubscriptions } = relay.limits;
  const maxFilterValues = valuesStated(relay);
  const most = relay.consolidated
    ? Math.max(config.consolidatedTagsPerFilter, maxFilterValues ?? 0)
    : config.tagsPerFilter;
  // History and one replacement need subscriptions too.
  const subscriptions =
    maxSubscriptions === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(4, maxSubscriptions - config.maxHistorySubscriptions - 1);
  return {
    values: Math.max(1, Math.min(most, maxFilterValues ?? most)),
    bytes: frameBytes(config, relay, relay.consolidated) - overheadBytes,
    filters: Math.min(config.maxLiveFilters, subscriptions * 3),
    subscriptions,
  };
}

export function historyRoom(config: SyncConfig, relay: Relay): ChunkRoom {
  const stated = valuesStated(relay);
  const values = stated === undefined ? config.tagsPerFilter : Math.min(stated, config.maxHistoryTagsPerFilter);
  return { values: Math.max(1, values), bytes: frameBytes(config, relay, false) - overheadBytes };
}
