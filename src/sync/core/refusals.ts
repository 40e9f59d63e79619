// What each refusal means for sync: whether the event may become welcome, and whether it says anything about the relay.

import type { RefusalCode } from "../../nostr/refusals.js";
import type { Outcome } from "./messages.js";

/** What it refers to is not here yet, or not yet such that it is allowed. */
export const notYet: ReadonlySet<RefusalCode> = new Set([
  "unrelated",
  "no-announcement",
  "not-a-maintainer",
  "service-not-listed",
]);
export const byLists: ReadonlySet<RefusalCode> = new Set([
  "author-blocked",
  "repository-blocked",
  "event-blocked",
  "not-whitelisted",
]);
export const forGood: ReadonlySet<RefusalCode> = new Set(["deleted", "vanished", "expired"]);

/** Our own server could not take it: it is lost until it is fetched again. */
const trouble = new Set<RefusalCode>(["disk-full", "store-failed", "shutting-down", "busy"]);
/** Our own rules have no room for it now, or it was kept and git failed: no reason to do anything. */
const forNow = new Set<RefusalCode>(["too-many-waiting", "waiting-room-full", "rate-limited", "too-many", "internal"]);

export const isTrouble = (outcome: Outcome): boolean => outcome.type === "refused" && trouble.has(outcome.code);

/** Says nothing about the event, nor about the relay that sent it. */
export const isOurs = (outcome: Outcome): boolean =>
  isTrouble(outcome) || (outcome.type === "refused" && forNow.has(outcome.code));
