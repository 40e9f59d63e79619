import assert from "node:assert/strict";
import { test } from "node:test";
import { GatheredBytes } from "./gathered-bytes.js";

test("pieces of any size, empty ones too, are one text in their order", () => {
  const gathered = new GatheredBytes();
  const pieces = ["", "a", "", "bc", "d".repeat(1_000), "", "e"];
  for (const piece of pieces) gathered.add(Buffer.from(piece));
  assert.equal(gathered.all.toString(), pieces.join(""));
  assert.equal(gathered.length, 1_004);
  assert.equal(new GatheredBytes().all.length, 0);
});

test("adding never writes into a piece that was given", () => {
  const slab = Buffer.from("abXX");
  const gathered = new GatheredBytes();
  gathered.add(slab.subarray(0, 2));
  gathered.add(Buffer.from("cd"));
  assert.equal(gathered.all.toString(), "abcd");
  assert.equal(slab.toString(), "abXX");
});

test("a million pieces of one byte are held in little more than their bytes", () => {
  const gathered = new GatheredBytes();
  for (let at = 0; at < 1_000_000; at++) gathered.add(Buffer.from([at % 256]));
  assert.equal(gathered.length, 1_000_000);
  assert.ok(gathered.all.buffer.byteLength <= 2_000_000);
});
