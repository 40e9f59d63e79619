import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { LogWriter } from "./log-writer.js";

const dropped = (count: number): string => `dropped ${count}\n`;

test("flushing ends when every write fails, as on a terminal that was closed or a full disk", () => {
  const full = openSync("/dev/full", "w");
  const writer = new LogWriter(full, dropped);
  for (let line = 0; line < 100; line++) writer.write(`line ${line}\n`);
  const startedMs = performance.now();
  writer.flush();
  assert.ok(performance.now() - startedMs < 30_000, "it came back");
});

test("flushing ends when the reader of a pipe stands still; a reader that goes on gets the next lines", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-log-"));
  const pipe = join(folder, "pipe");
  assert.equal(spawnSync("mkfifo", [pipe]).status, 0);
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  const end = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
  t.after(() => {
    closeSync(reader);
    rmSync(folder, { recursive: true });
  });
  const writer = new LogWriter(end, dropped);
  const line = `${"x".repeat(2 ** 20 - 1)}\n`;
  for (let count = 0; count < 12; count++) writer.write(line);
  writer.flush();
  // Everything that waited was tried and given up, except what a pipe holds and the write that was on its way.
  const part = Buffer.alloc(2 ** 16);
  let text = "";
  for (const endMs = performance.now() + 60_000; !text.endsWith("after\n") && performance.now() < endMs; ) {
    writer.write("after\n");
    try {
      text += part.toString("latin1", 0, readSync(reader, part)).replaceAll("x", "");
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, "EAGAIN");
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  assert.match(text, /after\n$/);
});

test("what waits is bounded; how many lines were dropped stands in their place", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-log-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "log");
  const writer = new LogWriter(openSync(file, "w"), dropped);
  const line = `${"x".repeat(2 ** 20 - 1)}\n`;
  // One is on its way, eight wait.
  for (let count = 0; count < 12; count++) writer.write(line);
  const written = (): string => readFileSync(file, "latin1").replaceAll("x", "");
  for (const endMs = performance.now() + 60_000; !written().includes("dropped") && performance.now() < endMs; ) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.equal(written(), `${"\n".repeat(9)}dropped 3\n`);
});
