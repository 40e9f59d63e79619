// A server key that is none is found with the other faults of the configuration, before anything is started.

import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../../src/config/load.js";
import { secretKeyHex } from "../../src/config/value-kinds.js";

const order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
const load = (key: string) =>
  loadConfig({
    flags: {},
    environment: { NGIT_RELAY_OWNER_NSEC: key },
    configPath: undefined,
    readFile: () => "",
    surroundings: { logIsTerminal: false, cores: 1 },
  });

test("keys outside the curve are refused by name, and not shown", () => {
  for (const key of ["0".repeat(64), order, "F".repeat(64)]) {
    const loaded = load(key);
    assert.ok(!loaded.ok, key);
    assert.deepEqual(
      loaded.problems.map(({ key: name }) => name),
      ["NGIT_RELAY_OWNER_NSEC"],
    );
    assert.doesNotMatch(JSON.stringify(loaded.problems), new RegExp(key, "i"));
  }
});

test("the smallest and the largest key are keys", () => {
  const largest = `${order.slice(0, -1)}0`;
  for (const key of [`${"0".repeat(63)}1`, largest, largest.toUpperCase()]) {
    assert.equal(secretKeyHex(key), key.toLowerCase());
    assert.ok(load(key).ok);
  }
});
