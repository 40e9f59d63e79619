// What purgatory is given, and what it tells: one value that every part of the room shares.

import type { Clock } from "../base/clock.js";
import type { AdmissionLists } from "../catalogue/bans-and-lists.js";
import type { RepositoryName } from "../catalogue/repositories.js";
import type { WaitingEntry } from "../catalogue/waiting.js";
import type { Config } from "../config/config.js";
import type { Repositories } from "../git/repositories.js";
import type { ServiceName } from "../net/url.js";
import type { EventId } from "../nostr/event.js";
import type { Disks } from "../store/disk-space.js";
import type { Store } from "../store/port.js";

export type PurgatoryConfig = Pick<
  Config,
  | "archiveMaxBytes"
  | "archiveReadOnly"
  | "auditEventExpirySecs"
  | "diskPushMaxPercent"
  | "instanceMaxBytes"
  | "npubMaxBytes"
  | "partialStateGraceSecs"
  | "placeholderExpirySecs"
  | "placeholderPrsExpirySecs"
  | "prAuthorMaxBytes"
  | "prRepositoryMaxBytes"
  | "purgatoryClockJumpSecs"
  | "purgatoryExpirySecs"
  | "purgatoryMaxWaitSecs"
  | "purgatoryRememberSecs"
  | "purgatorySoftExpirySecs"
  | "purgatoryStartGraceSecs"
  | "pushStrict"
  | "releaseMaxRepositories"
  | "repositoryMaxBytes"
  | "unclaimedMaxBytes"
  | "unclaimedPerHourPerIp"
  | "unclaimedPrsMaxBytes"
  | "unclaimedTotalMaxBytes"
  | "unhostGraceDays"
>;

/** How a release came about. */
export type Via = "push" | "hunt" | "present" | "partial";

export interface Released {
  readonly id: EventId;
  readonly kind: WaitingEntry["kind"];
  /** As it waited. */
  readonly entry: WaitingEntry;
  readonly via: Via;
  readonly waitedSeconds: number;
}

export type Expiry =
  /** Kept, unserved; an announcement loses its repository. */
  | { readonly to: "soft"; readonly expires: number; readonly dropRepository: boolean }
  | { readonly to: "gone"; readonly rememberUntil: number | undefined };

export interface PurgatoryObserver {
  released(released: Released): void;
  expired(entry: WaitingEntry, expiry: Expiry): void;
  /** Data whose event never came. */
  placeholdersExpired?(count: number): void;
  problem(name: RepositoryName, what: string): void;
  /** Something at the start takes long. */
  progress?(sentence: string): void;
  failed(what: string, error: unknown): void;
  /** Git's own refs could not follow their rows. They are tried again: soon, at the next start, or when lost objects are back. */
  refsBehind?(error: unknown): void;
}

export interface PurgatoryContext {
  readonly store: Store;
  readonly repositories: Repositories;
  readonly clock: Clock;
  /** Read each time: limits reload without a restart. */
  readonly live: { readonly current: PurgatoryConfig };
  readonly disks: Pick<Disks, "fullest">;
  readonly observer: PurgatoryObserver;
  /** GRASP-06, when it is on: the names of this service in `clone` tags, and whose pull requests are not wanted. */
  readonly contributorRules?: { readonly services: readonly ServiceName[]; readonly lists: () => AdmissionLists };
}
