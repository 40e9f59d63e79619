// When a wait or a grace is over, what happens then, and what a clock that jumped does to both: pure (purgatory.md,
// "Waiting room").

import type { CatalogueRow } from "../catalogue/repositories.js";
import type { WaitingEntry } from "../catalogue/waiting.js";

export interface ExpiryTimes {
  /** How long an announcement stays known without a repository. */
  readonly softSeconds: number;
  /** How long a synced state or pull request is hunted softly, and again that long its id is remembered. */
  readonly rememberSeconds: number;
}

export type Expiry =
  /** Kept, unserved; an announcement loses its repository. */
  | { readonly to: "soft"; readonly expires: number; readonly dropRepository: boolean }
  | { readonly to: "gone"; readonly rememberUntil: number | undefined };

export function expiryOf(entry: WaitingEntry, nowSeconds: number, times: ExpiryTimes): Expiry {
  const { softSeconds, rememberSeconds } = times;
  const gone = { to: "gone", rememberUntil: undefined } as const;
  switch (entry.kind) {
    case "related":
      return gone;
    case "announcement":
      return entry.phase === "waiting" ? { to: "soft", expires: nowSeconds + softSeconds, dropRepository: true } : gone;
    case "state":
    case "pull-request":
      // One that a client sent may be sent again at any time; one that sync or an import brought would be missed for ever.
      if (entry.source.type !== "sync" && entry.source.type !== "import") return gone;
      return entry.phase === "waiting"
        ? { to: "soft", expires: nowSeconds + rememberSeconds, dropRepository: false }
        : { to: "gone", rememberUntil: nowSeconds + rememberSeconds };
  }
}

/** What a deleted or leaving repository held goes then; what the public compliance tool deleted is not kept as long. */
export function isGraceOver(
  { status, since, checkedAt }: CatalogueRow,
  nowSeconds: number,
  { unhostGraceSeconds, auditSeconds }: { readonly unhostGraceSeconds: number; readonly auditSeconds: number },
): boolean {
  if (status !== "deleted" && status !== "leaving") return false;
  if (since + unhostGraceSeconds <= nowSeconds) return true;
  return status === "deleted" && typeof checkedAt === "number" && checkedAt + auditSeconds <= nowSeconds;
}

/** Both clocks at one moment. */
export interface ClockLook {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** How far the wall clock jumped since it was looked at last; jumps up to `toleratedSeconds` are lived with. */
export function clockJumpSeconds(before: ClockLook, after: ClockLook, toleratedSeconds: number): number {
  const driftMs = after.wallMs - before.wallMs - (after.monotonicMs - before.monotonicMs);
  return Math.abs(driftMs) > toleratedSeconds * 1000 ? Math.round(driftMs / 1000) : 0;
}

/** Whether a time was taken before a jump between these two looks: what came after it has its times from the new clock. */
export function takenBefore(jumpSeconds: number, before: ClockLook, after: ClockLook): (atSeconds: number) => boolean {
  const [first, last] = [Math.floor(before.wallMs / 1000) + jumpSeconds - 1, Math.ceil(after.wallMs / 1000)];
  return (atSeconds) => atSeconds < first || atSeconds > last;
}

/** Each of its times by the clock it was taken from: a wait may have been renewed after the jump. */
export function movedBy(entry: WaitingEntry, seconds: number, isOlder: (atSeconds: number) => boolean): WaitingEntry {
  const moved = (at: number): number => (isOlder(at) ? at + seconds : at);
  const { entered, firstWaited, renewed = entered } = entry;
  const expires = isOlder(renewed) ? entry.expires + seconds : entry.expires;
  return { ...entry, entered: moved(entered), firstWaited: moved(firstWaited), renewed: moved(renewed), expires };
}
