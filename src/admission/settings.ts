// What the policy is built from, and every bound it keeps. `lists`, `archive` and `caps` are asked for each event: they
// change on reload.

import type { HourlyCounter } from "../base/budget/rates.js";
import { type AdmissionLists, type RepositoryList, repositoryList } from "../catalogue/bans-and-lists.js";
import type { Config } from "../config/config.js";
import type { ServiceName } from "../net/url.js";
import type { Pubkey } from "../nostr/ids.js";

export interface ArchiveSettings {
  readonly all: boolean;
  readonly whitelist: RepositoryList;
  /** GRASP services whose repositories are mirrored: `host`, or `host:port` without a default port. */
  readonly serviceHosts: ReadonlySet<string>;
}

export interface AdmissionSettings {
  /** The first is the name people see; others are further names of the same service. At least one. */
  readonly services: readonly ServiceName[];
  readonly serverKey: Pubkey;
  adminKeys(): ReadonlySet<Pubkey>;
  lists(): AdmissionLists;
  archive(): ArchiveSettings;
  readonly grasp06: boolean;
  caps(): AdmissionCaps;
  readonly newAnnouncements: HourlyCounter;
  readonly graspLists: HourlyCounter;
}

/** purgatory.md "Waiting room", relay.md rule 6. */
export interface AdmissionCaps {
  /** A waiting entry's time. */
  readonly expirySeconds: number;
  /** How long an announcement is kept soft after that. */
  readonly softSeconds: number;
  /** However often it is replaced, a coordinate waits no longer than this before it goes soft. */
  readonly maxWaitSeconds: number;
  readonly rememberSeconds: number;
  readonly announcementsPerKey: number;
  readonly announcementsPerIpAndHour: number;
  readonly waitingAnnouncements: number;
  readonly statesPerAuthorAndIdentifier: number;
  readonly relatedPerRepository: number;
  readonly waitingBytes: number;
  /** Repositories one state may concern (purgatory.md, Release 1). */
  readonly repositoriesPerState: number;
  readonly deletionTargets: number;
  /** Tags of one event that are looked up to find what it is related to. */
  readonly relationTargets: number;
  readonly graspListsPerIpAndHour: number;
  /** Grasp lists (10317) kept in all; authors with something else here are not bound by it. */
  readonly graspLists: number;
}

export const defaultCaps: AdmissionCaps = {
  expirySeconds: 1_800,
  softSeconds: 86_400,
  maxWaitSeconds: 86_400,
  rememberSeconds: 604_800,
  announcementsPerKey: 50,
  announcementsPerIpAndHour: 100,
  waitingAnnouncements: 10_000,
  statesPerAuthorAndIdentifier: 10,
  relatedPerRepository: 100,
  waitingBytes: 64 * 1024 * 1024,
  repositoriesPerState: 20,
  deletionTargets: 1_000,
  relationTargets: 1_000,
  graspListsPerIpAndHour: 60,
  graspLists: 20_000,
};

export const admissionCaps = (config: Config): AdmissionCaps => ({
  ...defaultCaps,
  expirySeconds: config.purgatoryExpirySecs,
  softSeconds: config.purgatorySoftExpirySecs,
  maxWaitSeconds: config.purgatoryMaxWaitSecs,
  rememberSeconds: config.purgatoryRememberSecs,
  announcementsPerKey: config.purgatoryMaxAnnouncementsPerKey,
  announcementsPerIpAndHour: config.purgatoryAnnouncementsPerHourPerIp,
  waitingAnnouncements: config.purgatoryMaxAnnouncements,
  statesPerAuthorAndIdentifier: config.purgatoryMaxStatesPerRepository,
  relatedPerRepository: config.purgatoryMaxRelatedPerRepository,
  waitingBytes: config.purgatoryMaxBytes,
  repositoriesPerState: config.releaseMaxRepositories,
  deletionTargets: config.maxDeletionTargets,
  graspListsPerIpAndHour: config.graspListsPerHourPerIp,
  graspLists: config.maxGraspLists,
});

export const admissionLists = (config: Config): AdmissionLists => ({
  repositoryWhitelist: repositoryList(config.repositoryWhitelist),
  repositoryBlacklist: repositoryList(config.repositoryBlacklist),
  eventBlacklist: repositoryList(config.eventBlacklist.map((pubkey) => ({ type: "author", pubkey }))),
});

export const archiveSettings = (config: Config): ArchiveSettings => ({
  all: config.archiveAll,
  whitelist: repositoryList(config.archiveWhitelist),
  serviceHosts: new Set(config.archiveGraspServices.map((host) => host.replace(/:(?:443|80)$/, ""))),
});
