// What the public status page may say of sync and hunt (threats.md row 31).

import type { Hunting } from "../hunt/hunting.js";
import type { SyncStatus } from "../sync/status.js";
import type { StatusSources } from "../web/status-facts.js";

export const statusSources = (hunting: Hunting, sync: () => SyncStatus | undefined): StatusSources => ({
  syncStatus: () =>
    (sync()?.relays ?? [])
      .filter((relay) => !relay.waitingOnly)
      .map((relay) => ({
        url: relay.url ?? relay.relay,
        health: relay.health,
        isConnected: relay.state !== "disconnected" && relay.state !== "connecting",
        lastEvent: relay.lastEvent,
        gapEvents: relay.gapEvents,
      })),
  huntingQueue: () => hunting.queueSize,
});
