// The one table of reasons for which an event or a request is refused. A code is the same in the answer's metric,
// in the log and in `holdfast why`; its prefix (NIP-01) is what clients act on. What it means is for people who look up a
// code they saw: docs/reference/refusals.md lists the table.

const refusals = {
  // What was sent is not well formed.
  "bad-message": ["invalid", "The frame is no JSON array that NIP-01 knows."],
  "bad-event": ["invalid", "The event does not have the shape NIP-01 asks for."],
  "bad-id": ["invalid", "The id is not the hash of the event."],
  "bad-signature": ["invalid", "The signature does not belong to this pubkey and id."],
  "bad-filter": ["invalid", "A filter is malformed."],
  "bad-subscription": ["invalid", "The subscription id is empty, too long or not a string."],
  "too-large": ["invalid", "The message or event is larger than the limit in the information document."],
  "from-the-future": ["invalid", "`created_at` is too far ahead of the server's clock."],
  expired: ["invalid", "The event's own expiration (NIP-40) has passed."],
  "bad-announcement": ["invalid", "The repository announcement lacks something or contradicts itself."],
  "bad-state": ["invalid", "The repository state names refs git could never hold."],
  "object-format": [
    "invalid",
    "The state mixes SHA-1 and SHA-256 object ids, or names objects by another hash than the repository it is for.",
  ],
  // What was sent is understood and not wanted here.
  deleted: ["blocked", "Its author asked for it to be deleted."],
  vanished: ["blocked", "Its author asked to vanish from this relay."],
  "author-blocked": ["blocked", "The operator refuses this author."],
  "repository-blocked": ["blocked", "The operator refuses this repository."],
  "event-blocked": ["blocked", "The operator refuses this event."],
  "not-whitelisted": ["blocked", "Only chosen repositories are accepted here."],
  "service-not-listed": ["blocked", "The announcement does not list this server in both `clone` and `relays`."],
  unrelated: ["blocked", "The event has nothing to do with a repository hosted here."],
  "not-relayed": ["blocked", "Events of this kind are not passed on."],
  "waiting-room-full": ["blocked", "Too much waits for its git data already."],
  "no-announcement": ["invalid", "No announcement is known for the repository of this state."],
  "not-a-maintainer": ["invalid", "The author is not a maintainer of the repository."],
  "not-allowed": ["restricted", "This needs a right the connection has not proven."],
  "private-announcement": [
    "restricted",
    "The announcement asks for a private service (GRASP-08), and this one is public.",
  ],
  "auth-required": ["auth-required", "Authenticate first (NIP-42)."],
  "too-many": ["blocked", "More subscriptions, filters, values or sessions than allowed."],
  "too-many-waiting": ["rate-limited", "As many events of this key wait for git data as may."],
  "rate-limited": ["rate-limited", "Too fast; try again later."],
  // Enough for a day.
  "author-bytes": ["rate-limited", "As many bytes of events by this author were kept as may be in a day."],
  "repository-bytes": ["rate-limited", "As many bytes of events about this repository were kept as may be in a day."],
  "address-bytes": ["rate-limited", "As many bytes of events from this address were kept as may be in a day."],
  // Our own fault, or the disk's.
  busy: ["rate-limited", "The server has more to do than it can; try again in a few seconds."],
  "disk-full": ["error", "The server's disk is full; try again later."],
  "store-failed": ["error", "The server could not write; try again later."],
  "shutting-down": ["error", "The server is stopping; try again later."],
  internal: ["error", "A fault in the server; it is in its log."],
} as const;

export type RefusalCode = keyof typeof refusals;

const column = <Index extends 0 | 1>(index: Index) =>
  Object.fromEntries(Object.entries(refusals).map(([code, row]) => [code, row[index]])) as {
    readonly [Code in RefusalCode]: (typeof refusals)[Code][Index];
  };

export const refusalPrefixes = column(0);
export const refusalMeanings = column(1);

export interface Refusal {
  readonly ok: false;
  readonly code: RefusalCode;
  /** One human sentence that says what to do; without the prefix. */
  readonly message: string;
}

export const refuse = (code: RefusalCode, message: string): Refusal => ({ ok: false, code, message });

/** The text of an OK or CLOSED: `blocked: …`. */
export const refusalText = (refusal: Refusal): string => `${refusalPrefixes[refusal.code]}: ${refusal.message}`;
