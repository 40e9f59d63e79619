// The one table of reasons for which an event or a request is refused. A code is the same in the answer's metric,
// in the log and in `holdfast why`; its prefix (NIP-01) is what clients act on. docs/reference/refusals.md lists it.

export const refusalPrefixes = {
  // What was sent is not well formed.
  "bad-message": "invalid",
  "bad-event": "invalid",
  "bad-id": "invalid",
  "bad-signature": "invalid",
  "bad-filter": "invalid",
  "bad-subscription": "invalid",
  "too-large": "invalid",
  "from-the-future": "invalid",
  expired: "invalid",
  "bad-announcement": "invalid",
  "bad-state": "invalid",
  // What was sent is understood and not wanted here.
  deleted: "blocked",
  vanished: "blocked",
  "author-blocked": "blocked",
  "repository-blocked": "blocked",
  "event-blocked": "blocked",
  "not-whitelisted": "blocked",
  "service-not-listed": "blocked",
  unrelated: "blocked",
  "not-relayed": "blocked",
  "waiting-room-full": "blocked",
  "no-announcement": "invalid",
  "not-a-maintainer": "invalid",
  "not-allowed": "restricted",
  "auth-required": "auth-required",
  "too-many": "blocked",
  "too-many-waiting": "rate-limited",
  "rate-limited": "rate-limited",
  // Enough for a day.
  "author-bytes": "rate-limited",
  "repository-bytes": "rate-limited",
  "address-bytes": "rate-limited",
  // Our own fault, or the disk's.
  busy: "rate-limited",
  "disk-full": "error",
  "store-failed": "error",
  "shutting-down": "error",
  internal: "error",
} as const;

export type RefusalCode = keyof typeof refusalPrefixes;

export interface Refusal {
  readonly ok: false;
  readonly code: RefusalCode;
  /** One human sentence that says what to do; without the prefix. */
  readonly message: string;
}

export const refuse = (code: RefusalCode, message: string): Refusal => ({ ok: false, code, message });

/** The text of an OK or CLOSED: `blocked: …`. */
export const refusalText = (refusal: Refusal): string => `${refusalPrefixes[refusal.code]}: ${refusal.message}`;
