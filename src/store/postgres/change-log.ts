// The statements about table `change`. Who calls them knows whether the lock of the order is held.

import { clusterLocks } from "../../cluster/locks.js";
import type { DatabasePlace, Session } from "../../cluster/session.js";
import type { Applied } from "../engine/backend.js";
import type { Effects } from "../engine/effects.js";
import { decodeBody } from "./body.js";

export interface LoggedChange extends Applied {
  readonly format: number;
  /** Who wrote it. */
  readonly node: string;
  readonly bytes: number;
  effects(): Effects;
}

export interface LogPage {
  /** The first is the one that was asked from, without its effects, if the log has it. */
  readonly changes: readonly LoggedChange[];
  /** Newest number in the log. */
  readonly newest: number;
  /** Of the leader. */
  readonly epoch: number;
}

interface PageLimits {
  readonly rows: number;
  readonly bytes: number;
}

const asNumber = (bytes: Buffer | undefined): number => Number(bytes?.readBigInt64BE(0) ?? 0n);

const asUuid = (bytes: Buffer): string =>
  bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");

export class ChangeLog {
  readonly #schema: string;
  readonly #lock: string;

  constructor(place: DatabasePlace) {
    this.#schema = place.schema;
    this.#lock = clusterLocks(place.schema).log;
  }

  /**
   * Begins a transaction that is alone in the order. The lock has a statement of its own: a statement that locks and reads
   * sees what there was before it waited.
   */
  async lock(session: Session, withinMs?: number): Promise<void> {
    await session.run(
      `BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock(${this.#lock})`,
      ...(withinMs === undefined ? [] : [withinMs]),
    );
  }

  /** From one row on, that one included. */
  async read(session: Session, from: number, limits: PageLimits): Promise<LogPage> {
    const change = `${this.#schema}.change`;
    const rows = await session.copyOut(
      `WITH page AS (SELECT n, sum(octet_length(body)) OVER (ORDER BY n) - octet_length(body) AS before
         FROM ${change} WHERE n >= ${from} ORDER BY n LIMIT ${limits.rows})
       SELECT n, token, format, node, CASE WHEN n = ${from} THEN ''::bytea ELSE body END,
         (SELECT max(n) FROM ${change}), (SELECT epoch FROM ${this.#schema}.leader)
       FROM ${change} WHERE n IN (SELECT n FROM page WHERE before < ${limits.bytes}) ORDER BY n`,
    );
    const changes = rows.map(([n, token, format, node, body]): LoggedChange => {
      const number = format?.readInt32BE(0) ?? 0;
      return {
        n: asNumber(n),
        token: asUuid(token as Buffer),
        format: number,
        node: node?.toString() ?? "",
        bytes: body?.length ?? 0,
        effects: () => decodeBody(number, body as Buffer),
      };
    });
    const last = rows.at(-1);
    return { changes, newest: asNumber(last?.[5]), epoch: asNumber(last?.[6]) };
  }

  /** The oldest number and the newest. */
  async ends(session: Session): Promise<{ readonly oldest: number; readonly newest: number }> {
    const [row = []] = await session.rows(`SELECT min(n), max(n) FROM ${this.#schema}.change`);
    return { oldest: Number(row[0] ?? -1), newest: Number(row[1] ?? -1) };
  }

  async newest(session: Session, withinMs?: number): Promise<number> {
    const text = `SELECT max(n) FROM ${this.#schema}.change`;
    const [row] = await session.rows(text, [], ...(withinMs === undefined ? [] : [withinMs]));
    return Number(row?.[0] ?? -1);
  }

  async tokenAt(session: Session, n: number): Promise<string | undefined> {
    const [row] = await session.rows(`SELECT token FROM ${this.#schema}.change WHERE n = $1`, [n]);
    return row?.[0] ?? undefined;
  }

  /** One row, and the hint for those who listen. Answers the database's time in milliseconds. */
  async append(
    session: Session,
    { n, token }: Applied,
    { format, node, position, body }: { format: number; node: string; position: number; body: Buffer },
  ): Promise<number> {
    const [row] = await session.rows(
      `WITH written AS (INSERT INTO ${this.#schema}.change (n, token, format, node, position, body)
         VALUES ($1, $2, $3, $4, $5, $6) RETURNING 1)
       SELECT extract(epoch FROM clock_timestamp()) * 1000, pg_notify('${this.#schema}', '') FROM written`,
      [n, token, format, node, position, body],
    );
    return Number(row?.[0]);
  }

  /** Hints come to sessions that listen. */
  async listen(session: Session): Promise<void> {
    await session.run(`LISTEN ${this.#schema}`);
  }

  /** Bytes of all bodies. */
  async bytes(session: Session): Promise<number> {
    const [row] = await session.rows(`SELECT coalesce(sum(octet_length(body)), 0) FROM ${this.#schema}.change`);
    return Number(row?.[0] ?? 0);
  }

  /** Forgets changes before that one; answers how many. */
  async trim(session: Session, before: number): Promise<number> {
    const text = `WITH gone AS (DELETE FROM ${this.#schema}.change WHERE n < $1 RETURNING 1) SELECT count(*) FROM gone`;
    const [row] = await session.rows(text, [before], 60_000);
    return Number(row?.[0] ?? 0);
  }
}
