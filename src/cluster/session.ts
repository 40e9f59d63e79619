// One session at PostgreSQL. Statements of a session run one after the other, and each has a time of its own: a server that
// does not answer costs the session, never the caller's patience. No statement is built from what strangers send.

import pg from "pg";
import type { Clock } from "../base/clock.js";

export interface DatabasePlace {
  readonly config: pg.ClientConfig;
  /** Our tables. A name we chose: it stands in statements as it is. */
  readonly schema: string;
  /** Host, port and database, without user and password: for people. */
  readonly words: string;
}

/**
 * Settings of every session. A machine that is paused, or whose cable is cut, must not stop the others: what it holds at the
 * database is given up within ten seconds.
 */
const commonSettings: Readonly<Record<string, string>> = {
  synchronous_commit: "on",
  default_transaction_isolation: "read committed",
  idle_in_transaction_session_timeout: "5s",
  lock_timeout: "10s",
  tcp_keepalives_idle: "3",
  tcp_keepalives_interval: "2",
  tcp_keepalives_count: "3",
  tcp_user_timeout: "9000",
  client_connection_check_interval: "2s",
};

/** Of a session whose locks say that a machine lives. */
export const lifeSettings: Readonly<Record<string, string>> = { idle_session_timeout: "8s", statement_timeout: "5s" };

export interface SessionOptions {
  readonly clock: Clock;
  /** Seen by whoever looks at the database's sessions. */
  readonly name: string;
  readonly settings?: Readonly<Record<string, string>>;
  /** Without any setting: for looking at a database that may be too old for them. */
  readonly isPlain?: boolean;
  /** Called once when it ends for any reason but `close`. */
  readonly lost?: () => void;
  /** Somebody said NOTIFY on a channel this session listens to: the number of that session's process. */
  readonly notified?: (backend: number) => void;
}

/** Longer than the database lets a statement wait for a lock. */
const statementMs = 12_000;

export class Session {
  readonly #client: pg.Client;
  readonly #clock: Clock;
  #last: Promise<unknown> = Promise.resolve();
  #isOver = false;

  private constructor(client: pg.Client, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  static async open(place: DatabasePlace, options: SessionOptions): Promise<Session> {
    const client = new pg.Client({ ...place.config, application_name: options.name.slice(0, 60) });
    const session = new Session(client, options.clock);
    const lost = (): void => {
      if (session.#isOver) return;
      session.#isOver = true;
      options.lost?.();
    };
    client.on("error", lost);
    client.on("end", lost);
    client.on("notification", ({ processId }) => options.notified?.(processId));
    await client.connect();
    if (!options.isPlain) {
      const settings = { ...commonSettings, ...options.settings };
      const statements = Object.entries(settings).map(([name, value]) => `SET ${name} = '${value}'`);
      try {
        await session.run(statements.join("; "));
      } catch (error) {
        await session.close();
        throw error;
      }
    }
    return session;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The number of the process that serves it. */
  get backend(): number | undefined {
    return (this.#client as unknown as { processID?: number }).processID;
  }

  /** The rows, each a list of texts. */
  async rows(
    text: string,
    values: readonly unknown[] = [],
    withinMs = statementMs,
  ): Promise<readonly (string | null)[][]> {
    const config = { text, values: [...values], rowMode: "array" as const, types: asText };
    return (await this.#inTurn(withinMs, () => this.#client.query<(string | null)[]>(config))).rows;
  }

  /** Statements without parameters, in one round trip; answers what the last of them was. */
  async run(text: string, withinMs = statementMs): Promise<string> {
    const result = await this.#inTurn(withinMs, () => this.#client.query(text));
    const last = Array.isArray(result) ? result.at(-1) : result;
    return (last as pg.QueryResult | undefined)?.command ?? "";
  }

  /** The rows of a SELECT in PostgreSQL's binary form: other answers would double the bytes of a body. */
  copyOut(select: string, withinMs = statementMs): Promise<readonly Buffer[][]> {
    return this.#inTurn(withinMs, () => {
      const copy = new CopyOut(`COPY (${select}) TO STDOUT (FORMAT binary)`);
      this.#client.query(copy as pg.Submittable);
      return copy.done;
    });
  }

  /** Without a goodbye when a statement is under way. */
  async close(): Promise<void> {
    const wasOver = this.#isOver;
    this.#isOver = true;
    if (wasOver) this.#destroy();
    await Promise.race([
      this.#client.end().catch(() => undefined),
      new Promise((done) => this.#clock.after(1_000, () => done(undefined))),
    ]);
    this.#destroy();
  }

  #destroy(): void {
    const { connection } = this.#client as unknown as { connection?: { stream?: { destroy(): void } } };
    connection?.stream?.destroy();
  }

  #inTurn<T>(withinMs: number, statement: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(async () => {
      if (this.#isOver) throw new Error("the session with the database is over");
      // Whatever a statement that is given up would have answered: nobody may take it for the next one's answer.
      const cancel = this.#clock.after(withinMs, () => this.#destroy());
      try {
        return await statement();
      } finally {
        cancel();
      }
    });
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}

/** Values as the text PostgreSQL wrote: who asks knows what they are. */
const asText = { getTypeParser: () => (value: string) => value } as unknown as pg.CustomTypesConfig;

/** The code PostgreSQL gives its errors, if it was PostgreSQL that spoke. */
export function sqlState(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

const headerBytes = 11;

/** Rows of a binary COPY. A message holds a header, a row or the end. */
class CopyOut {
  readonly done: Promise<readonly Buffer[][]>;
  readonly #rows: Buffer[][] = [];
  #isBegun = false;
  #resolve: (rows: readonly Buffer[][]) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;

  constructor(readonly text: string) {
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  submit(connection: { query(text: string): void }): void {
    connection.query(this.text);
  }

  handleCopyData({ chunk }: { readonly chunk: Buffer }): void {
    let at = 0;
    if (!this.#isBegun) {
      this.#isBegun = true;
      // Signature, flags, and an extension with its length.
      at = headerBytes + 8 + chunk.readInt32BE(headerBytes + 4);
    }
    while (at < chunk.length) {
      const count = chunk.readInt16BE(at);
      at += 2;
      if (count < 0) return;
      const row: Buffer[] = [];
      for (let field = 0; field < count; field++) {
        const length = chunk.readInt32BE(at);
        at += 4;
        // Copied: the driver uses its memory again.
        row.push(Buffer.from(chunk.subarray(at, at + Math.max(0, length))));
        at += Math.max(0, length);
      }
      this.#rows.push(row);
    }
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#resolve(this.#rows);
  }

  handleError(error: unknown): void {
    this.#reject(error);
  }
}
