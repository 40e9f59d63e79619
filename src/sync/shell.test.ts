// The small pure parts of the shell: what relays say, what they state, what a failed dial and an answer mean.

import assert from "node:assert/strict";
import { test } from "node:test";
import { failure } from "../net/failure.js";
import { parseRelayMessage } from "../net/relay-client.js";
import { connectFailure, limitsOf } from "../net/relay-dialer.js";
import { refuse } from "../nostr/refusals.js";
import { relayLabels } from "./metrics.js";
import { outcomeOf } from "./offers.js";

test("what has not the shape of a message is nothing", () => {
  for (const text of ["", "{}", "null", "[]", '["EVENT"]', '["EVENT",1,{}]', '["HELLO","x"]', "[[", '["EOSE",null]']) {
    assert.equal(parseRelayMessage(text), undefined, text);
  }
  assert.equal(parseRelayMessage(JSON.stringify(["AUTH", "x".repeat(2_000)])), undefined);
  assert.deepEqual(parseRelayMessage('["CLOSED","a",5]'), { type: "CLOSED", subscription: "a", text: "" });
  assert.deepEqual(parseRelayMessage('["NEG-MSG","n","61zz"]'), {
    type: "NEG-ERR",
    subscription: "n",
    text: "invalid: not hex",
  });
});

test("only limits that are positive whole numbers are obeyed", () => {
  assert.deepEqual(limitsOf({ limitation: { max_limit: 100, max_filters: 0, max_subscriptions: "9" } }), {
    maxLimit: 100,
  });
  for (const nonsense of [null, 5, [], {}, { limitation: null }, { limitation: 3 }]) {
    assert.deepEqual(limitsOf(nonsense), {});
  }
});

test("only lasting faults of a relay are called by a lasting name", () => {
  const kinds = (
    ["dns-missing", "certificate", "not-a-websocket", "dns-temporary", "timeout", "tls", "reset"] as const
  ).map((code) => connectFailure(failure(code, "")));
  assert.deepEqual(kinds, [
    "dns-not-found",
    "certificate",
    "not-websocket",
    "dns-temporary",
    "timeout",
    "other",
    "other",
  ]);
  const answers = [429, 503, 403].map((status) => connectFailure(failure("http-status", "", status)));
  assert.deepEqual(answers, ["too-many-requests", "server-error", "other"]);
});

test("intake's answers are told apart by their codes, whatever their sentences say", () => {
  const outcomes = (["stored", "held", "waiting", "duplicate", "superseded"] as const).map(
    (outcome) => outcomeOf({ ok: true, outcome, message: "duplicate: a newer version is stored" }).type,
  );
  assert.deepEqual(outcomes, ["stored", "held", "waiting", "duplicate", "superseded"]);
  assert.deepEqual(outcomeOf(refuse("unrelated", "x")), { type: "refused", code: "unrelated" });
});

test("the busiest relays keep their names", () => {
  const labelOf = relayLabels(
    ["a", "b", "c"],
    new Map([
      ["b", 9],
      ["c", 5],
    ]),
    2,
  );
  assert.deepEqual(["a", "b", "c"].map(labelOf), ["other", "b", "c"]);
});
