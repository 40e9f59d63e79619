// What a relay's words mean. Remote text decides nothing but this, and never reaches a label.

import type { ReconcileFailure } from "./messages.js";

export type ClosedMeaning = "rate-limited" | "auth-required" | "invalid" | "other";

const slowDown = /^rate-limited:|rate.?limit|too many|slow down|throttl/i;
const invalid = /^invalid:|invalid|malformed|bad req|bad filter/i;
const negentropy = /negentropy|neg-(open|msg|close)|unknown (message|command|cmd|type)|unrecogni[sz]ed/i;

export function meaningOfClosed(message: string): ClosedMeaning {
  const text = message.slice(0, 300);
  if (text.startsWith("auth-required:")) return "auth-required";
  if (slowDown.test(text)) return "rate-limited";
  return invalid.test(text) ? "invalid" : "other";
}

export const isRateLimit = (message: string): boolean => slowDown.test(message.slice(0, 300));
export const namesNegentropy = (message: string): boolean => negentropy.test(message.slice(0, 300));

/** What a NEG-ERR, or a CLOSED that names the session, means. */
export function meaningOfNegErr(message: string): ReconcileFailure {
  if (/^blocked\b/i.test(message)) return "too-many";
  return isRateLimit(message) ? "rate-limited" : "failed";
}
