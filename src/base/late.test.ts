import assert from "node:assert/strict";
import { test } from "node:test";
import { Late } from "./late.js";

test("a late thing is made once for all who ask, and not before", async () => {
  let made = 0;
  const late = new Late(async () => ++made);
  assert.equal(late.begun, undefined);
  assert.deepEqual(await Promise.all([late.get(), late.get()]), [1, 1]);
  assert.equal(await late.begun, 1);
});

test("what failed to be made is made anew for the next one who asks", async () => {
  const outcomes = [Promise.reject(new Error("no descriptors left")), Promise.resolve("page")];
  const late = new Late(() => outcomes.shift() ?? Promise.reject(new Error("made too often")));
  await assert.rejects(Promise.all([late.get(), late.get()]), /no descriptors left/);
  assert.equal(await late.get(), "page");
  assert.equal(await late.get(), "page");
});
