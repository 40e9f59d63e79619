// The tables of a cluster in PostgreSQL, made and changed under a lock of their own, so that machines that start together do
// not get in each other's way.
//   change  the log: one row a commit; `n` counts them. Row 0 is the beginning and changes nothing
//   node    who takes part, what it can read and how far it has come
//   leader  whose turn it is to do what one machine does; `epoch` grows with each change of leader
//   format  which cluster this is, how bodies are written until every machine can read a newer form, and whose pack store is its

import { randomUUID } from "node:crypto";
import { ClusterRefusal } from "../../cluster/check-database.js";
import { clusterLocks } from "../../cluster/locks.js";
import { type DatabasePlace, type Session, sqlState } from "../../cluster/session.js";
import { encodeBody, newestFormat } from "./body.js";

/** Steps from an empty schema to today's; a step that was released never changes. */
const steps: readonly ((schema: string) => string)[] = [
  (schema) => `
    CREATE TABLE ${schema}.change (
      n bigint PRIMARY KEY, token uuid NOT NULL, format int NOT NULL, node text NOT NULL,
      position bigint NOT NULL, body bytea NOT NULL);
    ALTER TABLE ${schema}.change ALTER COLUMN body SET STORAGE EXTERNAL;
    CREATE TABLE ${schema}.node (
      node uuid PRIMARY KEY, name text NOT NULL, version text NOT NULL, format int NOT NULL, applied bigint NOT NULL,
      started timestamptz NOT NULL DEFAULT clock_timestamp(), seen timestamptz NOT NULL DEFAULT clock_timestamp());
    CREATE TABLE ${schema}.leader (
      one boolean PRIMARY KEY DEFAULT true CHECK (one), epoch bigint NOT NULL, node text NOT NULL,
      since timestamptz NOT NULL DEFAULT clock_timestamp());
    INSERT INTO ${schema}.leader (epoch, node) VALUES (0, '');`,
];

export interface ClusterFacts {
  /** Tells this cluster from every other. */
  readonly cluster: string;
  /** How bodies are written. */
  readonly format: number;
}

const beginning = encodeBody({ start: 0, position: 0, writes: [], tables: new Map(), passing: [] }) as Buffer;

/**
 * Brings the schema up to date and answers which cluster it holds. The first machine writes the server's key into it; a machine
 * with another key is refused, because remote relays and git hosts must see one server.
 */
export async function prepareSchema(session: Session, place: DatabasePlace, serverKey: string): Promise<ClusterFacts> {
  const { schema } = place;
  await session.run(`BEGIN; SELECT pg_advisory_xact_lock(${clusterLocks(schema).schema})`);
  try {
    await makeSchema(session, schema, serverKey);
    await session.run("COMMIT");
  } catch (error) {
    await session.run("ROLLBACK").catch(() => undefined);
    if (sqlState(error) === "42501") {
      throw new ClusterRefusal(
        "no-rights",
        `the role may not make or change tables of schema ${schema}: ${String(error)}`,
      );
    }
    throw error;
  }
  const [row = []] = await session.rows(`SELECT cluster, format, steps, server_key FROM ${schema}.format`);
  const [cluster, format, done, key] = row;
  if (Number(done) > steps.length || Number(format) > newestFormat) {
    throw new ClusterRefusal(
      "newer-format",
      `the cluster writes format ${format} (tables ${done}); this program knows ${newestFormat} (${steps.length}): install the newer version here`,
    );
  }
  if (key !== serverKey) {
    throw new ClusterRefusal(
      "other-key",
      `the cluster's server key is ${key}, this machine's is ${serverKey}: copy server.key from another machine, or set NGIT_RELAY_OWNER_NSEC alike on all`,
    );
  }
  return { cluster: cluster ?? "", format: Number(format) };
}

async function makeSchema(session: Session, schema: string, serverKey: string): Promise<void> {
  const [there] = await session.rows("SELECT to_regclass($1) IS NOT NULL", [`${schema}.format`]);
  if (there?.[0] !== "t") {
    // Only if it is missing: a role may use a schema that it could not make.
    const [found] = await session.rows("SELECT to_regnamespace($1) IS NOT NULL", [schema]);
    if (found?.[0] !== "t") await session.run(`CREATE SCHEMA ${schema}`);
    await session.run(`
      CREATE TABLE ${schema}.format (
        one boolean PRIMARY KEY DEFAULT true CHECK (one), cluster uuid NOT NULL, format int NOT NULL, steps int NOT NULL,
        server_key text NOT NULL, packs uuid);
      INSERT INTO ${schema}.format (cluster, format, steps, server_key)
        VALUES ('${randomUUID()}', ${newestFormat}, 0, '${serverKey.replace(/[^0-9a-f]/g, "")}')`);
  }
  const [row] = await session.rows(`SELECT steps, cluster FROM ${schema}.format`);
  const done = Number(row?.[0]);
  for (const step of steps.slice(done)) await session.run(step(schema));
  if (done < steps.length) await session.rows(`UPDATE ${schema}.format SET steps = $1`, [steps.length]);
  if (done === 0) {
    await session.rows(
      `INSERT INTO ${schema}.change (n, token, format, node, position, body) VALUES (0, $1, 1, '', 0, $2)`,
      [row?.[1], beginning],
    );
  }
}
