// What the policy is built from. `lists`, `archive` and `caps` are asked for each event: they change on reload.

import type { HourlyCounter } from "../base/budget/rates.js";
import type { AdmissionLists, RepositoryList } from "../catalogue/bans-and-lists.js";
import type { ServiceName } from "../net/url.js";
import type { Pubkey } from "../nostr/ids.js";
import type { AdmissionCaps } from "./caps.js";

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
