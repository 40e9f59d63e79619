import assert from "node:assert/strict";
import { test } from "node:test";
import { backoffMs } from "./messages.js";
import { huntConfig } from "./testing/config.js";

test("back-off follows the table and stays at its end", () => {
  assert.deepEqual(
    [1, 2, 3, 4, 5, 100].map((attempts) => backoffMs(huntConfig(), attempts)),
    [20_000, 40_000, 80_000, 120_000, 120_000, 120_000],
  );
});
