// The words of relays as they were met, and what they mean.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Meaning, meaningOf, meaningOfNegErr } from "./closed-reasons.js";
import type { ReconcileFailure } from "./messages.js";

const words: readonly (readonly [Meaning, string])[] = [
  // A prefix decides, whatever follows.
  ["auth-required", "auth-required: too many requests for strangers"],
  ["rate-limited", "rate-limited: slow down"],
  ["rate-limited", "Rate-Limited: too many values"],
  ["refused", "restricted: rate limit for members only"],
  ["refused", "blocked: slow down, we are busy"],
  ["refused", "blocked: too many requests"],
  ["refused", "blocked: too many sessions"],
  ["refused", "blocked: negentropy is for friends"],
  ["invalid", "invalid: value too long"],
  ["invalid", "invalid: too many requests"],
  ["invalid", "invalid: limit must be positive"],
  // Sizes.
  ["too-many-values", "invalid: too many values in #d"],
  ["too-many-values", "invalid: a filter may have at most 100 tag values"],
  ["too-many-values", "invalid: too many values in filter"],
  ["too-many-values", "invalid: too many filter values"],
  ["too-many-values", "blocked: too many ids"],
  ["too-many-values", "ERROR: bad req: too many tags"],
  ["too-many-values", "invalid: filter too large"],
  ["too-many-filters", "invalid: too many filters"],
  ["too-many-results", "blocked: too many query results"],
  ["too-many-results", "blocked: this query is too big"],
  ["too-many-results", "blocked: too many records"],
  ["too-many-results", "too many events match"],
  ["too-many-results", "invalid: limit too high"],
  // Free text.
  ["rate-limited", "you are sending too many events"],
  ["rate-limited", "ERROR: too many concurrent REQs"],
  ["rate-limited", "Please slow down"],
  ["rate-limited", "error: rate limit exceeded, 10 events at most"],
  ["rate-limited", "throttled"],
  ["no-negentropy", "ERROR: bad msg: unknown cmd NEG-OPEN"],
  ["no-negentropy", "ERROR: negentropy disabled"],
  ["invalid", "ERROR: bad req: filter item too small"],
  ["other", "error: could not serve this now"],
  ["other", ""],
  // A Holdfast's own.
  ["refused", "blocked: too many reconciliations are under way: try again later"],
  ["refused", "blocked: at most 4 reconciliations may be open"],
  ["refused", "blocked: at most 100 subscriptions may be open on a connection"],
  ["too-many-results", "blocked: this filter matches more than 1000000 records: narrow it"],
  ["too-many-values", "invalid: a filter may have at most 5000 values"],
  ["too-many-filters", "invalid: at most 10 filters are allowed"],
  ["other", "error: the server is shutting down: try again later"],
  ["other", "closed: nothing was heard for too long"],
];

describe("the words of a relay", () => {
  for (const [meaning, text] of words) {
    it(`"${text}" means ${meaning}`, () => assert.equal(meaningOf(text), meaning));
  }

  const sessions: readonly (readonly [ReconcileFailure, string])[] = [
    ["too-many", "blocked: too many query results"],
    ["too-many", "blocked: this filter matches more than 1000000 records: narrow it"],
    ["too-many-values", "invalid: too many values"],
    ["busy", "blocked: too many reconciliations are under way: try again later"],
    ["busy", "restricted: not for you"],
    ["rate-limited", "rate-limited: later"],
    ["auth-required", "auth-required: who are you"],
    ["failed", "error: negentropy is broken"],
    ["failed", "invalid: filter"],
    ["failed", "closed: you took too long"],
  ];
  for (const [failure, text] of sessions) {
    it(`a session that ends with "${text}" ended as ${failure}`, () => assert.equal(meaningOfNegErr(text), failure));
  }
});
