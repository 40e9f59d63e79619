// What public pages may say of sync and hunt (threats.md row 31).

import type { Clock } from "../base/clock.js";
import type { Hunting } from "../hunt/hunting.js";
import { pathBelowService, type ServiceName, servicePart } from "../net/url.js";
import type { Announcement } from "../nostr/nip34.js";
import { relaysOf } from "../sync/core/relays-of.js";
import type { RelayStatus, SyncStatus } from "../sync/status.js";
import type { PeerStatus, StatusSources } from "../web/status-facts.js";

const maxPeers = 20;
/** Every reader of a repository's page asks; looking at all relays for each of them would be dear. */
const keptMs = 1_000;

export const statusSources = (
  hunting: Hunting,
  sync: () => SyncStatus | undefined,
  services: readonly ServiceName[],
  clock: Clock,
): StatusSources => {
  let kept: { readonly untilMs: number; readonly byKey: ReadonlyMap<string, RelayStatus> } | undefined;
  const followed = (): ReadonlyMap<string, RelayStatus> => {
    const nowMs = clock.monotonicMs();
    if (!kept || kept.untilMs <= nowMs) {
      const byKey = new Map((sync()?.relays ?? []).map((relay) => [relay.relay, relay]));
      kept = { untilMs: nowMs + keptMs, byKey };
    }
    return kept.byKey;
  };
  return {
    syncStatus: () =>
      (sync()?.relays ?? [])
        .filter((relay) => !relay.waitingOnly && !relay.ignored)
        .map((relay) => ({
          url: relay.url ?? relay.relay,
          health: relay.health,
          isConnected: relay.state !== "disconnected" && relay.state !== "connecting",
          lastEvent: relay.lastEvent,
          gapEvents: relay.gapEvents,
        })),
    huntingQueue: () => hunting.queueSize,
    peersOf(announcement) {
      const relays = relaysOf(announcement, services, maxPeers).map(({ key, url }) =>
        relayPeer(url, followed().get(key)),
      );
      return [...relays, ...gitServers(hunting, announcement, services)];
    },
  };
};

function relayPeer(url: string, relay: RelayStatus | undefined): PeerStatus {
  const type = "relay";
  if (!relay || relay.ignored) return { url, type, at: undefined, result: "not followed" };
  if (relay.inStep) return { url, type, at: undefined, result: "in step" };
  const at = relay.lastInStep ?? relay.lastFailure?.at;
  if (relay.state === "disconnected" && relay.failures > 0) return { url, type, at, result: "failed" };
  return { url, type, at: relay.lastInStep ?? undefined, result: relay.lastInStep === null ? "not yet" : "ok" };
}

function gitServers(hunting: Hunting, announcement: Announcement, services: readonly ServiceName[]): PeerStatus[] {
  const { owner, identifier, clone } = announcement;
  const asked = new Map(hunting.askedServers({ owner, identifier }).map((server) => [servicePart(server.url), server]));
  const isOurs = (url: string): boolean => services.some((service) => pathBelowService(url, service) !== undefined);
  return clone
    .filter((url) => servicePart(url) !== undefined && !isOurs(url))
    .slice(0, maxPeers)
    .map((url): PeerStatus => {
      const server = asked.get(servicePart(url));
      if (!server) return { url, type: "git server", at: undefined, result: "not yet" };
      return { url, type: "git server", at: server.askedAt, result: server.answer === "ok" ? "ok" : "failed" };
    });
}
