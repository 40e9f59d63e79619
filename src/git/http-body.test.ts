import assert from "node:assert/strict";
import { test } from "node:test";
import { Pace } from "./http-body.js";

const cases: readonly (readonly [string, readonly (readonly [number, number])[], readonly boolean[]])[] = [
  [
    "silence is too slow when the window is over, not before",
    [
      [999, 0],
      [1, 0],
    ],
    [true, false],
  ],
  [
    "dribbling is too slow",
    [
      [500, 1],
      [500, 1],
    ],
    [true, false],
  ],
  [
    "the minimum is enough",
    [
      [500, 500],
      [500, 500],
    ],
    [true, true],
  ],
  [
    "what came in one window does not count in the next",
    [
      [1_000, 1_000_000],
      [1_000, 999],
    ],
    [true, false],
  ],
  [
    "a burst after a silence counts as a whole",
    [
      [900, 0],
      [100, 1_000],
    ],
    [true, true],
  ],
  [
    "time we did not wait is not counted",
    [
      [0, 1],
      [0, 1],
    ],
    [true, true],
  ],
];

for (const [name, steps, expected] of cases) {
  test(`pace: ${name}`, () => {
    const pace = new Pace(1_000, 1_000);
    assert.deepEqual(
      steps.map(([waitedMs, bytes]) => pace.took(waitedMs, bytes)),
      expected,
    );
  });
}
