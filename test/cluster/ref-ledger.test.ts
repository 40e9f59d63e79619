import assert from "node:assert/strict";
import { test } from "node:test";
import { stateProblems } from "./people.js";
import { RefLedger } from "./ref-ledger.js";

test("the ledger of a ref finds values that come back, on each machine by itself", () => {
  const ledger = new RefLedger("r");
  for (const tip of ["a", "b", "c"]) ledger.made(tip);
  ledger.reading("one", "refs")("none");
  ledger.reading("one", "refs")("a");
  ledger.acknowledged("one", "b");
  ledger.reading("two", "refs")("a");
  assert.deepEqual(ledger.takeViolations(), [], "another machine may be behind");
  const before = ledger.reading("one", "refs");
  ledger.acknowledged("one", "c");
  before("b");
  assert.deepEqual(ledger.takeViolations(), [], "this answer may be older than the push");
  ledger.reading("one", "state")("b");
  ledger.reading("one", "refs")("none");
  ledger.reading("two", "refs")("x");
  assert.deepEqual(ledger.takeViolations(), [
    "r: one went back from c to b in its state",
    "r: one went back from c to none in its refs",
    "r: two shows x in its refs, which nobody pushed",
  ]);
  assert.deepEqual(ledger.takeViolations(), []);
});

test("a state that names a ref or an object the machine does not serve is found", () => {
  const [old, tip] = ["1".repeat(40), "2".repeat(40)];
  const tags = [
    ["d", "r"],
    ["refs/heads/main", tip],
    ["refs/heads/old", old],
    ["HEAD", "ref: refs/heads/main"],
  ];
  const main = ["refs/heads/main", tip] as const;
  assert.deepEqual(stateProblems(tags, new Map([main, ["refs/heads/old", old]])), []);
  assert.deepEqual(stateProblems(tags, new Map([main, ["refs/heads/old", tip]])), [
    `the state names refs/heads/old at ${old}, refs show ${tip}`,
  ]);
  assert.deepEqual(stateProblems(tags, new Map([["refs/heads/old", old]])), [
    `the state names refs/heads/main at ${tip}, refs show nothing`,
    "the state's HEAD names refs/heads/main, which is not shown",
  ]);
});
