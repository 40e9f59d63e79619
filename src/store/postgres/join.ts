// How a server that is alone becomes the beginning of a cluster, and how a machine of a cluster becomes a server of its own.
// Joining writes no event anew: the store's file becomes the cluster's first snapshot, and the log begins behind it. Every
// step can be done again after a crash; what makes it final is one transaction of the database.

import { randomUUID } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.js";
import { ifPresent, removeAll, replaceFile, syncPath } from "../../base/durable-files.js";
import { ClusterRefusal } from "../../cluster/check-database.js";
import { nodeFile, nodeIdentity } from "../../cluster/node-identity.js";
import type { DatabasePlace, Session } from "../../cluster/session.js";
import type { PackStore } from "../../packs/port.js";
import type { Applied } from "../engine/backend.js";
import { DatabaseFiles } from "../lmdb/database.js";
import { becomeView, lookIntoFolder, openLmdbStore, stopBeingView } from "../lmdb/open.js";
import { encodeBody } from "./body.js";
import { ChangeLog } from "./change-log.js";
import { claimPackStore, tryPackStore } from "./claim-packs.js";
import { prepareSchema } from "./schema.js";
import { digestOf, snapshotName } from "./snapshots.js";

export interface JoinParts {
  readonly session: Session;
  readonly place: DatabasePlace;
  readonly folder: string;
  readonly packs: PackStore;
  readonly serverKey: string;
  readonly clock: Clock;
  /** Puts every pack and large file into the pack store, and writes their rows into the store that is alone still. */
  readonly share: () => Promise<void>;
}

const joiningFile = "joining.json";
const keptFile = "events-before-joining.mdb";
/** The log of a cluster that began with a server's data begins here. */
const firstChange = 1;

/** Answers how many events came along. Throws a ClusterRefusal when it cannot be done. */
export async function joinCluster(parts: JoinParts): Promise<{ readonly cluster: string; readonly events: number }> {
  const { session, place, folder, packs } = parts;
  const found = await lookIntoFolder(folder);
  if (found.applied) {
    throw new ClusterRefusal("own-history", `${folder} is part of a cluster already: start the server`);
  }
  if (found.isEmpty) {
    throw new ClusterRefusal(
      "own-history",
      `${folder} has no events to bring along: start the server, and it takes part`,
    );
  }
  const { cluster } = await prepareSchema(session, place, parts.serverKey);
  await claimPackStore(session, place, packs, cluster);
  await tryPackStore(packs, folder, cluster);
  const log = new ChangeLog(place);
  const token = await joiningToken(folder, cluster);
  // A join that was cut short after its transaction: the log begins with it.
  const isBegun = (await log.tokenAt(session, firstChange)) === token;
  if (!isBegun) await mustBeNew(log, session, place);
  if (!isBegun) await parts.share();
  const aside = join(folder, "joining");
  await removeAll(aside);
  try {
    const events = await copyAsView(parts, aside, { n: firstChange, token });
    if (!isBegun) await beginLog(parts, log, aside, { n: firstChange, token });
    // The old file is kept: until the operator removes it, the way back is a renaming.
    await new DatabaseFiles(folder).replaceBy(join(aside, "events-1.mdb"), keptFile);
    await nodeIdentity(folder, cluster);
    await rm(join(folder, joiningFile), { force: true });
    return { cluster, events };
  } finally {
    await removeAll(aside);
  }
}

/** The same at each try, so that a try that came far is known again. */
async function joiningToken(folder: string, cluster: string): Promise<string> {
  const path = join(folder, joiningFile);
  const text = await ifPresent(readFile(path, "utf8"));
  const known = text === undefined ? undefined : (JSON.parse(text) as { cluster?: string; token?: string });
  if (known?.cluster === cluster && known.token !== undefined) return known.token;
  const token = randomUUID();
  await replaceFile(path, `${JSON.stringify({ cluster, token })}\n`);
  return token;
}

async function mustBeNew(log: ChangeLog, session: Session, place: DatabasePlace): Promise<void> {
  const { newest } = await log.ends(session);
  const [nodes] = await session.rows(`SELECT count(*) FROM ${place.schema}.node`);
  if (newest === 0 && Number(nodes?.[0]) === 0) return;
  throw new ClusterRefusal(
    "own-history",
    `the cluster at ${place.words} has data of its own, and two servers' data cannot become one this way: join with an empty data directory (start the server with one), or name a new cluster with NGIT_DATABASE_SCHEMA`,
  );
}

async function copyAsView({ folder, clock }: JoinParts, aside: string, applied: Applied): Promise<number> {
  const store = await openLmdbStore(folder, { clock });
  let events: number;
  try {
    events = store.stats.events;
    await store.snapshot(aside, () => undefined);
  } finally {
    await store.close();
  }
  await becomeView(aside, applied);
  return events;
}

async function beginLog(
  { session, packs, clock }: JoinParts,
  log: ChangeLog,
  aside: string,
  first: Applied,
): Promise<void> {
  const file = join(aside, "events-1.mdb");
  await packs.put(snapshotName({ ...first, madeMs: clock.nowMs(), digest: await digestOf(file) }), file);
  const store = await openLmdbStore(aside, { clock, readOnly: true });
  const { position } = store;
  await store.close();
  const body = encodeBody({ start: position, position, writes: [], tables: new Map(), passing: [] }) as Buffer;
  await log.lock(session);
  try {
    const { newest } = await log.ends(session);
    if (newest !== 0) throw new ClusterRefusal("own-history", "another machine has begun this cluster meanwhile");
    await log.append(session, first, { format: 1, node: "", position, body });
    await log.trim(session, first.n);
    await session.run("COMMIT");
  } catch (error) {
    await session.run("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

/** After it the folder is that of a server that is alone. The database forgets the machine if it can be reached. */
export async function leaveCluster(folder: string): Promise<void> {
  await stopBeingView(folder);
  await rm(join(folder, nodeFile), { force: true });
  await syncPath(folder);
}

export async function forgetNode(session: Session, place: DatabasePlace, node: string): Promise<void> {
  await session.rows(`DELETE FROM ${place.schema}.node WHERE node = $1`, [node]);
}
