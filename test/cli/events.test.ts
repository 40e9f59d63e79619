// `holdfast events` and `compact` as an operator uses them: imports as processes that read a pipe, on a real data directory.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { keyFrom, signedEvent } from "../../src/nostr/testing/signed.js";
import { cleanEnvironment, type Ended, endOf, holdfast, program } from "./run.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-cli-events-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const data = { NGIT_DATA_PATH: join(folder, "data") };
const author = keyFrom("author");
const raws = Array.from(
  { length: 1_500 },
  (_, index) => signedEvent({ kind: index % 2 ? 1 : 7, content: `${index} ${"x".repeat(300)}` }, author).raw,
);

/** `holdfast …` with whatever a shell puts before it. */
function inShell(before: string): Promise<Ended> {
  const command = `${before} | "${process.execPath}" "${program}" events import`;
  return endOf(spawn("sh", ["-c", command], { env: cleanEnvironment(data), stdio: ["ignore", "pipe", "pipe"] }));
}

describe("events and compact as processes", { timeout: 900_000 }, () => {
  test("import reads a pipe to its end, also one that is full before the program listens, and ends", async () => {
    const path = join(folder, "events.jsonl");
    writeFileSync(path, `${raws.join("\n")}\n`);
    const ended = await inShell(`cat "${path}"`);
    assert.equal(ended.code, 0, ended.stderr);
    assert.equal(ended.stdout, "1500 stored, 0 known already, 0 refused\n");
  });

  test("import from a pipe that says nothing ends too", async () => {
    const ended = await inShell("true");
    assert.equal(ended.code, 0, ended.stderr);
    assert.equal(ended.stdout, "0 stored, 0 known already, 0 refused\n");
  });

  test("an export can be imported again: nothing is new", async () => {
    const exported = await holdfast(["events", "export"], data);
    assert.equal(exported.code, 0, exported.stderr);
    assert.deepEqual(exported.stdout.trim().split("\n").sort(), [...raws].sort());
    const path = join(folder, "exported.jsonl");
    writeFileSync(path, exported.stdout);
    assert.equal((await inShell(`cat "${path}"`)).stdout, "0 stored, 1500 known already, 0 refused\n");
  });

  test("an exported file has the mode of the operator's own umask, and the data stays closed", async () => {
    const path = join(folder, "export-027.jsonl");
    const command = `umask 027; "${process.execPath}" "${program}" events export --output "${path}"`;
    const env = cleanEnvironment(data);
    const ended = await endOf(spawn("sh", ["-c", command], { env, stdio: ["ignore", "pipe", "pipe"] }));
    assert.equal(ended.code, 0, ended.stderr);
    assert.equal(statSync(path).mode & 0o777, 0o640);
    assert.equal(statSync(join(folder, "data/relay")).mode & 0o077, 0);
  });

  test("delete, scan and compact work on the same data", async () => {
    const deleted = await holdfast(["events", "delete", "--filter", '{"kinds":[7]}', "--yes"], data);
    assert.equal(deleted.stdout, "750 events deleted\n", deleted.stderr);
    const compacted = await holdfast(["compact", "--json"], data);
    assert.equal((JSON.parse(compacted.stdout) as { events: number }).events, 750);
    const scanned = await holdfast(["events", "scan", "--json"], data);
    assert.deepEqual((JSON.parse(scanned.stdout) as { byKind: unknown }).byKind, { 1: 750 });
  });
});
