// How many filters and subscriptions live may use on a relay, and how large its chunks are.

import type { SyncConfig } from "./config.js";
import { type ChunkRoom, liveRoom } from "./filters.js";
import type { Relay } from "./relay.js";

export interface Room extends ChunkRoom {
  readonly filters: number;
  readonly subscriptions: number;
}

export function liveBudget(config: SyncConfig, relay: Pick<Relay, "limits" | "consolidated">): Room {
  const stated = relay.limits.maxSubscriptions;
  // History and one replacement need subscriptions too.
  const subscriptions =
    stated === undefined ? Number.POSITIVE_INFINITY : Math.max(4, stated - config.maxHistorySubscriptions - 1);
  return {
    ...liveRoom(config, relay, relay.consolidated),
    filters: Math.min(config.maxLiveFilters, subscriptions * 3),
    subscriptions,
  };
}
