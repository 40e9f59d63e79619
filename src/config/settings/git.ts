// Limits and budgets of the git side (git-http.md), the archive (GRASP-05) and contributors' pull requests (GRASP-06).

import { limit, type SettingTable, setting } from "../setting.js";
import { bytes, days, hostName, listEntry, listOf, onOff, percent, seconds, wholeNumber } from "../value-kinds.js";

const atLeastOne = wholeNumber({ min: 1 });

export const pushSettings = {
  NGIT_PUSH_STRICT: setting(onOff(), {
    fallback: "false",
    reloadable: true,
    help: "Accept only pushes that bring the repository fully in line with a state.",
  }),
  NGIT_MAINTAINERS_MUTUAL: setting(onOff(), {
    fallback: "false",
    reloadable: true,
    help: "Keys in a maintainers tag count only if their own announcement names a maintainer too, as with role tags.",
  }),
  NGIT_PARTIAL_STATE_GRACE_SECS: limit(
    seconds(),
    "10",
    "Wait for the rest of a state after a push that brought part of it.",
  ),
  NGIT_PUSH_MAX_COMMANDS: limit(atLeastOne, "4096", "Refs one push may change."),
  NGIT_PUSH_MAX_COMMAND_BYTES: limit(bytes({ min: 4096 }), "1MiB", "Bytes of a push's list of refs."),
  NGIT_PUSH_MAX_BYTES: limit(bytes(), "2GiB", "Bytes of one push."),
  NGIT_PUSH_MAX_OBJECTS: limit(atLeastOne, "5000000", "Objects in one push."),
  NGIT_MAX_OBJECT_BYTES: limit(bytes(), "100MiB", "One git object."),
  NGIT_REPOSITORY_MAX_BYTES: limit(bytes(), "10GiB", "One repository on disk."),
  NGIT_NPUB_MAX_BYTES: limit(bytes(), "20GiB", "All repositories of one npub."),
  NGIT_INSTANCE_MAX_BYTES: setting(bytes(), { reloadable: true, help: "All repositories together." }),
  NGIT_PR_AUTHOR_MAX_BYTES: limit(bytes(), "1GiB", "Pull request data of one author who does not own the repository."),
  NGIT_PR_REPOSITORY_MAX_BYTES: limit(bytes(), "2GiB", "Strangers' pull request data in one repository."),
  NGIT_UNCLAIMED_MAX_BYTES: limit(bytes(), "20MiB", "One push to refs/nostr/ whose event has not come yet."),
  NGIT_UNCLAIMED_PRS_MAX_BYTES: limit(bytes(), "200MiB", "The same under /prs/, which starts empty."),
  NGIT_UNCLAIMED_TOTAL_MAX_BYTES: limit(
    bytes(),
    "1GiB",
    "All such pushes together; the largest holder is evicted first.",
  ),
  NGIT_UNCLAIMED_PER_HOUR_PER_IP: limit(atLeastOne, "60", "Such pushes from one IP in an hour."),
  NGIT_DISK_PUSH_MAX_PERCENT: limit(percent(), "90", "Pushes are refused from this much of the disk in use."),
  NGIT_DISK_EVENTS_MAX_PERCENT: limit(
    percent(),
    "95",
    "Events are refused, and the server is not ready, from this much.",
  ),
} satisfies SettingTable;

export const gitSettings = {
  NGIT_GIT_IDLE_SECS: limit(seconds({ min: 1 }), "60", "A git request that stands still this long is ended."),
  NGIT_GIT_TOTAL_SECS: limit(seconds({ min: 1 }), "1h", "Longest time for one git request."),
  NGIT_GIT_PROGRESS_INTERVAL_SECS: limit(
    seconds({ min: 1, max: 14 }),
    "5",
    "Time between signs of life while a push is processed.",
  ),
  NGIT_GIT_MEMORY_BYTES: limit(
    bytes({ min: 2 ** 26 }),
    "512MiB",
    "Memory git may use for data while it checks one push.",
  ),
  NGIT_GIT_FETCH_REQUEST_MAX_BYTES: limit(bytes({ min: 65_536 }), "16MiB", "Inflated body of one fetch request."),
  NGIT_GIT_PACK_CONCURRENT: setting(atLeastOne, {
    fallbackWords: "the number of cores",
    reloadable: true,
    help: "Packs made at the same time.",
  }),
  NGIT_GIT_PACK_CONCURRENT_PER_REPOSITORY: limit(atLeastOne, "4", "Packs made at the same time from one repository."),
  NGIT_GIT_PACK_CONCURRENT_PER_IP: limit(atLeastOne, "4", "Packs made at the same time for one IP."),
  NGIT_GIT_PACK_QUEUE: limit(
    wholeNumber(),
    "100",
    "Fetches that may wait for their turn; more get 503 and Retry-After.",
  ),
  NGIT_GIT_PACK_CACHE_BYTES: limit(bytes({ min: 0 }), "1GiB", "Disk for answers shared by equal fetches."),
  NGIT_GIT_REPACK_AFTER_PACKS: limit(atLeastOne, "20", "Packs a repository gathers before they are joined."),
  NGIT_GIT_REPACK_QUIET_SECS: setting(seconds({ min: 1 }), {
    fallback: "30",
    testFallback: "1",
    reloadable: true,
    help: "How long a repository is left alone after its last change before it is repacked.",
  }),
  NGIT_GIT_CRUFT_INTERVAL_DAYS: limit(days({ min: 1 }), "7", "Time between repacks that sort out unreachable objects."),
  NGIT_GIT_CRUFT_AFTER_REPACKS: limit(atLeastOne, "10", "Ordinary repacks after which one is done anyway."),
  NGIT_GIT_CRUFT_GRACE_DAYS: limit(days(), "14", "How long unreachable objects are kept."),
} satisfies SettingTable;

export const largeFileSettings = {
  NGIT_LFS_ENABLE: setting(onOff(), {
    fallback: "true",
    help: "Large files (LFS): taken from maintainers and contributors, served, and looked for on other servers.",
  }),
  NGIT_BLOSSOM_READ: setting(onOff(), {
    fallback: "false",
    help: "Serve large files of public repositories also at /<sha256>, as Blossom servers do.",
  }),
} satisfies SettingTable;

export const archiveSettings = {
  NGIT_ARCHIVE_ALL: setting(onOff(), {
    fallback: "false",
    reloadable: true,
    help: "GRASP-05: mirror every repository that is announced.",
  }),
  NGIT_ARCHIVE_WHITELIST: setting(listOf(listEntry()), {
    fallback: "",
    reloadable: true,
    help: "GRASP-05: mirror these: npub, npub/identifier or identifier.",
  }),
  NGIT_ARCHIVE_GRASP_SERVICES: setting(listOf(hostName()), {
    fallback: "",
    reloadable: true,
    help: "GRASP-05: mirror everything that is hosted on these GRASP services.",
  }),
  NGIT_ARCHIVE_READ_ONLY: setting(onOff(), {
    fallback: "true",
    reloadable: true,
    help: "No pushes into mirrored repositories.",
  }),
  NGIT_ARCHIVE_MAX_BYTES: limit(
    bytes(),
    "50GiB",
    "Disk for all mirrored repositories; when it is used up, nothing more is fetched for them.",
  ),
  NGIT_GRASP06_ENABLE: setting(onOff(), {
    fallback: "false",
    help: "GRASP-06: contributors may push pull requests under /prs/, also for repositories that are hosted elsewhere.",
  }),
} satisfies SettingTable;
