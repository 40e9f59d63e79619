// Advisory locks of PostgreSQL on repositories, so that two machines do not do the same work twice, and so that whoever sweeps
// sees that another machine works there. They decide nothing: a transaction finds out by itself whether what it was planned
// on is still so. So whoever does not get one within a moment goes on without it, and so does everybody while the
// database is away.

import type { Clock } from "../base/clock.js";
import { type ClusterLocks, clusterLocks } from "./locks.js";
import { type DatabasePlace, Session } from "./session.js";

const waitMs = 2_000;
const lookEveryMs = 100;
/** A database that is away is not dialled for every push. */
const dialEveryMs = 5_000;

interface LockParts {
  readonly place: DatabasePlace;
  readonly clock: Clock;
  /** What people call the machine. */
  readonly name: string;
}

export class RepositoryLocks {
  readonly #locks: ClusterLocks;
  #session: Session | undefined;
  #dialling: Promise<void> | undefined;
  #dialledMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(private readonly parts: LockParts) {
    this.#locks = clusterLocks(parts.place.schema);
  }

  /** After the locks of this process, so that a machine never waits for itself. Taken in the order of their keys. */
  async during<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
    const held: { readonly key: string; readonly session: Session }[] = [];
    const untilMs = this.parts.clock.monotonicMs() + waitMs;
    try {
      for (const key of [...new Set(keys)].sort()) {
        const session = await this.#take(key, untilMs);
        if (session) held.push({ key, session });
      }
      return await work();
    } finally {
      for (const { key, session } of held) this.#give(session, `pg_advisory_unlock(${this.#locks.repository(key)})`);
    }
  }

  /** Others see that this machine works there, until the answer is called. Nothing is waited for. */
  mark(key: string): () => void {
    const session = this.#usable();
    if (!session) return () => undefined;
    this.#give(session, `pg_try_advisory_lock_shared(${this.#locks.atWork(key)})`);
    return () => this.#give(session, `pg_advisory_unlock_shared(${this.#locks.atWork(key)})`);
  }

  /** Another machine works there, as far as can be learned. */
  async isBusyElsewhere(key: string): Promise<boolean> {
    const session = this.#usable();
    if (!session) return false;
    const places = [this.#locks.repository(key), this.#locks.atWork(key)].map((numbers) => {
      const [first, second] = numbers.split(", ");
      return `(classid = (${first})::int4::oid AND objid = (${second})::int4::oid)`;
    });
    const ours =
      "pid <> pg_backend_pid() AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    const text = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND ${ours} AND (${places.join(" OR ")}) LIMIT 1`;
    return await session.rows(text).then(
      (rows) => rows.length > 0,
      () => false,
    );
  }

  async #take(key: string, untilMs: number): Promise<Session | undefined> {
    const { clock } = this.parts;
    for (;;) {
      const session = this.#usable();
      const rows = await session
        ?.rows(`SELECT pg_try_advisory_lock(${this.#locks.repository(key)})`)
        .catch(() => undefined);
      if (!session || !rows) return undefined;
      if (rows[0]?.[0] === "t") return session;
      if (clock.monotonicMs() >= untilMs) return undefined;
      await new Promise<void>((resolve) => clock.after(lookEveryMs, resolve));
    }
  }

  #give(session: Session, call: string): void {
    // A session that is over has given up its locks.
    if (!session.isOver) void session.rows(`SELECT ${call}`).catch(() => undefined);
  }

  #usable(): Session | undefined {
    if (this.#session && !this.#session.isOver) return this.#session;
    const now = this.parts.clock.monotonicMs();
    if (this.#isClosed || this.#dialling || now - this.#dialledMs < dialEveryMs) return undefined;
    this.#dialledMs = now;
    this.#dialling = this.open().finally(() => {
      this.#dialling = undefined;
    });
    return undefined;
  }

  /** Resolves when the locks can be taken, or cannot now. */
  async open(): Promise<void> {
    const { place, clock, name } = this.parts;
    const session = await Session.open(place, { clock, name: `holdfast locks ${name}` }).catch(() => undefined);
    if (this.#isClosed) await session?.close();
    else this.#session = session;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#dialling;
    await this.#session?.close();
  }
}
