// Whether a database can carry a cluster. Asked once at start, before anything is written; every refusal has a name and says
// what to do.

import type { Clock } from "../base/clock.js";
import { type DatabasePlace, Session, sqlState } from "./session.js";

export type ClusterRefusalCode =
  | "wrong-url"
  | "unreachable"
  | "not-let-in"
  | "no-database"
  | "tls"
  | "too-old"
  | "pooler"
  | "replica"
  | "read-only"
  | "fsync-off"
  | "no-rights"
  | "two-nodes"
  | "same-name"
  | "other-cluster"
  | "own-history"
  | "newer-format"
  | "no-snapshot"
  | "other-key"
  | "pack-store"
  | "pack-store-not-shared"
  | "pack-store-of-another";

/** The server cannot take part in the cluster for a reason its operator can mend. */
export class ClusterRefusal extends Error {
  override readonly name = "ClusterRefusal";

  constructor(
    readonly code: ClusterRefusalCode,
    message: string,
  ) {
    super(message);
  }
}

export interface DatabaseFacts {
  /** Such as 150004. */
  readonly version: number;
  readonly isReplica: boolean;
  readonly isReadOnly: boolean;
  readonly fsync: string;
  readonly user: string;
  readonly hasSchema: boolean;
  /** May make the schema, or use the one that is there. */
  readonly mayWrite: boolean;
  /** Backends that two sessions had, first each by itself and then at the same time. */
  readonly backends: readonly [string, string, string, string];
}

const oldestVersion = 140_000;

export function judgeDatabase(
  facts: DatabaseFacts,
  place: Pick<DatabasePlace, "words" | "schema">,
): ClusterRefusal | undefined {
  const { words, schema } = place;
  if (facts.version < oldestVersion) {
    const version = Math.floor(facts.version / 10_000);
    return new ClusterRefusal(
      "too-old",
      `the database at ${words} is PostgreSQL ${version}: sessions of machines that died are only ended by 14 and newer. Upgrade it`,
    );
  }
  const [first, second, firstAgain, secondAgain] = facts.backends;
  if (first === second || first !== firstAgain || second !== secondAgain) {
    return new ClusterRefusal(
      "pooler",
      `sessions at ${words} do not keep their connection: a pooler such as PgBouncer in transaction mode stands between. Connect to PostgreSQL itself, or set pool_mode=session`,
    );
  }
  if (facts.isReplica) {
    return new ClusterRefusal(
      "replica",
      `the database at ${words} is a replica, which takes no writes: set NGIT_DATABASE_URL to the primary, or to an address that follows it`,
    );
  }
  if (facts.isReadOnly) {
    return new ClusterRefusal(
      "read-only",
      `sessions at ${words} are read-only: set default_transaction_read_only to off for this role and database`,
    );
  }
  if (facts.fsync !== "on") {
    return new ClusterRefusal(
      "fsync-off",
      `the database at ${words} runs with fsync=${facts.fsync}: what it acknowledges would be lost when its machine fails. Set fsync=on`,
    );
  }
  if (!facts.mayWrite) {
    const right = facts.hasSchema ? `USAGE and CREATE on schema ${schema}` : "CREATE on the database";
    return new ClusterRefusal("no-rights", `the role ${facts.user} at ${words} lacks ${right}: grant it`);
  }
  return undefined;
}

/** What a failed connection means. Never contains the password. */
export function connectRefusal(error: unknown, place: Pick<DatabasePlace, "words">): ClusterRefusal {
  const { words } = place;
  const { code, message } = error as { code?: string; message?: string };
  const state = sqlState(error);
  if (state === "28P01" || state === "28000") {
    return new ClusterRefusal(
      "not-let-in",
      `the database at ${words} does not let us in: check user and password in NGIT_DATABASE_URL, and pg_hba.conf`,
    );
  }
  if (state === "3D000") {
    return new ClusterRefusal(
      "no-database",
      `there is no such database at ${words}: create it, or name another in NGIT_DATABASE_URL`,
    );
  }
  if (state === "42501") {
    return new ClusterRefusal("no-rights", `the role lacks rights at ${words}: ${message}`);
  }
  if (/SSL|TLS|certificate|self.signed/i.test(String(message)) || String(code).startsWith("ERR_TLS")) {
    return new ClusterRefusal("tls", tlsSentence(error, words));
  }
  return new ClusterRefusal(
    "unreachable",
    `the database at ${words} cannot be reached (${code ?? message}): check NGIT_DATABASE_URL, and that PostgreSQL runs`,
  );
}

/** Only a database without TLS is a reason to do without: other advice must not lead there. */
function tlsSentence(error: unknown, words: string): string {
  const { code = "", message, reason } = error as { code?: string; message?: string; reason?: string };
  const its = `the certificate of the database at ${words}`;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return `${its} is for another name (${reason ?? message}): write the name that it is for into NGIT_DATABASE_URL, or give the database a certificate for this one`;
  }
  if (/^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_SIGNATURE_|CERT_UNTRUSTED)/.test(code)) {
    return `${its} is signed by no authority that this machine trusts (${message}): let sslrootcert in NGIT_DATABASE_URL name the file with the authority that signed it`;
  }
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID") {
    return `${its} does not hold at this time (${message}): renew it, or set the clock of this machine`;
  }
  const failed = `TLS with the database at ${words} failed (${message})`;
  if (code !== "") return `${failed}: look at the database's log, and at ssl_min_protocol_version there`;
  return `${failed}: set ssl=on there, or write sslmode=disable into NGIT_DATABASE_URL if the network between is yours alone`;
}

/** Throws a ClusterRefusal. */
export async function checkDatabase(place: DatabasePlace, clock: Clock): Promise<void> {
  const sessions: Session[] = [];
  try {
    for (const _ of [1, 2]) sessions.push(await Session.open(place, { clock, name: "holdfast check", isPlain: true }));
    const refusal = judgeDatabase(await factsOf(sessions as [Session, Session], place), place);
    if (refusal) throw refusal;
  } catch (error) {
    throw error instanceof ClusterRefusal ? error : connectRefusal(error, place);
  } finally {
    await Promise.all(sessions.map((session) => session.close()));
  }
}

async function factsOf([first, second]: readonly [Session, Session], place: DatabasePlace): Promise<DatabaseFacts> {
  const backendOf = async (session: Session): Promise<string> =>
    (await session.rows("SELECT pg_backend_pid()"))[0]?.[0] ?? "";
  const apart = [await backendOf(first), await backendOf(second)] as const;
  await first.run("BEGIN");
  await second.run("BEGIN");
  const together = [await backendOf(first), await backendOf(second)] as const;
  await first.run("ROLLBACK");
  await second.run("ROLLBACK");
  const [row = []] = await first.rows(
    `SELECT current_setting('server_version_num'), pg_is_in_recovery(), current_setting('default_transaction_read_only'),
       current_setting('fsync'), current_user, to_regnamespace($1) IS NOT NULL,
       CASE WHEN to_regnamespace($1) IS NULL THEN has_database_privilege(current_database(), 'CREATE')
         ELSE has_schema_privilege($1, 'USAGE') AND has_schema_privilege($1, 'CREATE') END`,
    [place.schema],
  );
  const [version, isReplica, isReadOnly, fsync, user, hasSchema, mayWrite] = row;
  return {
    version: Number(version),
    isReplica: isReplica === "t",
    isReadOnly: isReadOnly === "on",
    fsync: fsync ?? "",
    user: user ?? "",
    hasSchema: hasSchema === "t",
    mayWrite: mayWrite === "t",
    backends: [...apart, ...together],
  };
}
