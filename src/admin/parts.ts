// What operators' operations work on, handed in: the same whether a server runs or a command opened its data itself.

import type { RepositoryName } from "../admission/names.js";
import type { Clock } from "../base/clock.js";
import type { Config } from "../config/config.js";
import type { RepositoryAddress } from "../git/address.js";
import type { HousekeepingKind } from "../git/housekeeping-due.js";
import type { RepositoryStore } from "../git/types.js";
import type { Pubkey } from "../nostr/ids.js";
import type { HousekeepingReport } from "../purgatory/housekeeping.js";
import type { Store } from "../store/port.js";
import type { LoginLinks } from "./login-links.js";
import type { RunTimeRules } from "./rules.js";

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

export interface RunningParts {
  facts(): RunningFacts;
  /** Its directory was removed: what is remembered of it elsewhere goes. */
  repositoryGone(name: RepositoryName): Promise<void>;
  askedServers(name: RepositoryName): readonly AskedServer[];
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
  /** May not be banned: an operator would lock himself out. */
  readonly adminKeys: () => ReadonlySet<Pubkey>;
  /** Absent offline. */
  readonly running?: RunningParts;
}

export type Progress = (done: number, total: number | undefined, label: string) => void;
