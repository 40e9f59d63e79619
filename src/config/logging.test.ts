import assert from "node:assert/strict";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createLog, escapeControls, textLine } from "./logging.js";

test("remote text cannot forge a log line, move the cursor or turn text round", () => {
  const line = JSON.stringify({ level: 40, time: "T", message: "a\nb\u001b[2Jc\u009bd\u202ee", from: "x y\r\nz" });
  assert.equal(textLine(line, false), 'T WARN  a\\nb\\u001b[2Jc\\u009bd\\u202ee from="x y\\r\\nz"\n');
});

test("an error's stack stays on one line", () => {
  const line = JSON.stringify({ level: 50, time: "T", message: "m", err: { stack: "Error: x\n    at y" } });
  assert.equal(textLine(line, false), "T ERROR m err=Error: x\\n    at y\n");
});

test("JSON lines stay JSON when dangerous characters are escaped in them", () => {
  const line = `${JSON.stringify({ message: "a\u009b\u2028\u202eb" })}\n`;
  const escaped = escapeControls(line);
  assert.doesNotMatch(escaped, /[\u009b\u2028\u202e]/);
  assert.deepEqual(JSON.parse(escaped), { message: "a\u009b\u2028\u202eb" });
});

test("the level can be changed while running, and flushing writes everything", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-log-"));
  // The log owns it from here on: closed under a write that is still on its way, its number may be somebody else's.
  const descriptor = openSync(join(folder, "log"), "w");
  const log = createLog({ level: "info", format: "json", descriptor });
  log.logger.debug("unseen");
  log.setLevel("debug");
  log.logger.debug({ n: 1 }, "seen");
  log.flush();
  // What another thread was writing comes by itself; on a busy machine a little later.
  const written = (): string => readFileSync(join(folder, "log"), "utf8");
  for (const end = performance.now() + 30_000; written() === "" && performance.now() < end; ) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const lines = written().trim().split("\n");
  rmSync(folder, { recursive: true });
  assert.equal(lines.length, 1);
  assert.equal((JSON.parse(lines[0] ?? "") as { message: string }).message, "seen");
});
