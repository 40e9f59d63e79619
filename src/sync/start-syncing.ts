// Sync as the server runs it: the engine with its settings, what purgatory reports to it, and what others may ask.

import { createHash } from "node:crypto";
import { keepPeers, keptPeers, type Members } from "../access/members.js";
import { repeatedly } from "../base/clock.js";
import type { Config } from "../config/config.js";
import type { Context } from "../context.js";
import { normalRelayUrl, type RelayUrl } from "../net/url.js";
import type { Pubkey } from "../nostr/event.js";
import type { Purgatory } from "../purgatory/purgatory.js";
import { syncConstants } from "./core/config.js";
import type { OutboxStanding } from "./core/outbox-standing.js";
import { type EngineRooms, SyncEngine } from "./engine.js";
import { createSyncMetrics } from "./metrics.js";
import { sayWhoWeAre } from "./own-profile.js";
import { type CopyStatus, copyStatus, type SyncStatus, syncStatus } from "./status.js";

interface UsedRooms extends Omit<EngineRooms, "runBy"> {
  readonly members: Members;
  /** The settings with the operator's run-time lists in them. */
  readonly inForce: () => Config;
  readonly purgatory: Purgatory;
  /** Left alone from the start. */
  readonly ignoredRelays: ReadonlySet<string>;
}

export type Syncing = Awaited<ReturnType<typeof startSyncing>>;

const lists = new Set([
  "NGIT_REPOSITORY_WHITELIST",
  "NGIT_REPOSITORY_BLACKLIST",
  "NGIT_EVENT_BLACKLIST",
  "NGIT_ARCHIVE_ALL",
  "NGIT_ARCHIVE_WHITELIST",
  "NGIT_ARCHIVE_GRASP_SERVICES",
  "NGIT_SYNC_BOOTSTRAP_RELAY_URL",
]);
/** Events that git data waits for are asked for again while the data is kept; after a start, when relays are followed. */
const askAgainMs = 10 * 60_000;
const firstAskMs = 5_000;
/** How soon a relay that is listed no more takes its operator's membership with it. */
const countPeersMs = 30_000;

const isOfAnnouncement = (relay: { readonly waitingOnly: boolean; readonly repositories: number }): boolean =>
  !relay.waitingOnly && relay.repositories > 0;

/** What is mirrored, and who is followed whatever they hold. */
const archiveText = (config: Config): string =>
  JSON.stringify([
    config.archiveAll,
    config.archiveWhitelist,
    config.archiveGraspServices,
    config.syncBootstrapRelayUrl,
  ]);

/** A service on this machine speaks without TLS, as our own does there. */
const relayOfService = (host: string): string =>
  `${/^(?:localhost|127\.|\[::1\])/.test(host) ? "ws" : "wss"}://${host}`;

/** Bootstrap relays, and the relays of services whose repositories are mirrored: new ones are announced there. */
const alwaysFollowed = (config: Config): RelayUrl[] =>
  normal([...config.syncBootstrapRelayUrl, ...config.archiveGraspServices.map(relayOfService)]);

const normal = (urls: readonly string[]): RelayUrl[] => urls.flatMap((url) => normalRelayUrl(url) ?? []);

/** What was refused under other rules, or by another version, is asked for again. */
function rulesOf(config: Config, version: string): string {
  const { repositoryWhitelist, repositoryBlacklist, eventBlacklist } = config;
  const { archiveAll, archiveWhitelist, archiveGraspServices } = config;
  const lists = [repositoryWhitelist, repositoryBlacklist, eventBlacklist, archiveWhitelist, archiveGraspServices];
  return createHash("sha256")
    .update(JSON.stringify([version, archiveAll, ...lists]))
    .digest("hex")
    .slice(0, 16);
}

export async function startSyncing(context: Context, parts: UsedRooms) {
  const { live, clock, services, version, registry, store, onFault } = context;
  const { purgatory } = parts;
  const inForceNow = () => {
    const settings = parts.inForce();
    return {
      ...settings,
      bootstrap: alwaysFollowed(settings),
      indexRelays: normal(settings.userIndexRelays),
      fallbackRelays: normal(settings.syncPlusFallbackRelays),
      rules: rulesOf(settings, version),
    };
  };
  // The core reads it when it needs it: what changes is written into it.
  const config = { ...inForceNow(), ...syncConstants, ownServices: services };
  const metrics = createSyncMetrics(registry, () => live.current.metricsMaxRelayLabels);
  const peers =
    live.current.privateMode && live.current.privatePeers ? new Map<string, readonly Pubkey[]>() : undefined;
  // What the last leader found holds until this one has had time to look.
  const inherited = new Set<string>();
  if (peers && store.isShared) {
    for (const { relay, pubkey } of await keptPeers(store)) {
      peers.set(relay, [...(peers.get(relay) ?? []), pubkey]);
      inherited.add(relay);
    }
  }
  let kept = "";
  const engine = new SyncEngine(context, config, metrics, {
    ...parts,
    runBy(relay, keys) {
      peers?.set(relay, keys);
      countPeers();
    },
  });

  /** GRASP-08: who runs a relay of an accepted announcement is a member while it is one. */
  function countPeers(): void {
    if (!peers) return;
    const listed = new Set(engine.snapshot().relays.flatMap((one) => (isOfAnnouncement(one) ? [one.relay] : [])));
    const counted = [...peers].flatMap(([relay, keys]) =>
      listed.has(relay) || inherited.has(relay) ? keys.map((pubkey) => ({ relay, pubkey })) : [],
    );
    for (const { relay, pubkey } of parts.members.setPeers(counted)) {
      context.logger.info({ relay, key: pubkey }, "the key that runs this relay counts as a member");
    }
    const found = JSON.stringify(counted);
    if (!store.isShared || found === kept) return;
    kept = found;
    store.transact(async (tx) => keepPeers(tx, counted), { mayWait: true }).catch(onFault);
  }
  const counting =
    peers &&
    repeatedly(
      clock,
      () => (live.current.test ? 200 : countPeersMs),
      async () => {
        inherited.clear();
        countPeers();
      },
      onFault,
    );
  engine.tell({ type: "ignoredRelays", relays: parts.ignoredRelays });
  const stopHearing = purgatory.bell.listen((notice) => engine.heard(notice));
  await engine.start();

  let archived = archiveText(parts.inForce());
  function followSettings(isAboutLists: boolean): void {
    const inForce = inForceNow();
    Object.assign(config, inForce, syncConstants);
    if (!isAboutLists) return;
    const before = archived;
    archived = archiveText(inForce);
    engine.tell({ type: "listsChanged", archive: archived !== before });
  }
  const stopListening = live.onChange((_changed, names) => followSettings(names.some((name) => lists.has(name))));
  const profile = await sayWhoWeAre(context, parts);
  let askMs = live.current.test ? 500 : firstAskMs;
  const asking = repeatedly(clock, () => askMs, askForAwaited, onFault);

  async function askForAwaited(): Promise<void> {
    askMs = askAgainMs;
    engine.askFor(purgatory.placeholders.rows);
  }

  return {
    /** The operator's rules changed at run time: what was refused may be welcome, relays are left alone or not. */
    rulesChanged(ignoredRelays: ReadonlySet<string>): void {
      engine.tell({ type: "ignoredRelays", relays: ignoredRelays });
      followSettings(true);
    },
    /** False: it is not followed, or left alone. */
    reconnect(relay: string): boolean {
      const followed = engine.snapshot().relays.find((one) => one.relay === relay);
      if (!followed || followed.ignored) return false;
      engine.tell({ type: "reconnect", relay });
      return true;
    },
    status: (): SyncStatus => syncStatus(engine, metrics),
    /** Where a repository (by coordinate) is followed, and when each copy was last compared clean. */
    copiesOf: (coordinate: string): CopyStatus[] => engine.copiesOf(coordinate).map(copyStatus),
    /** What is gathered for it at its participants' own relays; undefined where nothing is. */
    outboxOf: (coordinate: string): OutboxStanding | undefined => engine.outboxOf(coordinate),
    async close(): Promise<void> {
      stopListening();
      stopHearing();
      await asking.close();
      await counting?.close();
      await profile.close();
      await engine.close();
    },
  };
}
