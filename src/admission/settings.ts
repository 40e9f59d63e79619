// What the policy is built from. What may change on reload is asked for each event.

import { type HourlyCounter, hourlyCounter } from "../base/budget/rates.js";
import { type AdmissionLists, listsOf, type RepositoryList, repositoryList } from "../catalogue/bans-and-lists.js";
import type { Config } from "../config/config.js";
import { memo } from "../config/load.js";
import type { ServiceName } from "../net/url.js";
import type { Pubkey } from "../nostr/event.js";

/** The settings that rules read (purgatory.md "Waiting room", relay.md rule 6). */
export type AdmissionConfig = Pick<
  Config,
  | "purgatoryExpirySecs"
  | "purgatorySoftExpirySecs"
  | "purgatoryMaxWaitSecs"
  | "purgatoryRememberSecs"
  | "purgatoryMaxAnnouncementsPerKey"
  | "purgatoryAnnouncementsPerHourPerIp"
  | "purgatoryMaxAnnouncements"
  | "purgatoryMaxStatesPerRepository"
  | "purgatoryMaxRelatedPerRepository"
  | "purgatoryMaxBytes"
  | "releaseMaxRepositories"
  | "maxDeletionTargets"
  | "graspListsPerHourPerIp"
  | "maxGraspLists"
  | "grasp06Enable"
  | "privateMode"
>;

export interface ArchiveRules {
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
  archive(): ArchiveRules;
  config(): AdmissionConfig;
  /** Kinds the operator refuses at run time. */
  refusedKinds(): ReadonlySet<number>;
  readonly newAnnouncements: HourlyCounter;
  readonly graspLists: HourlyCounter;
}

const none: ReadonlySet<number> = new Set();

export function admissionSettings(
  config: () => Config,
  serverKey: Pubkey,
  services: readonly ServiceName[],
  refusedKinds: () => ReadonlySet<number> = () => none,
): AdmissionSettings {
  return {
    services,
    serverKey,
    adminKeys: memo(config, ({ adminNpubs }) => new Set(adminNpubs ?? [serverKey])),
    lists: memo(config, listsOf),
    archive: memo(config, archiveRules),
    config,
    refusedKinds,
    newAnnouncements: hourlyCounter(),
    graspLists: hourlyCounter(),
  };
}

const archiveRules = (config: Config): ArchiveRules => ({
  all: config.archiveAll,
  whitelist: repositoryList(config.archiveWhitelist),
  serviceHosts: new Set(config.archiveGraspServices.map((host) => host.replace(/:(?:443|80)$/, ""))),
});
