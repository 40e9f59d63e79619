// What the database tells of a cluster: who takes part, who leads, how long the log is. For `holdfast cluster status`, the
// status page and the metrics; it changes nothing and works while no server runs here.

import type { Clock } from "../../base/clock.js";
import { checkDatabase } from "../../cluster/check-database.js";
import { databasePlace } from "../../cluster/database-place.js";
import { aliveSeconds } from "../../cluster/node-life.js";
import { type DatabasePlace, Session } from "../../cluster/session.js";
import { ChangeLog } from "./change-log.js";

export interface NodeStatus {
  readonly node: string;
  /** What people call it. */
  readonly name: string;
  readonly version: string;
  /** The newest format it reads. */
  readonly format: number;
  /** The change its view has. */
  readonly applied: number;
  readonly leads: boolean;
  readonly isAlive: boolean;
  readonly silentSeconds: number;
  readonly startedSecondsAgo: number;
}

export interface ClusterStatus {
  readonly cluster: string;
  /** The server's public key. */
  readonly serverKey: string;
  /** How changes are written. */
  readonly format: number;
  readonly oldest: number;
  readonly newest: number;
  readonly logBytes: number;
  readonly epoch: number;
  readonly nodes: readonly NodeStatus[];
  /** Host, port and name of the database. */
  readonly database: string;
}

export async function readStatus(session: Session, place: DatabasePlace): Promise<ClusterStatus | undefined> {
  const { schema, words } = place;
  const [there] = await session.rows("SELECT to_regclass($1) IS NOT NULL", [`${schema}.format`]);
  if (there?.[0] !== "t") return undefined;
  const log = new ChangeLog(place);
  const [row = []] = await session.rows(
    `SELECT cluster, format, server_key, epoch, leader.node FROM ${schema}.format, ${schema}.leader`,
  );
  const [cluster, format, serverKey, epoch, leader] = row;
  const nodes = await session.rows(
    `SELECT node, name, version, format, applied, extract(epoch FROM clock_timestamp() - seen),
       extract(epoch FROM clock_timestamp() - started)
     FROM ${schema}.node ORDER BY name, node`,
  );
  return {
    cluster: cluster ?? "",
    serverKey: serverKey ?? "",
    format: Number(format),
    epoch: Number(epoch),
    ...(await log.ends(session)),
    logBytes: await log.bytes(session),
    database: words,
    nodes: nodes.map(([node, name, version, reads, applied, silent, started]) => {
      const isAlive = Number(silent) < aliveSeconds;
      return {
        ...{ node: node ?? "", name: name ?? "", version: version ?? "", isAlive },
        format: Number(reads),
        applied: Number(applied),
        leads: isAlive && node === leader,
        silentSeconds: Math.max(0, Math.round(Number(silent))),
        startedSecondsAgo: Math.max(0, Math.round(Number(started))),
      };
    }),
  };
}

/** A session for one question; refuses by name when the database cannot be asked. */
export async function askDatabase<T>(
  { url, schema }: { readonly url: string; readonly schema: string },
  clock: Clock,
  work: (session: Session, place: DatabasePlace) => Promise<T>,
): Promise<T> {
  const place = databasePlace(url, schema);
  await checkDatabase(place, clock);
  return inSession(place, clock, work);
}

/** For a server that runs: it has checked the database at its start. */
export async function inSession<T>(
  place: DatabasePlace,
  clock: Clock,
  work: (session: Session, place: DatabasePlace) => Promise<T>,
): Promise<T> {
  const session = await Session.open(place, { clock, name: "holdfast cluster" });
  try {
    return await work(session, place);
  } finally {
    await session.close();
  }
}

/** Pure. Why the cluster cannot write the newer format yet; undefined when it can. */
export function whatKeepsFormat(status: Pick<ClusterStatus, "nodes" | "format">, wanted: number): string | undefined {
  const older = status.nodes.filter(({ isAlive, format }) => isAlive && format < wanted);
  if (older.length === 0) return undefined;
  const names = older.map(({ name, version }) => `${name} (${version})`).join(", ");
  return `${names} cannot read format ${wanted}: install this version there, restart it, and try again`;
}

/**
 * From now on all machines write that format. Under the lock of the order: a machine that starts meanwhile has told what
 * it reads, or reads the new format's number before it writes.
 */
export async function raiseFormat(session: Session, place: DatabasePlace, wanted: number): Promise<string | undefined> {
  const log = new ChangeLog(place);
  await log.lock(session);
  try {
    const status = await readStatus(session, place);
    const hindrance = status && whatKeepsFormat(status, wanted);
    if (hindrance === undefined) {
      await session.rows(`UPDATE ${place.schema}.format SET format = $1 WHERE format < $1`, [wanted]);
    }
    await session.run("COMMIT");
    return hindrance;
  } catch (error) {
    await session.run("ROLLBACK").catch(() => undefined);
    throw error;
  }
}
