import assert from "node:assert/strict";
import { test } from "node:test";
import { backoffMs, huntDefaults, parseDomainOverrides } from "./config.js";

test("overrides are read as host=concurrent/rate", () => {
  assert.deepEqual(
    [...(parseDomainOverrides("GitHub.com=10/60, slow.test=1/6,") ?? [])],
    [
      ["github.com", { concurrent: 10, rate: 60 }],
      ["slow.test", { concurrent: 1, rate: 6 }],
    ],
  );
  assert.equal(parseDomainOverrides("")?.size, 0);
});

for (const text of [
  "a.test",
  "a.test=5",
  "a.test=0/5",
  "a.test=5/0",
  "a.test=5/5/5",
  "=5/5",
  "a.test=-1/5",
  "a b=1/1",
]) {
  test(`${JSON.stringify(text)} is not an override`, () => {
    assert.equal(parseDomainOverrides(text), undefined);
  });
}

test("back-off follows the table and stays at its end", () => {
  assert.deepEqual(
    [1, 2, 3, 4, 5, 100].map((attempts) => backoffMs(huntDefaults, attempts)),
    [20_000, 40_000, 80_000, 120_000, 120_000, 120_000],
  );
});
