// What public pages may say of sync and hunt (threats.md row 31).

import { keptFor } from "../base/clock.js";
import { repositoryAddress } from "../catalogue/repositories.js";
import type { Context } from "../context.js";
import type { Hunting } from "../hunt/hunting.js";
import { pathBelowService, type ServiceName, servicePart } from "../net/url.js";
import type { Announcement } from "../nostr/nip34.js";
import type { VerifiedCopies } from "../operator/verified.js";
import { relaysOf } from "../sync/core/wanted.js";
import type { Syncing } from "../sync/start-syncing.js";
import type { CopyStatus, RelayStatus } from "../sync/status.js";
import type { Machines, PeerStatus, StatusSources } from "./status-page.js";

const maxPeers = 20;
/** Every reader of a repository's page asks; looking at all relays for each of them would be dear. */
const keptMs = 1_000;

interface UsedRooms {
  /** Nothing on a machine that does not hunt. */
  readonly hunting: () => Hunting | undefined;
  /** Nothing yet while the server starts. */
  readonly sync: () => Pick<Syncing, "status" | "copiesOf" | "outboxOf"> | undefined;
  readonly verified: VerifiedCopies;
  /** Not given: the server is alone. */
  readonly machines?: () => Machines | undefined;
}

export const statusSources = ({ live, services, clock }: Context, rooms: UsedRooms): StatusSources => {
  const { hunting, sync } = rooms;
  const followed = keptFor(
    { clock, keptMs: () => keptMs },
    () => new Map((sync()?.status().relays ?? []).map((relay) => [relay.relay, relay])),
  );
  return {
    syncStatus: () =>
      (sync()?.status().relays ?? [])
        .filter((relay) => !relay.waitingOnly && !relay.ignored)
        .map((relay) => ({
          url: relay.url ?? relay.relay,
          health: relay.health,
          isConnected: relay.state !== "disconnected" && relay.state !== "connecting",
          lastEvent: relay.lastEvent,
          gapEvents: relay.gapEvents,
          compared: relay.compared,
        })),
    huntingQueue: () => hunting()?.queueSize,
    machines: () => rooms.machines?.(),
    outbox() {
      const { outbox } = sync()?.status() ?? {};
      if (!outbox || !live.current.syncPlusEnabled) return undefined;
      const { participants, relays, connected, incomplete } = outbox;
      return { participants, relays, connected, incomplete };
    },
    outboxOf: (announcement) => sync()?.outboxOf(repositoryAddress(announcement)),
    peersOf(announcement) {
      const copies = new Map(
        (sync()?.copiesOf(repositoryAddress(announcement)) ?? []).map((copy) => [copy.relay, copy]),
      );
      const relays = relaysOf(announcement, services, maxPeers).map(({ key, url }) =>
        relayPeer(url, followed().get(key), copies.get(key)),
      );
      const peers = [...relays, ...gitServers(hunting(), announcement, services)];
      return peers.map((peer) => ({
        ...peer,
        lastClean: latest(peer.lastClean, rooms.verified.lastClean(announcement, peer.url)),
      }));
    },
  };
};

const latest = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);

function relayPeer(url: string, relay: RelayStatus | undefined, copy: CopyStatus | undefined): PeerStatus {
  const nothing = { url, type: "relay", at: undefined, lastClean: undefined, theyLack: undefined } as const;
  if (!relay || relay.ignored) return { ...nothing, result: "not followed" };
  const known = { ...nothing, lastClean: copy?.lastClean ?? undefined, theyLack: copy?.sides?.theyLack };
  if (copy?.inStep) return { ...known, result: "in step" };
  const at = relay.lastInStep ?? relay.lastFailure?.at;
  if (relay.state === "disconnected" && relay.failures > 0) return { ...known, at, result: "failed" };
  return { ...known, at: relay.lastInStep ?? undefined, result: relay.lastInStep === null ? "not yet" : "ok" };
}

function gitServers(
  hunting: Hunting | undefined,
  announcement: Announcement,
  services: readonly ServiceName[],
): PeerStatus[] {
  const { owner, identifier, clone } = announcement;
  const asked = new Map(
    (hunting?.askedServers({ owner, identifier }) ?? []).map((server) => [servicePart(server.url), server]),
  );
  const isOurs = (url: string): boolean => services.some((service) => pathBelowService(url, service) !== undefined);
  return clone
    .filter((url) => servicePart(url) !== undefined && !isOurs(url))
    .slice(0, maxPeers)
    .map((url): PeerStatus => {
      const server = asked.get(servicePart(url));
      const nothing = { url, type: "git server", at: undefined, lastClean: undefined, theyLack: undefined } as const;
      if (!server) return { ...nothing, result: "not yet" };
      return { ...nothing, at: server.askedAt, result: server.answer === "ok" ? "ok" : "failed" };
    });
}
