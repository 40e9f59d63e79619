import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { lockDataDirectory } from "./data-lock.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-lock-"));
after(() => rmSync(folder, { recursive: true }));

test("a directory has one user at a time and is free again when released", () => {
  const path = join(folder, "one");
  const first = lockDataDirectory(path);
  assert.ok(first.ok);
  const second = lockDataDirectory(path);
  assert.ok(!second.ok && second.holderPid === process.pid);
  first.release();
  assert.deepEqual(readdirSync(path), []);
  const third = lockDataDirectory(path);
  assert.ok(third.ok);
  third.release();
});

for (const [what, text] of [
  ["a process that is gone", JSON.stringify({ pid: 2 ** 22 + 1, began: "x/1" })],
  ["an earlier process with our number", JSON.stringify({ pid: process.pid, began: "another boot/1" })],
  ["a write that was cut short", '{"pid":'],
] as const) {
  test(`the lock of ${what} is taken over`, () => {
    const path = mkdtempSync(join(folder, "stale-"));
    writeFileSync(join(path, "holdfast.lock"), text);
    const lock = lockDataDirectory(path);
    assert.ok(lock.ok);
    assert.deepEqual(readdirSync(path), ["holdfast.lock"]);
    lock.release();
  });
}
