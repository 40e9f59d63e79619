import assert from "node:assert/strict";
import { test } from "node:test";
import { assertLinear, uglyShapes } from "./linear-time.js";

const spaces = (chars: number): string => `x${" ".repeat(chars)}x`;

test("a walk over the text passes, measured", () => {
  assertLinear("a walk", spaces, (text) => {
    let sum = 0;
    for (let at = 0; at < text.length; at++) sum += text.charCodeAt(at);
    return sum;
  });
});

test("what grows with the text passes, what grows with its square does not, whichever runs something else slows down", () => {
  /** Runs `slow` of every seven take three times as long. */
  const judge = (micros: (chars: number) => number, ...slow: number[]): void => {
    let run = 0;
    let chars = 0;
    const read = (text: string): void => {
      chars = text.length;
    };
    assertLinear("a pattern", spaces, read, {
      maxChars: 2 ** 17,
      microsOf(parse) {
        parse();
        return micros(chars) * (slow.includes(run++ % 7) ? 3 : 1);
      },
    });
  };
  for (const slow of [[], [0], [0, 1], [1, 2], [2, 3], [0, 3, 6], [4, 5]]) {
    judge((chars) => chars / 2, ...slow);
    assert.throws(
      () => judge((chars) => chars ** 2 / 1_000, ...slow),
      /a pattern: of \d+ and \d+, these take/,
      `${slow}`,
    );
  }
  // Nobody is hurt by what takes no time at the longest.
  judge((chars) => chars ** 2 / 2 ** 24);
});

test("every ugly shape is about as long as asked", () => {
  for (const [name, make] of uglyShapes) {
    const { length } = make(1_000);
    assert.ok(length >= 1_000 && length < 1_020, name);
  }
});
