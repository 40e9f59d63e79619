// What operators' operations work on, handed in: the same whether a server runs or a command opened its data itself.

import type { Clock } from "../base/clock.js";
import type { RepositoryName } from "../catalogue/repositories.js";
import type { Config } from "../config/config.js";
import type { PlacedName, RepositoryAddress } from "../git/address.js";
import type { HousekeepingKind } from "../git/housekeeping-due.js";
import type { RepositoryStore } from "../git/types.js";
import type { Intake } from "../intake/intake.js";
import type { Reach } from "../net/address.js";
import type { Pubkey } from "../nostr/ids.js";
import type { HousekeepingReport } from "../purgatory/housekeeping.js";
import type { Store } from "../store/port.js";
import type { RelayStatus } from "../sync/status.js";
import type { Caller } from "./audit.js";
import type { LoginLinks } from "./login-links.js";
import type { RunTimeRules } from "./rules.js";
import type { Verified } from "./verified.js";

/** What only a running server knows. */
export interface RunningFacts {
  readonly version: string;
  readonly uptimeSeconds: number;
  /** `native …` or `wasm`. */
  readonly verification: string;
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

export interface FollowedRelays {
  status(): readonly RelayStatus[];
  /** False: it is not followed, or left alone. */
  reconnect(key: string): boolean;
}

export interface RunningParts {
  facts(): RunningFacts;
  /** Its directory was removed: what is remembered of it elsewhere goes. */
  repositoryGone(name: RepositoryName): Promise<void>;
  askedServers(name: RepositoryName): readonly AskedServer[];
  /** Decision records that were made and not yet written are written. */
  decisionsWritten(): Promise<void>;
  /** An operator had a repository compared with its copies. */
  verified(name: RepositoryName, verified: Verified): void;
  /** Its missing data is being fetched at this moment. */
  isFetching(name: RepositoryName): boolean;
  /** Asks the git servers again at once. False: nothing of it is missing. */
  askNow(name: RepositoryName): boolean;
  readonly relays: FollowedRelays;
  /** Some of its objects cannot be read: they are brought back from other servers. */
  damaged(name: PlacedName): Promise<void>;
  /** In its turn among what runs in the background. */
  housekeep(address: RepositoryAddress, kind: HousekeepingKind, signal: AbortSignal): Promise<HousekeepingReport>;
  readonly links: LoginLinks;
  /** `https://host/base`. */
  readonly publicUrl: string;
}

export interface AdminParts {
  readonly store: Store;
  /** Git is started when first needed. */
  readonly repositories: () => Promise<RepositoryStore>;
  readonly clock: Clock;
  readonly rules: RunTimeRules;
  /** As configured, without the rules laid over. */
  readonly config: () => Config;
  /** The one door for events. Offline it is opened when first needed; undefined when the key or domain is unusable. */
  readonly intake: () => Promise<Intake | undefined>;
  /** How far addresses may be dialled that the operator did not name himself. */
  readonly reach: () => Reach;
  /** May not be banned: an operator would lock himself out. */
  readonly adminKeys: () => ReadonlySet<Pubkey>;
  /** Absent offline. */
  readonly running?: RunningParts;
}

export type Progress = (done: number, total: number | undefined, label: string) => void;
export type Lines = (lines: readonly string[]) => Promise<void>;

export interface OperationContext {
  readonly caller: Caller;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  /** Takes an answer that is too large for one message. Absent where nobody could read it. */
  readonly lines?: Lines;
}
