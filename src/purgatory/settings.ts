// What the waiting room is told from outside. Asked for each time, because limits reload without a restart.

import type { AdmissionConfig } from "../admission/settings.js";

export interface PurgatorySettings {
  readonly caps: AdmissionConfig;
  readonly partialGraceSeconds: number;
  /** After a start nothing ends before this: what waits may be on its way. */
  readonly startGraceSeconds: number;
  /** A jump of the wall clock by more than this moves deadlines along. */
  readonly clockJumpSeconds: number;
  readonly placeholderSeconds: number;
  /** The same under `/prs/`. */
  readonly prsPlaceholderSeconds: number;
  readonly pushStrict: boolean;
  readonly archiveReadOnly: boolean;
  readonly unhostGraceSeconds: number;
  /** Events and repositories of the public compliance tool go after this. */
  readonly auditSeconds: number;
  readonly quotas: {
    readonly repositoryBytes: number;
    readonly ownerBytes: number;
    /** All mirrors together. */
    readonly archiveBytes: number;
    /** All repositories together; undefined: as much as the disk holds. */
    readonly instanceBytes?: number | undefined;
    /** Strangers' pull requests: in one repository, and of one author everywhere. */
    readonly pullRequestRepositoryBytes: number;
    readonly pullRequestAuthorBytes: number;
  };
  readonly unclaimed: {
    readonly bytesEach: number;
    /** The same under `/prs/`, where a first push brings everything. */
    readonly prsBytesEach: number;
    readonly perIpAndHour: number;
    readonly bytesInAll: number;
  };
  /** Share of the git disk in use from which no push is taken, 0 to 1. */
  readonly pushesUntilDiskShare: number;
}

export const defaultPurgatorySettings: Omit<PurgatorySettings, "caps"> = {
  partialGraceSeconds: 10,
  startGraceSeconds: 600,
  clockJumpSeconds: 300,
  placeholderSeconds: 1_800,
  prsPlaceholderSeconds: 86_400,
  pushStrict: false,
  archiveReadOnly: true,
  unhostGraceSeconds: 90 * 86_400,
  auditSeconds: 7_200,
  quotas: {
    repositoryBytes: 10 * 2 ** 30,
    ownerBytes: 20 * 2 ** 30,
    archiveBytes: 50 * 2 ** 30,
    pullRequestRepositoryBytes: 2 * 2 ** 30,
    pullRequestAuthorBytes: 2 ** 30,
  },
  unclaimed: { bytesEach: 20 * 2 ** 20, prsBytesEach: 200 * 2 ** 20, perIpAndHour: 60, bytesInAll: 2 ** 30 },
  pushesUntilDiskShare: 0.9,
};
