// What a relay's words mean, in CLOSED, NOTICE and NEG-ERR alike (spec "Words of relays"). A prefix decides; free text is
// read only where there is none, and inside `blocked:` and `invalid:` only for sizes. Remote text decides nothing but
// this, and never reaches a label.

import type { ReconcileFailure } from "./messages.js";

export type Meaning =
  | "auth-required"
  | "rate-limited"
  /** The answer would be too large: ask for less time, or for smaller pages. */
  | "too-many-results"
  /** A filter names more than the relay takes: ask for fewer at once. */
  | "too-many-values"
  | "too-many-filters"
  /** Something in the question is wrong. */
  | "invalid"
  /** Understood and not done: policy, or busy. */
  | "refused"
  /** Does not speak negentropy. */
  | "no-negentropy"
  | "other";

const prefix = /^(auth-required|invalid|blocked|restricted|rate-limited)\s*:/i;

/** `too many`, `more than 500` or `at most 500` of something. */
const sizeOf = (things: string): RegExp =>
  new RegExp(`(?:too many|(?:more than|at most|maximum(?: of)?|up to) \\d+) (?:[\\w-]+ ){0,2}(?:${things})s?\\b`, "i");

const sizes: readonly (readonly [RegExp, Meaning])[] = [
  [sizeOf("value|tag|item|element|id|author|kind|condition"), "too-many-values"],
  [sizeOf("filter"), "too-many-filters"],
  [/\bfilters?\b.{0,20}\btoo (?:large|big|long|complex)/i, "too-many-values"],
  [sizeOf("result|record|event|row|match|matche"), "too-many-results"],
  [/\b(?:query|results?|range|answer)\b.{0,20}\btoo (?:large|big|broad)/i, "too-many-results"],
  [/\blimit\b.{0,20}\b(?:too (?:large|big|high)|exceed|at most|maximum)/i, "too-many-results"],
];

const freeText: readonly (readonly [RegExp, Meaning])[] = [
  [/rate.?limit|slow down|throttl|\bsending\b/i, "rate-limited"],
  ...sizes,
  [/too many/i, "rate-limited"],
  [/negentropy|neg-(?:open|msg|close)|unknown (?:message|command|cmd|type)|unrecogni[sz]ed/i, "no-negentropy"],
  [/invalid|malformed|bad req|bad filter/i, "invalid"],
];

const withPrefix: Readonly<Record<string, Meaning>> = {
  "auth-required": "auth-required",
  "rate-limited": "rate-limited",
  restricted: "refused",
  blocked: "refused",
  invalid: "invalid",
};

export function meaningOf(message: string): Meaning {
  const text = message.slice(0, 300);
  const said = prefix.exec(text)?.[1]?.toLowerCase();
  const table = said === undefined ? freeText : said === "blocked" || said === "invalid" ? sizes : [];
  const found = table.find(([words]) => words.test(text))?.[1];
  return found ?? (said === undefined ? "other" : withPrefix[said]!);
}

const failures: Partial<Record<Meaning, ReconcileFailure>> = {
  "auth-required": "auth-required",
  "rate-limited": "rate-limited",
  "too-many-results": "too-many",
  "too-many-values": "too-many-values",
  refused: "busy",
};

/** What a NEG-ERR, or a CLOSED or NOTICE in its place, means for the session. */
export const meaningOfNegErr = (message: string): ReconcileFailure => failures[meaningOf(message)] ?? "failed";
