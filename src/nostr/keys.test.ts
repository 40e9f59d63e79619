import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { inspect } from "node:util";
import { getPublicKey, verifyEvent } from "nostr-tools/pure";
import { SecretKey, signEvent } from "./keys.js";
import { keyFrom, seededBytes } from "./testing/signed.js";

const draft = { kind: 22_242, created_at: 1_700_000_000, tags: [["challenge", "x"]], content: "é" };

test("a key has the public key that nostr-tools derives, and signs what nostr-tools accepts", () => {
  for (let run = 0; run < 10; run++) {
    const key = SecretKey.generate(randomBytes);
    assert.equal(key.pubkey, getPublicKey(key.exportBytes()));
    const event = signEvent(key, draft, randomBytes);
    assert.equal(event.pubkey, key.pubkey);
    assert.ok(verifyEvent(JSON.parse(event.raw)));
  }
});

test("the official signing vector of BIP-340", () => {
  const key = SecretKey.fromHex("0000000000000000000000000000000000000000000000000000000000000003")!;
  assert.equal(key.pubkey, "f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9");
  assert.equal(
    key.sign(new Uint8Array(32), (length) => new Uint8Array(length)),
    "e907831f80848d1069a5371b402410364bdf1c5f8307b0084c55f1ce2dca821525f66a4a85ea8b71e482a74f382d2ce5ebeee8fdb2172f477df4900d310536c0",
  );
});

test("randomness is the caller's: the same bytes give the same key and signature, others another", () => {
  assert.equal(keyFrom("a").pubkey, keyFrom("a").pubkey);
  assert.notEqual(keyFrom("a").pubkey, keyFrom("b").pubkey);
  const sign = (seed: string) => signEvent(keyFrom("a"), draft, seededBytes(seed)).sig;
  assert.equal(sign("x"), sign("x"));
  assert.notEqual(sign("x"), sign("y"));
});

test("zero, numbers beyond the group's order and other lengths are no keys", () => {
  const order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
  for (const text of ["0".repeat(64), order, "f".repeat(64), "1".repeat(63), "1".repeat(66), "", "A".repeat(64)]) {
    assert.equal(SecretKey.fromHex(text), undefined, text);
  }
  assert.ok(SecretKey.fromHex(order.replace(/41$/, "40")));
  assert.equal(SecretKey.fromBytes(new Uint8Array(31).fill(1)), undefined);
  assert.throws(() => SecretKey.generate((length) => new Uint8Array(length)), /randomness/);
});

test("a secret key does not show itself to logs, errors or JSON", () => {
  const key = keyFrom("secret");
  const hex = Buffer.from(key.exportBytes()).toString("hex");
  for (const text of [String(key), JSON.stringify({ key }), inspect(key, { depth: 9, showHidden: true }), `${key}`]) {
    assert.ok(!text.includes(hex) && !text.includes(hex.slice(0, 8)), text);
    assert.ok(!text.includes(String(key.exportBytes()[0]!).concat(", ")), text);
  }
});

test("changing the bytes a key was made of, or a copy of them, does not change the key", () => {
  const bytes = new Uint8Array(32).fill(5);
  const key = SecretKey.fromBytes(bytes)!;
  bytes.fill(6);
  key.exportBytes().fill(7);
  assert.deepEqual(key.exportBytes(), new Uint8Array(32).fill(5));
});

test("a draft that is no event is a bug, not an event", () => {
  assert.throws(() => signEvent(keyFrom("a"), { ...draft, kind: 70_000 }, randomBytes), /not well formed/);
  assert.throws(() => signEvent(keyFrom("a"), { ...draft, content: "\ud800" }, randomBytes), /not well formed/);
});
