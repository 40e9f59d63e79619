// Builds each room once, in this order, and closes them in reverse:
//   1. the data directory's lock   (not with the memory backend)
//   2. the server's key            made at the first start
//   3. git, and the verifier       begin while the store opens: their processes and threads take a while
//   4. the store
//   5. admission                   the rules for events, with what operators changed at run time
//   6. purgatory                   ends what a crash interrupted before anything is served
//   7. the door for events
//   8. the hunt                    for git data that is missing; repair of what drifted; housekeeping; large files
//   9. the service                 relay and HTTP server; from here on the port is open
//  10. the admin socket            (not with the memory backend)
//  11. sync                        follows our own feed and other relays
// Sync is loaded when the port is open, pages and the operator's API after that: the first answers do not wait for them.
// Rooms get what they need as arguments; nothing here is reachable from them.

import { Registry } from "prom-client";
import { followPeers } from "./access/members.js";
import { DailyBytes } from "./admission/at-the-door.js";
import type { AdmissionPolicy } from "./admission/verdict.js";
import { type Clock, repeatedly } from "./base/clock.js";
import { ClosingOrder } from "./base/closing-order.js";
import { DecisionLog } from "./catalogue/decisions.js";
import type { RepositoryName } from "./catalogue/repositories.js";
import { Leadership } from "./cluster/leadership.js";
import type { RepositoryLocks } from "./cluster/repository-locks.js";
import type { LiveConfig } from "./config/load.js";
import { type Logger, type LogRing, namingNoRepository } from "./config/logging.js";
import type { Context } from "./context.js";
import { returnFreeMemory } from "./free-memory.js";
import { openGitHost } from "./git/git-host.js";
import { createGitMetrics } from "./git/metrics.js";
import { startHousekeeping } from "./git/start-housekeeping.js";
import { type HuntingRoom, repairOf, startHunting } from "./hunt/start-hunting.js";
import { ArchiveReview } from "./intake/archive-review.js";
import { CarryOut } from "./intake/carry-out.js";
import { createIntake, notingParseFailures } from "./intake/intake.js";
import { MaintainerReview } from "./intake/maintainer-review.js";
import { Sweep } from "./intake/sweep.js";
import { LargeFilesRoom } from "./lfs/start-large-files.js";
import { verificationAdvice } from "./nostr/verify/advice.js";
import { createVerifierPool, type VerifierPool } from "./nostr/verify/pool.js";
import { BusyHours } from "./operator/busy-hours.js";
import { memoryShelves } from "./operator/login.js";
import { policyInForce, RunTimeRules } from "./operator/rules.js";
import { checkBeforeServing, openSocket, operatorOf } from "./operator/running.js";
import { VerifiedCopies } from "./operator/verified.js";
import type { PackStore } from "./packs/port.js";
import { repositoryCounter, watchProcess, withOwnMetrics } from "./process-metrics.js";
import { countEntries, createPurgatoryMetrics, purgatoryObserver } from "./purgatory/metrics.js";
import { Purgatory } from "./purgatory/purgatory.js";
import { createRelayMetrics } from "./relay/metrics.js";
import { type Service, startService } from "./service.js";
import { closeFolders, identityOf, keepPrivate, lockedData, startFailure } from "./start-refusal.js";
import { Disks, type ReadDisk } from "./store/disk-space.js";
import { openStore } from "./store/open-store.js";
import type { Store } from "./store/port.js";
import { survivable } from "./survivable-errors.js";
import type { Syncing } from "./sync/start-syncing.js";
import type { Machines } from "./web/status-page.js";

export interface Server {
  readonly address: string;
  /** A link that logs one browser in as operator, once. */
  readonly loginLink?: () => Promise<string>;
  /** Closes what was built, last first. Never throws: what would not close is logged. */
  close(): Promise<void>;
  /** The part that is being closed now. */
  readonly closing?: () => string | undefined;
}

export interface StartParts {
  readonly live: LiveConfig;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly build: { readonly version: string; readonly commit: string };
  readonly cores: number;
  /** Something the server relies on broke: it cannot go on. */
  readonly onFault: (error: unknown) => void;
  /**
   * One request or message failed at a bug of ours. It was answered and nothing of it was stored: whoever can send it
   * again must not be able to end the server with it. Logged when not given.
   */
  readonly onRequestFault?: (error: unknown) => void;
  /**
   * This machine's copy of a cluster's data is of another history, or another machine has its name: it serves nothing any more
   * until it is closed and started again, which builds the copy anew.
   */
  readonly beginAnew?: (error: Error) => void;
  /** What ran as a private service may be shown to everybody from now on. */
  readonly openPrivateData?: boolean;
  /** What the admin page shows of the log; nothing when not given. */
  readonly recentLog?: LogRing;
  /** Instead of the one the settings ask for, and not closed here; for tests that look into it or start again on it. */
  readonly store?: Store;
  /** Instead of one of its own, and not closed here; for tests that start many servers in one process. */
  readonly verifier?: VerifierPool;
  /** Who does what one machine of a cluster does; a server without it is alone and leads. */
  readonly leadership?: Leadership;
  /** Where the machines of a cluster share their packs. */
  readonly packs?: PackStore;
  /** So that they do not do the same work twice. */
  readonly locks?: RepositoryLocks;
  /** Where metrics are registered; several machines have some of their own in it already. */
  readonly registry?: Registry;
  /** How many machines there are, and how many of them answer; nothing for a server that is alone. */
  readonly machines?: () => Machines | undefined;
  /** Instead of GRASP's rules; for tests and benchmarks of the relay alone. No setting reaches it. */
  readonly policy?: AdmissionPolicy;
  /** Instead of asking the system how full its disks are; for tests. */
  readonly readDisk?: ReadDisk;
}

export async function startServer(parts: StartParts): Promise<Server> {
  const { live, clock } = parts;
  const logger = live.current.privateMode ? namingNoRepository(parts.logger) : parts.logger;
  const onFault = survivable(logger, parts.onFault);
  const config = live.current;
  const closing = new ClosingOrder(logger);
  try {
    // A machine of a cluster has locked its data before it took its place there.
    if (config.databaseBackend === "lmdb") {
      const release = lockedData(config);
      closing.add("lock", async () => release());
    }
    const { secret, services } = identityOf(config);

    const registry = parts.registry ?? new Registry();
    // Metrics of a private service name no repository.
    const gitMetrics = createGitMetrics(registry, () => (config.privateMode ? 0 : live.current.metricsTopNRepos));
    const openingStore = parts.store
      ? Promise.resolve(parts.store)
      : openStore(config, clock, (sentence) => logger.info(sentence));
    const leadership = parts.leadership ?? new Leadership();
    const shared = parts.packs && { packs: parts.packs, leads: () => leadership.leads, locks: parts.locks };
    const openingGit = closing.addOpening("git", openGitHost(config, clock, openingStore, gitMetrics.started, shared));
    const openingVerifier =
      parts.verifier ?? closing.addOpening("verifier", createVerifierPool({ workers: verifierWorkers(parts.cores) }));
    const store = await openingStore;
    if (!parts.store) closing.add("store", () => store.close());
    await keepPrivate(store, config.privateMode, parts.openPrivateData ?? false, logger);
    const context: Context = {
      ...{ live, clock, logger, registry, store, onFault },
      services,
      serverKey: secret.pubkey,
      version: parts.build.version,
    };

    const decisions = new DecisionLog({
      store,
      clock,
      failed: (error) => logger.warn({ err: error }, "decision records could not be written yet"),
    });
    closing.add("decisions", () => decisions.written());
    const gitHost = await openingGit;
    closeFolders(
      config.databaseBackend === "memory" ? [config.gitDataPath] : [config.relayDataPath, config.gitDataPath],
    );
    await gitHost.repositories.sweep();

    const disks = await Disks.open(config, clock, parts.readDisk);
    closing.add("disks", () => disks.close());
    disks.measure(registry);

    const rules = new RunTimeRules(store);
    await rules.refresh();
    const stopFollowing = store.onForeignCommit((commit) => rules.follow(commit));
    closing.add("rules", async () => stopFollowing());
    const { inForce, settings, members, policy } = policyInForce(live, rules, secret.pubkey, services);
    const stopTellingMembers = live.onChange(() => members.changed());
    const stopFollowingPeers = await followPeers(store, members);
    closing.add("members", async () => {
      stopTellingMembers();
      stopFollowingPeers();
    });

    // Built last, and asked before that by what is built first.
    let syncing: Syncing | undefined;
    let port: Service | undefined;
    const purgatoryMetrics = createPurgatoryMetrics(registry, () => countEntries(store));
    const purgatory = new Purgatory({
      store,
      repositories: gitHost.repositories,
      clock,
      live,
      disks,
      observer: purgatoryObserver(logger, purgatoryMetrics, decisions, clock),
      ...(config.grasp06Enable && { contributorRules: { services, lists: settings.lists } }),
    });
    const carryOut = new CarryOut(purgatory);
    if (leadership.leads) await new MaintainerReview(context, carryOut).adopt();
    await purgatory.resume();
    closing.add("purgatory", () => purgatory.close());
    /** What one machine does for all of a cluster. Its works fail once another machine leads. */
    const whileLeading = (start: (context: Context) => Promise<Room>): Promise<Room> =>
      leadership.whileLeading(async (epoch) => await start(await ledContext(context, epoch)), onFault);
    const clocks = await whileLeading(({ ledBy }) => purgatory.startClocks(ledBy));
    closing.add("clocks", () => clocks.close());
    const sweeping = await whileLeading(async (led) => {
      const sweep = new Sweep(carryOut, led);
      return repeatedly(
        clock,
        () => live.current.purgatorySweepIntervalMs,
        () => sweep.run(),
        onFault,
      );
    });
    closing.add("sweeping", () => sweeping.close());
    const freeMemory = returnFreeMemory(clock, onFault);
    closing.add("free memory", () => freeMemory.close());

    const verifier = await openingVerifier;
    logger.info({ engine: verifier.engine, git: gitHost.git.version, events: store.stats.events }, "store open");
    const advice = verificationAdvice(verifier.engine);
    if (advice !== undefined) logger.warn(advice);

    const busyHours = await BusyHours.open({ ...context, diskUsed: () => disks.fullest });
    closing.add("busy hours", () => busyHours.close());
    const relayMetrics = createRelayMetrics(registry, () => live.current.metricsConnectionPerIpAbuseThreshold);
    const intake = createIntake({
      store,
      verifier,
      policy: parts.policy ?? policy,
      carryOut,
      gitFailed: (event, error) => logger.error({ err: error, id: event.id }, "git could not follow an accepted event"),
      ...(parts.policy ? {} : { decisions }),
      disks,
      dailyBytes: new DailyBytes(clock, live),
      clock,
      live,
      observer: notingParseFailures(relayMetrics.intakeObserver, logger),
    });
    closing.add("intake", () => intake.idle());

    const repositoryCount = repositoryCounter(context);
    watchProcess(context, parts.build.commit, verifier.engine, repositoryCount);
    let hunt: HuntingRoom | undefined;
    const repair = repairOf(context, { gitHost, purgatory }, (name, found) => hunt?.hunting.found(name, found));
    gitHost.repositories.shared?.onLoss((address) => repair.damaged(address).catch(onFault));
    const hunts = await whileLeading((led) =>
      withOwnMetrics(registry, async () => {
        const repaired = (name: RepositoryName): Promise<unknown> => repair.check(name);
        const started = await startHunting(led, { gitHost, purgatory, repaired, serverSecret: secret });
        hunt = started;
        void gitHost.repositories.shared?.tellLosses().catch(onFault);
        return {
          close: () => {
            hunt = undefined;
            return started.close();
          },
        };
      }),
    );
    closing.add("hunt", () => hunts.close());
    repair.open();
    closing.add("repair", () => repair.close());
    const housekeeping = await startHousekeeping(context, gitHost, disks);
    closing.add("housekeeping", () => housekeeping.close());
    // What changed while another machine led is repacked by the one that leads now.
    leadership.onBegin = () => void housekeeping.lookAtAll().catch(onFault);
    if (parts.packs) {
      const { startPackCleaning } = await import("./git/start-pack-cleaning.js");
      const { packs } = parts;
      const cleaning = await whileLeading(async (led) => startPackCleaning(led, packs));
      closing.add("pack cleaning", () => cleaning.close());
    }
    const largeFiles = config.lfsEnable
      ? new LargeFilesRoom(context, { gitHost, purgatory, serverSecret: secret })
      : undefined;
    let ledFiles: Room | undefined;
    closing.add("large files' leader", async () => ledFiles?.close());
    closing.add("large files", async () => largeFiles?.close());
    await largeFiles?.open();
    ledFiles = largeFiles && (await whileLeading(({ ledBy }) => largeFiles.lead(ledBy)));
    const verifiedCopies = new VerifiedCopies();
    const operator = operatorOf(context, {
      ...{ rules, adminKeys: settings.adminKeys, gitHost, carryOut, verifier, decisions, intake, repositoryCount },
      ...{ members, serverSecret: secret },
      shelves: store.isShared
        ? (await import("./operator/row-shelf.js")).rowShelves(store, clock)
        : memoryShelves(clock),
      verified: (name, verified) => verifiedCopies.note(name, verified),
      housekeep: (address, kind, signal) => housekeeping.run(address, kind, signal),
      askedServers: (name) =>
        hunt?.hunting.askedServers(name).map(({ url, askedAt, answer }) => ({ url, at: askedAt, answer })) ?? [],
      isFetching: (name) => hunt?.hunting.isAtWork(name) ?? false,
      damaged: (name) => repair.damaged(name),
      checkLargeFiles: async (name) => (await largeFiles?.check(name)) ?? [],
      askedForLargeFiles: (name) => largeFiles?.asked(name) ?? [],
      askNow: (name) => hunt?.hunting.askNow(name) ?? false,
      relays: { status: () => syncing?.status().relays ?? [], reconnect: (key) => syncing?.reconnect(key) ?? false },
      traffic: () => port?.traffic,
    });
    const onRequestFault =
      parts.onRequestFault ?? ((error) => logger.error({ err: error }, "a request failed: this is a bug"));
    await checkBeforeServing(operator, context);
    const service = await startService(
      { ...context, onFault: onRequestFault },
      {
        ...{ operator, verifier, intake, gitHost, purgatory, relayMetrics, gitMetrics, repositoryCount, members },
        busyHours,
        ...(largeFiles && { largeFiles }),
        isDiskFit: () => disks.fullest * 100 < live.current.diskEventsMaxPercent,
        ...(parts.recentLog && { recentLog: parts.recentLog }),
        syncStatus: () => syncing?.status(),
        status: async () => {
          const { statusSources } = await import("./web/status-sources.js");
          return statusSources(context, {
            hunting: () => hunt?.hunting,
            sync: () => syncing,
            verified: verifiedCopies,
            ...(parts.machines && { machines: parts.machines }),
          });
        },
      },
    );
    port = service;
    closing.add("service", () => service.close());
    if (config.databaseBackend !== "memory") {
      const socket = await openSocket(operator, config.relayDataPath, logger);
      closing.add("admin socket", () => socket.close());
    }
    const ignoredRelays = (): ReadonlySet<string> => new Set(rules.ignoredRelays.keys());
    let syncs: Room | undefined;
    if (!parts.policy) {
      const { startSyncing } = await import("./sync/start-syncing.js");
      const start = async (led: Context): Promise<Room> => {
        const started = await startSyncing(led, {
          ...{ inForce, intake, purgatory, members, serverSecret: secret },
          ignoredRelays: ignoredRelays(),
          servedThere: (id, relay) => hunt?.hunting.servedBy(id, relay),
        });
        syncing = started;
        return {
          close: async () => {
            syncing = undefined;
            await started.close();
          },
        };
      };
      syncs = await whileLeading((led) => withOwnMetrics(registry, () => start(led)));
    }
    const stopTelling = rules.onRefresh(() => syncing?.rulesChanged(ignoredRelays()));
    closing.add("sync", async () => {
      stopTelling();
      await syncs?.close();
    });
    const reviews = await whileLeading(async (led) => {
      const archive = new ArchiveReview(led, { settings, carryOut });
      const maintainers = new MaintainerReview(led, carryOut);
      const start = (): void => {
        archive.start();
        maintainers.start();
      };
      const stops = [live.onChange(start), rules.onRefresh(() => archive.start())];
      start();
      return {
        async close() {
          for (const stop of stops) stop();
          await archive.close();
          await maintainers.close();
        },
      };
    });
    closing.add("reviews", () => reviews.close());
    const { publicUrl, links } = operator.api;
    const loginLink = async (): Promise<string> => `${publicUrl}/admin/login?token=${await links.issue()}`;
    return { address: service.address, loginLink, close: () => closing.close(), closing: () => closing.current };
  } catch (error) {
    await closing.close();
    throw startFailure(error);
  }
}

interface Room {
  close(): Promise<void>;
}

async function ledContext(context: Context, epoch: number | undefined): Promise<Context> {
  if (epoch === undefined) return context;
  const { ledStore } = await import("./store/led-store.js");
  return { ...context, store: ledStore(context.store, epoch), ledBy: { epoch } };
}

/** One core for the event loop and the store's writer, the rest for signatures. */
const verifierWorkers = (cores: number): number => Math.max(1, Math.min(8, cores - 1));
