// What happens to an entry whose time is over: pure (purgatory.md, "Waiting room").

import type { WaitingEntry } from "../admission/waiting.js";

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

/** How far the wall clock jumped since it was looked at last; jumps up to `toleratedSeconds` are lived with. */
export function clockJumpSeconds(
  before: { readonly wallMs: number; readonly monotonicMs: number },
  after: { readonly wallMs: number; readonly monotonicMs: number },
  toleratedSeconds: number,
): number {
  const driftMs = after.wallMs - before.wallMs - (after.monotonicMs - before.monotonicMs);
  return Math.abs(driftMs) > toleratedSeconds * 1000 ? Math.round(driftMs / 1000) : 0;
}
