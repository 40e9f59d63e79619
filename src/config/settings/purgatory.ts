// The waiting room and the hunt for missing git data (purgatory.md).

import { limit, type SettingTable, setting } from "../setting.js";
import { bytes, domainOverride, hours, listOf, milliseconds, seconds, wholeNumber } from "../value-kinds.js";

const atLeastOne = wholeNumber({ min: 1 });

export const purgatorySettings = {
  NGIT_PURGATORY_EXPIRY_SECS: limit(seconds({ min: 1 }), "1800", "How long an event waits for its git data."),
  NGIT_PURGATORY_SOFT_EXPIRY_SECS: limit(
    seconds(),
    "86400",
    "How much longer an announcement is kept without a repository.",
  ),
  NGIT_PURGATORY_REMEMBER_SECS: limit(
    seconds(),
    "604800",
    "How long synced states and pull requests stay soft, and again that long their id is remembered.",
  ),
  NGIT_PURGATORY_MAX_WAIT_SECS: limit(
    seconds({ min: 1 }),
    "24h",
    "Longest wait of one repository, however often its announcement is replaced.",
  ),
  NGIT_PURGATORY_START_GRACE_SECS: setting(seconds(), {
    fallback: "10m",
    testFallback: "0",
    reloadable: true,
    help: "Nothing expires before this long after a start.",
  }),
  NGIT_PURGATORY_CLOCK_JUMP_SECS: limit(
    seconds({ min: 1 }),
    "5m",
    "A jump of the clock by more than this shifts deadlines.",
  ),
  NGIT_PURGATORY_SWEEP_INTERVAL_MS: setting(milliseconds({ min: 10, max: 60_000 }), {
    fallback: "60000",
    testFallback: "200",
    reloadable: true,
    help: "Time between two looks for what has expired.",
  }),
  NGIT_PURGATORY_MAX_RELATED_PER_REPOSITORY: limit(
    wholeNumber(),
    "100",
    "Issues, comments and the like that wait with one repository.",
  ),
  NGIT_PURGATORY_MAX_ANNOUNCEMENTS: limit(atLeastOne, "10000", "Waiting announcements in all."),
  NGIT_PURGATORY_MAX_ANNOUNCEMENTS_PER_KEY: limit(atLeastOne, "50", "Waiting announcements of one key."),
  NGIT_PURGATORY_ANNOUNCEMENTS_PER_HOUR_PER_IP: limit(atLeastOne, "100", "New announcements from one IP in an hour."),
  NGIT_PURGATORY_MAX_STATES_PER_REPOSITORY: limit(atLeastOne, "10", "Waiting states of one author for one identifier."),
  NGIT_PURGATORY_MAX_BYTES: limit(bytes({ min: 2 ** 20 }), "64MiB", "All waiting events together."),
  NGIT_PLACEHOLDER_EXPIRY_SECS: limit(
    seconds({ min: 1 }),
    "1800",
    "How long a push to refs/nostr/ waits for its event.",
  ),
  NGIT_PLACEHOLDER_PRS_EXPIRY_SECS: limit(seconds({ min: 1 }), "24h", "The same under /prs/."),
  NGIT_AUDIT_EVENT_EXPIRY_SECS: limit(
    seconds({ min: 60 }),
    "2h",
    "Events and repositories of the public compliance tool go after this long.",
  ),
  NGIT_RELEASE_MAX_REPOSITORIES: limit(atLeastOne, "20", "Repositories one state may bring up to date."),
} satisfies SettingTable;

export const huntSettings = {
  NGIT_GIT_HUNT_DIRECT_DELAY_MS: limit(
    milliseconds(),
    "180000",
    "First hunt after an event from a client; a push usually follows.",
  ),
  NGIT_GIT_HUNT_SYNC_DELAY_MS: setting(milliseconds(), {
    fallback: "500",
    testFallback: "1200",
    reloadable: true,
    help: "First hunt after an event from sync, and at a server that is seen to serve an event that waits here.",
  }),
  NGIT_GIT_HUNT_BASE_BACKOFF_SECS: limit(
    seconds({ min: 1 }),
    "20",
    "Wait after the first incomplete attempt; doubles each time.",
  ),
  NGIT_GIT_HUNT_MAX_BACKOFF_SECS: limit(seconds({ min: 1 }), "120", "Longest wait between two attempts."),
  NGIT_GIT_HUNT_INTERVAL_SECS: limit(
    seconds({ min: 60, max: 3600 }),
    "3600",
    "Time between rounds over everything that lacks data.",
  ),
  NGIT_GIT_HUNT_OVERLAP_SECS: limit(
    seconds({ min: 1 }),
    "30",
    "A fetch that has run this long lets the next server start beside it.",
  ),
  NGIT_GIT_HUNT_MAX_URLS_PER_ANNOUNCEMENT: limit(atLeastOne, "5", "Clone URLs taken from one announcement."),
  NGIT_GIT_HUNT_MAX_URLS_PER_HOST: limit(atLeastOne, "3", "Clone URLs on one host."),
  NGIT_GIT_HUNT_MAX_URLS_PER_REPOSITORY: limit(atLeastOne, "20", "Clone URLs for one repository."),
  NGIT_GIT_HUNT_MAX_URLS_PER_PR: limit(atLeastOne, "3", "Clone URLs taken from one pull request."),
  NGIT_GIT_HUNT_PR_MAX_BYTES: limit(bytes(), "200MiB", "Bytes fetched for one pull request."),
  NGIT_GIT_HUNT_MAX_REQUESTS: limit(atLeastOne, "12", "Requests to one server in one attempt."),
  NGIT_GIT_HUNT_MAX_UNADVERTISED: limit(
    wholeNumber(),
    "8",
    "Object ids asked for although the server does not advertise them.",
  ),
  NGIT_GIT_HUNT_MAX_REDIRECTS: limit(wholeNumber({ max: 10 }), "3", "Redirects followed before a fetch."),
  NGIT_GIT_HUNT_MIN_BYTES_PER_SECOND: limit(wholeNumber(), "1000", "Slowest speed of a fetch …"),
  NGIT_GIT_HUNT_SLOW_SECS: limit(seconds({ min: 1 }), "30", "… for this long, before it is ended."),
  NGIT_GIT_HUNT_TOTAL_SECS: limit(seconds({ min: 1 }), "10m", "Longest time for one fetch."),
  NGIT_GIT_HUNT_MAX_BYTES: limit(bytes(), "2GiB", "Bytes of one fetch."),
  NGIT_GIT_HUNT_MAX_OBJECTS: limit(atLeastOne, "5000000", "Objects of one fetch."),
  NGIT_GIT_DOMAIN_CONCURRENT: setting(atLeastOne, {
    fallback: "5",
    reloadable: true,
    aliases: ["sync-domain-concurrent"],
    help: "Requests to one git host at the same time.",
  }),
  NGIT_GIT_DOMAIN_RATE: setting(atLeastOne, {
    fallback: "30",
    reloadable: true,
    aliases: ["sync-domain-rate-limit"],
    help: "Requests to one git host started in any 60 seconds.",
  }),
  NGIT_GIT_DOMAIN_OVERRIDES: setting(listOf(domainOverride()), {
    fallback: "",
    reloadable: true,
    help: "Other numbers for single hosts.",
    example: "codeberg.org=10/60",
  }),
  NGIT_GIT_REPAIR_INTERVAL_HOURS: limit(hours({ min: 1 }), "24", "Time between checks that a repository is complete."),
} satisfies SettingTable;
