// The two sessions a machine has with the log: one commits, one looks, reads and listens. Each is opened when it is needed and
// again after it was lost; while the database is away every use fails at once or within a few seconds, and nothing piles up.

import type { Clock } from "../../base/clock.js";
import { type DatabasePlace, Session } from "../../cluster/session.js";
import { SharedLogError } from "../port.js";

const unreachable = (error: unknown): SharedLogError =>
  new SharedLogError(
    "unreachable",
    `the database that the servers share cannot be reached: try again in a minute (${error instanceof Error ? error.message : String(error)})`,
  );

/** Whatever a statement failed with, as the trouble it is for works. */
export async function orUnreachable<T>(statement: Promise<T>): Promise<T> {
  try {
    return await statement;
  } catch (error) {
    throw error instanceof SharedLogError ? error : unreachable(error);
  }
}

interface LogSessionsParts {
  readonly place: DatabasePlace;
  readonly clock: Clock;
  readonly node: string;
  /** Another session than our own committing one said that there is something new. */
  readonly hinted: () => void;
  /** Called on each new session that reads. */
  readonly listen: (session: Session) => Promise<void>;
}

export class LogSessions {
  #committing: Session | undefined;
  #reading: Session | undefined;
  #openingReader: Promise<Session> | undefined;
  #isClosed = false;

  constructor(private readonly parts: LogSessionsParts) {}

  /** Only the one writer asks for it. */
  async committing(): Promise<Session> {
    if (!this.#committing || this.#committing.isOver) {
      this.#committing = await orUnreachable(this.#open("log"));
    }
    return this.#committing;
  }

  /** A session in doubt is never used again. Its backend may still be at work. */
  async dropCommitting(): Promise<void> {
    const session = this.#committing;
    this.#committing = undefined;
    await session?.close();
  }

  async reading(): Promise<Session> {
    if (this.#reading && !this.#reading.isOver) return this.#reading;
    this.#openingReader ??= this.#openReader().finally(() => {
      this.#openingReader = undefined;
    });
    return orUnreachable(this.#openingReader);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#openingReader?.catch(() => undefined);
    await Promise.all([this.#committing?.close(), this.#reading?.close()]);
  }

  async #openReader(): Promise<Session> {
    const session = await this.#open("reader", (backend) => {
      if (backend !== this.#committing?.backend) this.parts.hinted();
    });
    try {
      await this.parts.listen(session);
    } catch (error) {
      await session.close();
      throw error;
    }
    this.#reading = session;
    return session;
  }

  async #open(role: string, notified?: (backend: number) => void): Promise<Session> {
    if (this.#isClosed) throw new Error("the store is closed");
    const { place, clock, node } = this.parts;
    return Session.open(place, { clock, name: `holdfast ${role} ${node.slice(0, 8)}`, ...(notified && { notified }) });
  }
}
