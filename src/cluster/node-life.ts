// A machine's life in the cluster: a session that holds its identity, says every two seconds that it lives, and asks for the
// leadership. The database ends a session that is silent for eight seconds; from then on others may lead. Whoever led learns
// it at once, or by its own steady clock, and at the latest from the epoch that each of the leader's transactions checks.

import type { Clock } from "../base/clock.js";
import { ClusterRefusal } from "./check-database.js";
import { clusterLocks, type LockNumbers } from "./locks.js";
import { type DatabasePlace, lifeSettings, Session } from "./session.js";

const beatMs = 2_000;
/** A machine whose last beat is older has lost its session. */
export const aliveSeconds = 10;
/** A leader that could not beat for this long no longer leads: the database has ended its session, or is about to. */
const silentMs = 8_000;
/** The session of a machine that died ends within this. */
const identityWaitMs = 15_000;
const retryMs = 500;

export interface NodeLifeParts {
  readonly place: DatabasePlace;
  readonly clock: Clock;
  readonly node: string;
  /** What people call the machine. */
  readonly name: string;
  readonly version: string;
  /** The newest format it reads. */
  readonly format: number;
  readonly applied: () => number;
  readonly mayLead: boolean;
  /** The format the cluster writes; it may have grown since the last beat. */
  readonly writes?: (format: number) => void;
  readonly measured?: (databaseMs: number, askedMs: number) => void;
  /** It leads from now on, in that epoch. */
  readonly leads?: (epoch: number) => void;
  /** It does not lead any more. */
  readonly leadsNoMore?: () => void;
  /** Another machine has taken its identity: it must stop. */
  readonly fault: (error: ClusterRefusal) => void;
}

export class NodeLife {
  readonly #parts: NodeLifeParts;
  #session: Session | undefined;
  #epoch: number | undefined;
  #heardMs = 0;
  #isClosed = false;
  #stop: () => void = () => undefined;
  #beating: Promise<void> = Promise.resolve();
  #deposing: () => void = () => undefined;

  private constructor(parts: NodeLifeParts) {
    this.#parts = parts;
  }

  /** Throws a ClusterRefusal when another machine has this identity or this name, or the cluster writes what it cannot read. */
  static async begin(parts: NodeLifeParts): Promise<NodeLife> {
    const life = new NodeLife(parts);
    try {
      await life.#connect();
      await life.#beat();
    } catch (error) {
      await life.close();
      throw error;
    }
    life.#plan(beatMs);
    return life;
  }

  /** The epoch this machine leads in; undefined when it does not lead. */
  get epoch(): number | undefined {
    if (this.#epoch !== undefined && this.#parts.clock.monotonicMs() - this.#heardMs > silentMs) this.#depose();
    return this.#epoch;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stop();
    this.#depose();
    await this.#session?.close();
    await this.#beating;
  }

  async #connect(): Promise<void> {
    const { place, clock, node } = this.#parts;
    const session = await Session.open(place, {
      clock,
      name: `holdfast life ${node.slice(0, 8)}`,
      settings: lifeSettings,
      lost: () => this.#depose(),
    });
    try {
      await this.#holdIdentity(session);
    } catch (error) {
      await session.close();
      throw error;
    }
    this.#session = session;
  }

  async #holdIdentity(session: Session): Promise<void> {
    const { place, node, name } = this.#parts;
    const locks = clusterLocks(place.schema);
    const twoNodes = `another server with the identity ${node} is running: each machine needs a data directory of its own, not a copy`;
    await this.#hold(session, locks.node(node), new ClusterRefusal("two-nodes", twoNodes));
    const sameName = `another machine of the cluster that is called ${name} is running: give each machine an NGIT_NODE_NAME of its own`;
    await this.#hold(session, locks.name(name), new ClusterRefusal("same-name", sameName));
    await this.#register(session);
  }

  async #hold(session: Session, lock: LockNumbers, refusal: ClusterRefusal): Promise<void> {
    const { clock } = this.#parts;
    const untilMs = clock.monotonicMs() + identityWaitMs;
    for (;;) {
      const [row] = await session.rows(`SELECT pg_try_advisory_lock(${lock})`);
      if (row?.[0] === "t") return;
      if (this.#isClosed || clock.monotonicMs() >= untilMs) throw refusal;
      await new Promise<void>((resolve) => clock.after(retryMs, resolve));
    }
  }

  /** A machine that was set up anew takes the place of the silent one that had its name. */
  async #register(session: Session): Promise<void> {
    const { place, node, name, version, format, applied } = this.#parts;
    await session.rows(
      `DELETE FROM ${place.schema}.node
       WHERE name = $1 AND node <> $2 AND seen < clock_timestamp() - interval '${aliveSeconds} seconds'`,
      [name, node],
    );
    await session.rows(
      `INSERT INTO ${place.schema}.node (node, name, version, format, applied) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (node) DO UPDATE SET name = $2, version = $3, format = $4, applied = $5,
         started = clock_timestamp(), seen = clock_timestamp()`,
      [node, name, version, format, applied()],
    );
  }

  #plan(delayMs: number): void {
    if (this.#isClosed) return;
    this.#stop = this.#parts.clock.after(delayMs, () => {
      this.#beating = this.#turn();
    });
  }

  async #turn(): Promise<void> {
    try {
      if (!this.#session || this.#session.isOver) await this.#connect();
      await this.#beat();
      this.#plan(beatMs);
    } catch (error) {
      this.#depose();
      await this.#session?.close();
      this.#session = undefined;
      if (error instanceof ClusterRefusal && !this.#isClosed) this.#parts.fault(error);
      else this.#plan(retryMs);
    }
  }

  async #beat(): Promise<void> {
    const { place, clock, node, applied, format } = this.#parts;
    const session = this.#session;
    if (!session) return;
    const askedMs = clock.monotonicMs();
    const [row] = await session.rows(
      `UPDATE ${place.schema}.node SET seen = clock_timestamp(), applied = $2 WHERE node = $1
       RETURNING extract(epoch FROM clock_timestamp()) * 1000, (SELECT format FROM ${place.schema}.format)`,
      [node, applied()],
    );
    // It was forgotten while the database did not hear it.
    if (!row) return this.#register(session);
    this.#parts.measured?.(Number(row[0]), askedMs);
    const written = Number(row[1]);
    if (written > format) {
      throw new ClusterRefusal(
        "newer-format",
        `the cluster writes format ${written} and this program reads ${format}: install the newer version here`,
      );
    }
    this.#parts.writes?.(written);
    this.#heardMs = askedMs;
    if (this.#epoch === undefined && !this.#isClosed && this.#parts.mayLead) await this.#askToLead(session);
    this.#watchSilence();
  }

  async #askToLead(session: Session): Promise<void> {
    const { place, node } = this.#parts;
    const locks = clusterLocks(place.schema);
    const [row] = await session.rows(`SELECT pg_try_advisory_lock(${locks.leader})`);
    if (row?.[0] !== "t") return;
    // Under the lock of the order: a transaction of the last leader that was let through is over.
    await session.run(`BEGIN; SELECT pg_advisory_xact_lock(${locks.log})`);
    const [led] = await session.rows(
      `UPDATE ${place.schema}.leader SET epoch = epoch + 1, node = $1, since = clock_timestamp() RETURNING epoch`,
      [node],
    );
    await session.run("COMMIT");
    this.#epoch = Number(led?.[0]);
    this.#parts.leads?.(this.#epoch);
  }

  /** A process that was paused must not believe that it leads when it wakes. */
  #watchSilence(): void {
    this.#deposing();
    this.#deposing = this.#parts.clock.after(silentMs, () => void this.epoch);
  }

  #depose(): void {
    this.#deposing();
    if (this.#epoch === undefined) return;
    this.#epoch = undefined;
    this.#parts.leadsNoMore?.();
  }
}
