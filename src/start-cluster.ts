// A server that is one of several machines: its place in the cluster first (lock, key, pack store, shared log), then the
// same server as ever on top of it. Loaded only when the settings ask for the postgres backend.

import { Registry } from "prom-client";
import { repeatedly } from "./base/clock.js";
import { ClosingOrder } from "./base/closing-order.js";
import { ClusterRefusal } from "./cluster/check-database.js";
import { databasePlace } from "./cluster/database-place.js";
import { Leadership } from "./cluster/leadership.js";
import { RepositoryLocks } from "./cluster/repository-locks.js";
import type { DatabasePlace, Session } from "./cluster/session.js";
import { counted, createClusterMetrics } from "./cluster-metrics.js";
import { clusterPlace } from "./config/cluster-place.js";
import { problemText } from "./config/config.js";
import { openPackStore } from "./packs/open-pack-store.js";
import { type Server, type StartParts, startServer } from "./server.js";
import { identityOf, lockedData, StartRefusal } from "./start-refusal.js";
import { forgetLongSilent } from "./store/postgres/forgetting.js";
import { type ClusterStore, type ClusterStoreParts, openClusterStore } from "./store/postgres/open.js";
import { forgetSettings, nodesWithSettings, watchRuleSettings } from "./store/postgres/rule-settings.js";
import { type ClusterStatus, inSession, readStatus } from "./store/postgres/status.js";
import type { Machines } from "./web/status-page.js";

const lookEveryMs = 15_000;

/** `clock` is the machine's own. */
interface ClusterStartParts extends StartParts, Pick<ClusterStoreParts, "timeFrom"> {}

export async function startClusterServer(parts: ClusterStartParts): Promise<Server> {
  const { live, logger, clock: own, timeFrom } = parts;
  const config = live.current;
  const closing = new ClosingOrder(logger);
  try {
    const release = lockedData(config);
    closing.add("lock", async () => release());
    const place = clusterPlace(config);
    if (!place.ok) throw new StartRefusal(problemText(place.problem));
    const { url, schema, name } = place.value;
    const registry = new Registry();
    const metrics = createClusterMetrics(registry);
    const packs = counted(await openPackStore(place.value.packs), metrics.packStore);
    closing.add("pack store", () => packs.close());
    const leadership = new Leadership(own);
    const cluster = await openClusterStore({
      ...{ url, schema, name, packs, clock: own, turned: metrics.turn },
      ...(timeFrom && { timeFrom }),
      folder: config.relayDataPath,
      serverKey: identityOf(config).secret.pubkey,
      version: parts.build.version,
      tell: (sentence) => logger.info(sentence),
      warn: (sentence) => logger.warn(sentence),
      fault: (error) => (parts.beginAnew ?? parts.onFault)(error),
      leads(epoch) {
        logger.info({ epoch }, "this machine leads: it syncs, hunts and tidies for all of them");
        leadership.begin(epoch);
      },
      leadsNoMore() {
        logger.info("this machine does not lead any more");
        leadership.end();
      },
    });
    closing.add("store", () => cluster.close());
    const database = databasePlace(url, schema);
    let status: ClusterStatus | undefined;
    const look = async (): Promise<void> => {
      // Asked before the machines: a machine has its row before it tells its settings.
      const told = await nodesWithSettings(cluster.store);
      status = await inSession(database, own, async (session) => {
        if (cluster.epoch !== undefined) await forgetLost(session, database, logger);
        return readStatus(session, database);
      });
      const known = new Set(status?.nodes.map(({ node }) => node));
      if (cluster.epoch === undefined) return;
      const forgotten = told.filter((node) => !known.has(node));
      await forgetSettings(cluster.store, forgotten);
    };
    await look();
    const looking = repeatedly(
      own,
      () => lookEveryMs,
      look,
      () => undefined,
    );
    closing.add("looking", () => looking.close());
    metrics.watch(cluster, name, () => status);
    const settings = await watchRuleSettings({
      ...{ store: cluster.store, node: cluster.node, name, live },
      warn: (sentence) => logger.warn(sentence),
      failed: (error) => logger.warn({ err: error }, "this machine's settings could not be told to the others yet"),
    });
    closing.add("settings", () => settings.close());
    logger.info({ cluster: status?.cluster, node: cluster.node, name, packs: packs.words }, "part of a cluster");
    const locks = new RepositoryLocks({ place: database, clock: own, name });
    await locks.open();
    closing.add("repository locks", () => locks.close());
    const server = await startServer({
      ...{ ...parts, registry, leadership, packs, locks, store: cluster.store, clock: cluster.clock },
      machines: () => status && machinesOf(status, cluster.facts),
    });
    closing.add("server", () => server.close());
    const partClosing = (): string | undefined => (closing.current === "server" ? server.closing?.() : closing.current);
    return { ...server, close: () => closing.close(), closing: partClosing };
  } catch (error) {
    await closing.close();
    throw error instanceof ClusterRefusal ? new StartRefusal(`${error.message} (${error.code})`) : error;
  }
}

async function forgetLost(session: Session, database: DatabasePlace, logger: StartParts["logger"]): Promise<void> {
  for (const name of await forgetLongSilent(session, database)) {
    logger.info({ name }, "a machine of the cluster was silent for more than a day and is forgotten");
  }
}

function machinesOf({ nodes }: ClusterStatus, { newest, applied }: ClusterStore["facts"]): Machines {
  return { all: nodes.length, alive: nodes.filter(({ isAlive }) => isAlive).length, behind: newest - applied };
}
