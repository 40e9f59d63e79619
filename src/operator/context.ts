// What every operation of an operator is given, what it ends in, and the audit table it writes its change to. The same
// whether a server runs or a command opened its data itself.

import type { Members } from "../access/members.js";
import { type Clock, unixSeconds } from "../base/clock.js";
import type { RepositoryName } from "../catalogue/repositories.js";
import type { Config } from "../config/config.js";
import type { RepositoryAddress } from "../git/address.js";
import type { HousekeepingKind } from "../git/housekeeping.js";
import type { HousekeepingReport } from "../git/housekeeping-scheduler.js";
import type { Repositories } from "../git/repositories.js";
import type { CarryOut } from "../intake/carry-out.js";
import type { Intake } from "../intake/intake.js";
import type { Reach } from "../net/address.js";
import type { Pubkey } from "../nostr/event.js";
import type { SecretKey } from "../nostr/keys.js";
import type { Store, TableReader, Transaction } from "../store/port.js";
import type { RelayStatus } from "../sync/status.js";
import type { LoginLinks } from "./login.js";
import type { RunTimeRules } from "./rules.js";
import type { Verified } from "./verified.js";

/** What only a running server knows. */
export interface RunningFacts {
  readonly version: string;
  readonly uptimeSeconds: number;
  /** `native …` or `wasm`. */
  readonly verification: string;
  /** How to make it faster; null where it is fast. */
  readonly verificationAdvice: string | null;
  readonly gitVersion: string;
  readonly connections: number;
  readonly subscriptions: number;
}

/** A remote git server that was asked for a repository's missing objects, and what came of it. */
export interface AskedServer {
  readonly url: string;
  readonly at: number;
  readonly answer: string;
}

export interface RunningParts {
  facts(): RunningFacts;
  askedServers(name: RepositoryName): readonly AskedServer[];
  /** Decision records that were made and not yet written are written. */
  decisionsWritten(): Promise<void>;
  /** An operator had a repository compared with its copies. */
  verified(name: RepositoryName, verified: Verified): void;
  /** Its missing data is being fetched at this moment. */
  isFetching(name: RepositoryName): boolean;
  /** Asks the git servers again at once. False: nothing of it is missing. */
  askNow(name: RepositoryName): boolean;
  /** The relays sync follows. `reconnect` is false for one that is not followed, or left alone. */
  readonly relays: { status(): readonly RelayStatus[]; reconnect(key: string): boolean };
  /** Reads every large file of it; what is wrong, in sentences. */
  checkLargeFiles(name: RepositoryName): Promise<readonly string[]>;
  /** Servers that were asked for its missing large files. */
  askedForLargeFiles(name: RepositoryName): readonly (AskedServer & { readonly found: number })[];
  /** Some of its objects cannot be read: they are brought back from other servers. */
  damaged(name: RepositoryName): Promise<void>;
  /** In its turn among what runs in the background. */
  housekeep(address: RepositoryAddress, kind: HousekeepingKind, signal: AbortSignal): Promise<HousekeepingReport>;
  readonly links: LoginLinks;
  /** `https://host/base`. */
  readonly publicUrl: string;
}

export interface AdminParts {
  readonly store: Store;
  /** Git is started when first needed. */
  readonly repositories: () => Promise<Repositories>;
  /** The one way for what follows from a decision. */
  readonly carryOut: () => Promise<CarryOut>;
  readonly clock: Clock;
  readonly rules: RunTimeRules;
  /** As configured, without the rules laid over. */
  readonly config: () => Config;
  /** The one door for events. Offline it is opened when first needed; undefined when the key or domain is unusable. */
  readonly intake: () => Promise<Intake | undefined>;
  /** How far addresses may be dialled that the operator did not name. */
  readonly reach: () => Reach;
  /** May not be banned: an operator would be locked out. */
  readonly adminKeys: () => ReadonlySet<Pubkey>;
  /** The server's own key; undefined when it cannot be used. */
  readonly serverSecret: () => SecretKey | undefined;
  /** Who belongs to a private service; undefined like the key. */
  readonly members: () => Members | undefined;
  /** Absent offline. */
  readonly running?: RunningParts;
}

export type Progress = (done: number, total: number | undefined, label: string, unit?: "bytes") => void;
export type Lines = (lines: readonly string[]) => Promise<void>;

export interface OperationContext {
  readonly caller: Caller;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  /** Takes an answer that is too large for one message. Absent where nobody could read it. */
  readonly lines?: Lines;
}

/** Says what to do; exceptions are bugs. */
export interface AdminRefusal {
  readonly ok: false;
  /** bad-request: asked wrongly. unknown: there is no such thing here. not-possible: not in its present condition. */
  readonly code: "bad-request" | "unknown" | "not-possible";
  readonly message: string;
}

export type Outcome<T> = { readonly ok: true; readonly result: T } | AdminRefusal;

export const done = <T>(result: T): Outcome<T> => ({ ok: true, result });

export const refusal = (code: AdminRefusal["code"], message: string): AdminRefusal => ({ ok: false, code, message });

/** There is no door for events. */
export const keyUnusable = refusal(
  "not-possible",
  "the server's key or domain cannot be used: see `holdfast config check`",
);

// Table "audit": who changed what, and when. Written in the transaction of the change itself. Keys are numbers that
// only grow; the newest `maxAuditRows` are kept.

/** Who asks: an npub, or `operator` for whoever may open the data directory's socket. */
export interface Caller {
  readonly who: string;
  readonly via: "socket" | "offline" | "nip-86" | "api" | "page";
}

export interface AuditRow {
  readonly at: number;
  readonly who: string;
  readonly via: Caller["via"];
  readonly what: string;
  readonly target: string;
  readonly reason: string;
}

const maxAuditRows = 10_000;
const keyDigits = 12;
const keyOf = (number: number): string => String(number).padStart(keyDigits, "0");

export async function noteChange(
  tx: Transaction,
  clock: Clock,
  caller: Caller,
  { what, target, reason = "" }: { readonly what: string; readonly target: string; readonly reason?: string },
): Promise<void> {
  let last = 0;
  for await (const [key] of tx.rows("audit", { reverse: true, limit: 1 })) last = Number(key);
  const row: AuditRow = { at: unixSeconds(clock), ...caller, what, target, reason };
  tx.setRow("audit", keyOf(last + 1), row);
  if (last + 1 > maxAuditRows) tx.deleteRow("audit", keyOf(last + 1 - maxAuditRows));
}

/**
 * A change of the rules: what `write` does and its audit row are one transaction, and the change is in force when this
 * resolves. False from `write`: there was nothing to change, and nothing is noted.
 */
export async function changeRules<T>(
  { store, clock, rules }: AdminParts,
  caller: Caller,
  change: { readonly what: string; readonly target: string; readonly reason?: string },
  write: (tx: Transaction) => T | Promise<T>,
): Promise<T> {
  const answer = await store.transact(async (tx) => {
    const written = await write(tx);
    if (written !== false) await noteChange(tx, clock, caller, change);
    return written;
  });
  await rules.refresh();
  return answer;
}

/** Newest first. */
export async function auditRows(reader: TableReader, limit: number): Promise<AuditRow[]> {
  const rows: AuditRow[] = [];
  for await (const [, row] of reader.rows<AuditRow>("audit", { reverse: true, limit })) rows.push(row);
  return rows;
}
