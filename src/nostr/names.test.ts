// Ids, kinds and refusals: small tables that everything else relies on.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isEventId, isPubkey, isSignature, kindLabel, kinds, rootKinds } from "./event.js";
import { isOid } from "./nip34.js";
import { refusalPrefixes, refusalText, refuse } from "./refusals.js";

const notHex = [
  undefined,
  null,
  5,
  {},
  ["a".repeat(64)],
  "",
  "a".repeat(63),
  "a".repeat(65),
  "A".repeat(64),
  "g".repeat(64),
];

test("ids and keys are exactly 64 lower-case hex digits", () => {
  for (const check of [isEventId, isPubkey]) {
    assert.equal(check("0123456789abcdef".repeat(4)), true);
    for (const text of [...notHex, `${"a".repeat(64)}\n`, ` ${"a".repeat(63)}`])
      assert.equal(check(text), false, `${text}`);
  }
  assert.equal(isSignature("a".repeat(128)), true);
  for (const text of [...notHex, "a".repeat(64)]) assert.equal(isSignature(text), false);
});

test("an object id is 40 or 64 lower-case hex digits: no refspec, no option (threats.md 1)", () => {
  assert.equal(isOid("a".repeat(40)), true);
  assert.equal(isOid("a".repeat(64)), true);
  for (const text of [
    ...notHex,
    "a".repeat(41),
    "+refs/heads/x:refs/heads/main",
    "--upload-pack=x",
    `${"a".repeat(40)}\n`,
  ]) {
    assert.equal(isOid(text), false, `${text}`);
  }
});

test("known kinds label themselves, all others share one label", () => {
  for (const kind of [...Object.values(kinds), 1630, 7]) assert.equal(kindLabel(kind), String(kind));
  for (const kind of [-1, 2, 4711, 65_535]) assert.equal(kindLabel(kind), "other");
});

test("roots are patches, pull requests, their updates and issues", () => {
  assert.deepEqual(rootKinds, [1617, 1618, 1619, 1621]);
});

test("every refusal has a prefix of NIP-01 and says it before the sentence", () => {
  const allowed = new Set(["invalid", "blocked", "restricted", "rate-limited", "error", "auth-required", "pow"]);
  for (const [code, prefix] of Object.entries(refusalPrefixes)) assert.ok(allowed.has(prefix), code);
  assert.equal(
    refusalText(refuse("bad-id", "id is not the hash of the event")),
    "invalid: id is not the hash of the event",
  );
  assert.deepEqual(refuse("unrelated", "x"), { ok: false, code: "unrelated", message: "x" });
});
