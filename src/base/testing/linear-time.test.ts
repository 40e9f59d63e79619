import assert from "node:assert/strict";
import { test } from "node:test";
import { assertLinear, uglyShapes } from "./linear-time.js";

test("a walk over the text passes, a pattern that tries again from each place does not", () => {
  const spaces = (chars: number): string => `x${" ".repeat(chars)}x`;
  assertLinear("a walk", spaces, (text) => {
    let sum = 0;
    for (let at = 0; at < text.length; at++) sum += text.charCodeAt(at);
    return sum;
  });
  assert.throws(
    () => assertLinear("a pattern", spaces, (text) => / +$/.test(text), { maxChars: 2 ** 17 }),
    /a pattern: of \d+ and \d+, these take/,
  );
});

test("every ugly shape is about as long as asked", () => {
  for (const [name, make] of uglyShapes) {
    const { length } = make(1_000);
    assert.ok(length >= 1_000 && length < 1_020, name);
  }
});
