// Whether a repository needs housekeeping now, and which (git-http.md, Serving, last point). Pure: what was found on
// disk, what was done last, and the time go in.

import type { PackFacts } from "./types.js";

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

export interface HousekeepingRules {
  /** So many packs more than the last time. */
  readonly packsToJoin: number;
  readonly cruftSeconds: number;
  readonly cruftAfterRepacks: number;
}

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
const spareBytes = 64 * 2 ** 20;

export function housekeepingDue(
  facts: HousekeepingFacts,
  rules: HousekeepingRules,
  nowSeconds: number,
): HousekeepingKind | undefined {
  const { record, packs } = facts;
  if (packs === 0 && facts.looseRefs < looseRefsToPack && !facts.hasGarbagePack) return undefined;
  if (record && waitsAfterFailure(record, nowSeconds)) return undefined;
  if (facts.freeBytes < facts.bytes + spareBytes) return undefined;
  if (record && garbageDue(record, packs, rules, nowSeconds)) return "cruft";
  const isDue =
    packs - (record?.packs ?? 0) >= rules.packsToJoin ||
    facts.looseRefs >= looseRefsToPack ||
    (record === undefined && facts.bytes >= bytesWorthABitmap) ||
    (record !== undefined && (record.isUnfinished || (record.hasBitmap && !facts.hasBitmap)));
  if (!isDue) return undefined;
  return record && record.repacksSinceCruft >= rules.cruftAfterRepacks ? "cruft" : "geometric";
}

/** Also asked of the record alone, for repositories nobody has changed for a week. */
export function garbageDue(
  record: HousekeepingRecord,
  packs: number,
  rules: Pick<HousekeepingRules, "cruftSeconds">,
  nowSeconds: number,
): boolean {
  const hasChanged = record.repacksSinceCruft > 0 || record.hasGarbagePack || packs > record.packs;
  return hasChanged && nowSeconds - record.cruftAt >= rules.cruftSeconds;
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
