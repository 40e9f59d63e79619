// Opens a machine's store in a cluster. In this order, each step refusing by name: the database can carry a cluster; its
// tables; whose data directory and pack store these are; the identity is ours alone; the view on disk, or a new one; what the log has since.

import { type Clock, repeatedly } from "../../base/clock.js";
import { checkDatabase } from "../../cluster/check-database.js";
import { ClusterClock } from "../../cluster/cluster-clock.js";
import { databasePlace } from "../../cluster/database-place.js";
import { nodeIdentity } from "../../cluster/node-identity.js";
import { NodeLife } from "../../cluster/node-life.js";
import { Session } from "../../cluster/session.js";
import type { PackStore } from "../../packs/port.js";
import type { EngineStore } from "../engine/engine.js";
import { openLmdbEngine } from "../lmdb/open.js";
import { newestFormat } from "./body.js";
import { ChangeLog } from "./change-log.js";
import { claimPackStore, tryPackStore } from "./claim-packs.js";
import { prepareView } from "./local-view.js";
import { prepareSchema } from "./schema.js";
import { type CommitStep, type OrderFacts, SharedOrder } from "./shared-order.js";
import type { TrimLimits } from "./snapshots.js";
import { trimLog } from "./trimming.js";

export interface ClusterStoreParts {
  readonly url: string;
  /** Instead of `holdfast`; several clusters may share a database. */
  readonly schema?: string;
  /** The machine's own: its view, and who it is. */
  readonly folder: string;
  /** The machine's own. */
  readonly clock: Clock;
  /** What is taken for the cluster's time, made from the database's; for tests that drive it. */
  readonly timeFrom?: (database: Clock) => Clock;
  /** The server's public key, the same on all machines. */
  readonly serverKey: string;
  /** What people call the machine. */
  readonly name: string;
  readonly version: string;
  /** Shared by all machines; without it there are no snapshots, and the log is never trimmed. */
  readonly packs?: PackStore;
  readonly tell?: (sentence: string) => void;
  readonly warn?: (sentence: string) => void;
  /** It must stop serving: its history is another one, or its identity is taken. */
  readonly fault: (error: Error) => void;
  /** A commit waited for its turn and held it. */
  readonly turned?: (waitMs: number, holdMs: number) => void;
  /** False for a command that works for a moment: the leader's work must not wait for it. */
  readonly mayLead?: boolean;
  readonly leads?: (epoch: number) => void;
  readonly leadsNoMore?: () => void;
  readonly maxQueuedWorks?: number;
  readonly indexAtRows?: number;
  readonly freeBytes?: () => Promise<number>;
  /** Stops at a step of a commit; for tests that end the process there. */
  readonly at?: (step: CommitStep) => Promise<void> | undefined;
}

export interface ClusterStore {
  readonly store: EngineStore;
  /** The cluster's time. */
  readonly clock: Clock;
  readonly node: string;
  /** The epoch this machine leads in; undefined when it does not lead. */
  readonly epoch: number | undefined;
  readonly facts: OrderFacts;
  /** Makes a snapshot if one is due and forgets what nobody needs; the leader does it every hour. Answers how many changes went. */
  trim(limits?: Partial<TrimLimits>): Promise<number>;
  close(): Promise<void>;
}

const trimEveryMs = 3_600_000;

export async function openClusterStore(parts: ClusterStoreParts): Promise<ClusterStore> {
  const { clock: own, folder, tell = () => undefined, warn = () => undefined } = parts;
  const place = databasePlace(parts.url, parts.schema);
  await checkDatabase(place, own);
  const session = await Session.open(place, { clock: own, name: "holdfast start" });
  const log = new ChangeLog(place);
  const database = new ClusterClock(own, (byMs) =>
    warn(`this machine's clock is wrong by ${Math.round(byMs / 1_000)} seconds; the cluster's time is the database's`),
  );
  const clock = parts.timeFrom?.(database) ?? database;
  const measured = (databaseMs: number, askedMs: number): void => database.measured(databaseMs, askedMs);
  const opened: { life?: NodeLife; order?: SharedOrder; store?: EngineStore } = {};
  const closeAll = async (): Promise<void> => {
    await opened.store?.close();
    await opened.life?.close();
  };
  try {
    const { cluster, format } = await prepareSchema(session, place, parts.serverKey);
    let writtenFormat = format;
    const node = await nodeIdentity(folder, cluster);
    if (parts.packs) {
      await claimPackStore(session, place, parts.packs, cluster);
      await tryPackStore(parts.packs, folder, node);
    }
    opened.life = await NodeLife.begin({
      ...{ place, clock: own, node, name: parts.name, version: parts.version, format: newestFormat, measured },
      applied: () => opened.order?.facts.applied ?? 0,
      writes: (written) => {
        writtenFormat = written;
      },
      mayLead: parts.mayLead ?? true,
      leads: (epoch) => {
        // A request to vanish that another machine did not finish.
        opened.store?.resume();
        parts.leads?.(epoch);
      },
      ...(parts.leadsNoMore && { leadsNoMore: parts.leadsNoMore }),
      fault: parts.fault,
    });
    const begins = await prepareView({ folder, log, session, packs: parts.packs, tell });
    const { maxQueuedWorks, indexAtRows, freeBytes } = parts;
    const options = {
      clock,
      ...(maxQueuedWorks !== undefined && { maxQueuedWorks }),
      ...(indexAtRows !== undefined && { indexAtRows }),
      ...(freeBytes && { freeBytes }),
    };
    const store = await openLmdbEngine(folder, options, {
      begins,
      order: (view) => {
        opened.order = new SharedOrder({
          ...{ view, place, node, clock: own, measured },
          format: () => writtenFormat,
          catchUp: () => opened.store?.catchUp() ?? Promise.resolve(),
          diverged: parts.fault,
          ...(parts.turned && { turned: parts.turned }),
          ...(parts.at && { at: parts.at }),
        });
        return opened.order;
      },
    });
    opened.store = store;
    await store.catchUp();
    const { order, life } = opened as { order: SharedOrder; life: NodeLife };
    const trim = (limits: Partial<TrimLimits> = {}): Promise<number> =>
      parts.packs
        ? trimLog({ ...{ place, own, log, store, folder, clock }, packs: parts.packs }, limits)
        : Promise.resolve(0);
    const trimming = repeatedly(
      own,
      () => trimEveryMs,
      async () => {
        if (life.epoch !== undefined) await trim();
      },
      (error) => warn(`the shared log could not be trimmed: ${String(error)}`),
    );
    return {
      ...{ store, clock, node, trim },
      get epoch() {
        return life.epoch;
      },
      get facts() {
        return order.facts;
      },
      close: async () => {
        await trimming.close();
        await closeAll();
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  } finally {
    await session.close();
  }
}
