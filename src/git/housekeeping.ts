// Keeps a repository quick to clone (git-http.md, Serving, last point): packs joined geometrically under a multi-pack
// index with bitmap, a commit-graph, packed refs; now and then old garbage dropped. Each step is worth something by
// itself, so that work which gives way to a push loses only the step it was in. Whether it is due is decided here too, purely:
// what was found on disk, what was done last, and the time go in. The scheduler asks.

import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { ifPresent } from "../base/durable-files.js";
import type { Config } from "../config/config.js";
import type { ObjectPlace } from "./objects.js";
import { sweepPacks } from "./repository-files.js";
import { GitError, type GitResult } from "./run.js";

/** What a look at the directories tells, without starting git. */
export interface PackFacts {
  /** Ordinary packs; one of garbage is not counted. */
  readonly packs: number;
  /** All files beside the packs included. */
  readonly bytes: number;
  /** Of these, packed objects: the rest are indexes and bitmaps. */
  readonly objectBytes: number;
  readonly hasBitmap: boolean;
  readonly hasGarbagePack: boolean;
  /** Counted up to 1,000. */
  readonly looseRefs: number;
}

export interface HousekeepingOptions {
  /** Also sort out unreachable objects, and drop those older than the grace. */
  readonly cruft?: boolean;
  readonly graceDays?: number;
  /** Goes on beside pushes. Not when unreachable objects are dropped: a push may rest on one. */
  readonly insists?: boolean;
  readonly signal?: AbortSignal;
}

/** busy: others work there, or housekeeping does already. interrupted: it gave way, or was told to stop. */
export type HousekeepingOutcome = "done" | "busy" | "interrupted";

const defaultGraceDays = 14;

/** Enough to see that they should be packed. */
const maxLooseRefsCounted = 1_000;

const wallClockMs = 60 * 60_000;

const memoryBytes = 2 * 2 ** 30;

/** Behind whatever serves somebody. */
const niceness = 10;

/** One core at most, and a small part of the memory: nobody waits for it. */
const modest = { "pack.threads": "1", "pack.windowMemory": "64m", "pack.deltaCacheSize": "64m" };

type Arguments = readonly [string, ...string[]];

const repackArguments = ({ cruft, graceDays = defaultGraceDays }: HousekeepingOptions): Arguments =>
  cruft
    ? [
        "repack",
        "-d",
        "-n",
        "--cruft",
        `--cruft-expiration=${graceDays}.days.ago`,
        "--no-write-bitmap-index",
        "--quiet",
      ]
    : ["repack", "-d", "-n", "--geometric=2", "--quiet"];

interface HousekeepingWays {
  readonly withRefsLocked: (packRefs: () => Promise<void>) => Promise<void>;
  /** Where packs are joined: in place, unless other machines share them. */
  readonly repack?: (run: (directory: string) => Promise<void>) => Promise<void>;
}

export async function housekeep(
  { git, directory }: ObjectPlace,
  options: HousekeepingOptions & { readonly signal: AbortSignal },
  { withRefsLocked, repack = (run) => run(directory) }: HousekeepingWays,
): Promise<HousekeepingOutcome> {
  const { signal } = options;
  const call = { directory, limits: { wallClockMs, memoryBytes, niceness }, signal };
  const step = async (args: Arguments, more: Readonly<Record<string, string>> = {}, at = directory): Promise<void> => {
    signal.throwIfAborted();
    const result: GitResult = await git.run(args, { ...call, directory: at, settings: { ...modest, ...more } });
    signal.throwIfAborted();
    if (result.code !== 0) throw new GitError(args[0], result);
  };
  try {
    await repack((at) => step(repackArguments(options), {}, at));
    if ((await packFactsOf(directory)).packs > 0) await step(["multi-pack-index", "write", "--bitmap"]);
    // With what each commit changed: the history of one path is read without looking into every tree.
    await step(["commit-graph", "write", "--reachable", "--changed-paths", "--max-new-filters=20000", "--no-progress"]);
    // On disk before the loose ones go: they may be recorded as aligned already.
    await withRefsLocked(() => step(["pack-refs", "--all"], { "core.fsync": "reference" }));
    return "done";
  } catch (error) {
    // What a killed git leaves would lie there until the next start.
    // Beside a push nothing is swept: its packs may be on their way into place.
    if (!options.insists) await sweepPacks(directory);
    if (signal.aborted) return "interrupted";
    throw error;
  }
}

export async function packFactsOf(directory: string): Promise<PackFacts> {
  const folder = join(directory, "objects/pack");
  const names = ((await ifPresent(readdir(folder))) ?? []).filter((name) => !/^\.?tmp[-_]/.test(name));
  const present = new Set(names);
  const packs = names.filter((name) => name.endsWith(".idx")).map((name) => name.slice(0, -".idx".length));
  let bytes = 0;
  let objectBytes = 0;
  for (const name of names) {
    const size = (await ifPresent(stat(join(folder, name))))?.size ?? 0;
    bytes += size;
    if (name.endsWith(".pack")) objectBytes += size;
  }
  const garbage = packs.filter((pack) => present.has(`${pack}.mtimes`)).length;
  return {
    packs: packs.length - garbage,
    bytes,
    objectBytes,
    hasBitmap: present.has("multi-pack-index") && names.some((name) => /^multi-pack-index-.*\.bitmap$/.test(name)),
    hasGarbagePack: garbage > 0,
    looseRefs: await looseRefsBelow(join(directory, "refs"), maxLooseRefsCounted),
  };
}

async function looseRefsBelow(folder: string, max: number): Promise<number> {
  let count = 0;
  for (const entry of (await ifPresent(readdir(folder, { withFileTypes: true }))) ?? []) {
    if (count >= max) break;
    count += entry.isDirectory() ? await looseRefsBelow(join(folder, entry.name), max - count) : 1;
  }
  return count;
}

export type HousekeepingKind = "geometric" | "cruft";

/** What is remembered of a repository's housekeeping; seconds since 1970. */
export interface HousekeepingRecord {
  /** The last that was done to its end. */
  readonly doneAt: number;
  /** Ordinary packs it left. */
  readonly packs: number;
  readonly hasBitmap: boolean;
  /** Unreachable objects wait for their end: somebody has to come back for them. */
  readonly hasGarbagePack: boolean;
  /** Ordinary ones since the last that sorted out garbage. */
  readonly repacksSinceCruft: number;
  readonly cruftAt: number;
  /** It gave way after it had begun. */
  readonly isUnfinished: boolean;
  /** In a row. */
  readonly failures: number;
  readonly failedAt: number;
}

export type HousekeepingConfig = Pick<
  Config,
  "gitRepackAfterPacks" | "gitCruftIntervalDays" | "gitCruftAfterRepacks" | "gitRepackQuietSecs" | "gitCruftGraceDays"
>;

export interface HousekeepingFacts extends PackFacts {
  readonly record: HousekeepingRecord | undefined;
  /** Of the disk. A repack writes the new packs before it removes the old ones. */
  readonly freeBytes: number;
}

export const newRecord = (nowSeconds: number): HousekeepingRecord => ({
  doneAt: 0,
  packs: 0,
  hasBitmap: false,
  hasGarbagePack: false,
  repacksSinceCruft: 0,
  cruftAt: nowSeconds,
  isUnfinished: false,
  failures: 0,
  failedAt: 0,
});

const looseRefsToPack = 200;

/** From here on a bitmap shortens the first clone noticeably, however few packs there are. */
const bytesWorthABitmap = 16 * 2 ** 20;

const firstRetrySeconds = 3_600;

const lastRetrySeconds = 86_400;

const secondsPerDay = 86_400;
const spareBytes = 64 * 2 ** 20;

export function housekeepingDue(
  facts: HousekeepingFacts,
  config: Pick<HousekeepingConfig, "gitRepackAfterPacks" | "gitCruftIntervalDays" | "gitCruftAfterRepacks">,
  nowSeconds: number,
): HousekeepingKind | undefined {
  const { record, packs } = facts;
  if (packs === 0 && facts.looseRefs < looseRefsToPack && !facts.hasGarbagePack) return undefined;
  if (record && waitsAfterFailure(record, nowSeconds)) return undefined;
  if (facts.freeBytes < facts.bytes + spareBytes) return undefined;
  if (record && garbageDue(record, packs, config, nowSeconds)) return "cruft";
  const isDue =
    packs - (record?.packs ?? 0) >= config.gitRepackAfterPacks ||
    facts.looseRefs >= looseRefsToPack ||
    (record === undefined && facts.bytes >= bytesWorthABitmap) ||
    (record !== undefined && (record.isUnfinished || (record.hasBitmap && !facts.hasBitmap)));
  if (!isDue) return undefined;
  return record && record.repacksSinceCruft >= config.gitCruftAfterRepacks ? "cruft" : "geometric";
}

/** Also asked of the record alone, for repositories nobody has changed for a week. */
export function garbageDue(
  record: HousekeepingRecord,
  packs: number,
  config: Pick<HousekeepingConfig, "gitCruftIntervalDays">,
  nowSeconds: number,
): boolean {
  const hasChanged = record.repacksSinceCruft > 0 || record.hasGarbagePack || packs > record.packs;
  return hasChanged && nowSeconds - record.cruftAt >= config.gitCruftIntervalDays * secondsPerDay;
}

function waitsAfterFailure({ failures, failedAt }: HousekeepingRecord, nowSeconds: number): boolean {
  if (failures === 0) return false;
  const since = nowSeconds - failedAt;
  // A clock that was set back does not make it wait.
  return since >= 0 && since < Math.min(firstRetrySeconds * 2 ** (failures - 1), lastRetrySeconds);
}

/** What is remembered after it ran. */
export function recordAfter(
  before: HousekeepingRecord,
  kind: HousekeepingKind,
  outcome: "done" | "interrupted" | "failed",
  left: PackFacts,
  nowSeconds: number,
): HousekeepingRecord {
  if (outcome === "interrupted") return { ...before, isUnfinished: true };
  if (outcome === "failed") return { ...before, failures: before.failures + 1, failedAt: nowSeconds };
  return {
    doneAt: nowSeconds,
    packs: left.packs,
    hasBitmap: left.hasBitmap,
    hasGarbagePack: left.hasGarbagePack,
    repacksSinceCruft: kind === "cruft" ? 0 : before.repacksSinceCruft + 1,
    cruftAt: kind === "cruft" ? nowSeconds : before.cruftAt,
    isUnfinished: false,
    failures: 0,
    failedAt: 0,
  };
}
