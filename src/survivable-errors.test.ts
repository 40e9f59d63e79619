import assert from "node:assert/strict";
import { test } from "node:test";
import { Overtaken } from "./git/change-refs.js";
import { ObjectsUnavailableError } from "./git/run.js";
import { VerifierDiedError } from "./nostr/verify/pool.js";
import { PackStoreError } from "./packs/port.js";
import { SharedLogError, StoreBusyError, StoreClosedError, StoreFullError } from "./store/port.js";
import { survivable } from "./survivable-errors.js";

const descriptors = Object.assign(new Error("too many open files"), { code: "EMFILE" });
const cases: readonly (readonly [what: string, error: unknown, ends: boolean])[] = [
  ["a full store", new StoreFullError("full"), false],
  ["a busy store", new StoreBusyError("busy"), false],
  ["a closing store", new StoreClosedError("closed"), false],
  ["a shared log out of reach", new SharedLogError("unreachable", "gone"), false],
  ["a plan that was overtaken too often", new Overtaken("others were quicker"), false],
  ["a pack store out of reach", new ObjectsUnavailableError("unreachable", "gone"), false],
  ["a fault of the pack store itself", new PackStoreError("unreachable", "gone"), false],
  ["threads that died over the same signatures twice", new VerifierDiedError("died"), false],
  ["no descriptor left", descriptors, false],
  ["a fault nobody expected", new TypeError("x is undefined"), true],
  ["something that is no error", "a text", true],
];

for (const [what, error, ends] of cases) {
  test(`${what} ${ends ? "ends the server" : "is logged, and the server goes on"}`, () => {
    const warned: unknown[] = [];
    const ended: unknown[] = [];
    survivable({ warn: (...words: unknown[]) => void warned.push(words) }, (fault) => void ended.push(fault))(error);
    assert.deepEqual([warned.length, ended.length], ends ? [0, 1] : [1, 0]);
  });
}
