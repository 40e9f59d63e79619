import assert from "node:assert/strict";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { escapeControls } from "../base/text.js";
import { createLog, LogRing, loggerTo, namingNoRepository, textLine, withoutSecrets } from "./logging.js";

test("remote text cannot forge a log line, move the cursor or turn text round", () => {
  const line = JSON.stringify({ level: "warn", time: "T", message: "a\nb\u001b[2Jc\u009bd\u202ee", from: "x y\r\nz" });
  assert.equal(textLine(line, false), 'T WARN  a\\nb\\u001b[2Jc\\u009bd\\u202ee from="x y\\r\\nz"\n');
});

test("an error's stack stays on one line", () => {
  const line = JSON.stringify({ level: "error", time: "T", message: "m", err: { stack: "Error: x\n    at y" } });
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
  const { level, message } = JSON.parse(lines[0] ?? "") as { level: string; message: string };
  assert.deepEqual([level, message], ["debug", "seen"], "a level is told by its name");
});

test("the newest lines are kept, numbered, and cut when they are long", () => {
  const ring = new LogRing((raw) => raw);
  for (let number = 1; number <= 600; number++) ring.add(`line ${number}`);
  const kept = ring.after();
  assert.equal(kept.length, 500);
  assert.deepEqual([kept[0]?.text, kept.at(-1)], ["line 101", { number: 600, text: "line 600" }]);
  assert.deepEqual(
    ring.after(598).map(({ text }) => text),
    ["line 599", "line 600"],
  );
  ring.add("x".repeat(10_000));
  assert.equal(ring.after(600)[0]?.text.length, 2_001);
});

test("listeners hear each new line until they stop", () => {
  const ring = new LogRing((raw) => raw);
  const heard: string[] = [];
  const stop = ring.onLine(({ text }) => heard.push(text));
  ring.add("one");
  stop();
  ring.add("two");
  assert.deepEqual(heard, ["one"]);
});

test("what looks like a secret is not kept", () => {
  const nsec = `nsec1${"q".repeat(58)}`;
  const lines = [
    `key=${nsec}`,
    "GET /admin/login?token=abcdEFGH1234 from somewhere",
    '{"authorization":"Nostr eyJraW5kIjoyNzIzNX0abcdef"}',
    "header Bearer abcdefghijklmnop1234",
    "cloning https://user:hunter2@git.example.com/x.git",
    'password="hunter2"',
    `git used hft_0123456789ab_${"abcd".repeat(10)}abc`,
  ];
  for (const line of lines) {
    const kept = withoutSecrets(line);
    assert.doesNotMatch(kept, /qqqq|abcd|eyJr|hunter2/, line);
    assert.notEqual(kept, line);
  }
  const plain = "2026-01-02T03:04:05.678Z INFO  connected to a relay relay=wss://relay.example.com sync=full";
  assert.equal(withoutSecrets(plain), plain);
});

test("from level info on the log of a private service names no repository", () => {
  const lines: string[] = [];
  const logger = namingNoRepository(loggerTo((line) => void lines.push(line), "debug"));
  const npub = `npub1${"q".repeat(58)}`;
  const key = "a".repeat(64);
  const error = new Error(`git failed in /data/git/${npub}/secret.git for 30617:${key}:secret plans`);
  logger.info({ repo: `30617:${key}:secret`, kind: "gc" }, "housekeeping");
  logger.warn({ url: "https://other.example/team/secret.git", code: "timeout" }, `fetch of ${npub}/secret failed`);
  logger.error({ err: error }, "a git request failed");
  logger.fatal(`30617:${key}:secret plans`);
  logger.error(
    { problems: [`missing blob in ${npub}/secret.git`], about: { repo: "secret", parts: [error] } },
    "damaged",
  );
  const text = lines.join("");
  assert.equal(lines.length, 5);
  assert.doesNotMatch(text, /secret|plans/);
  assert.match(text, /"kind":"gc"/);
  assert.match(text, /https:\/\/other\.example\/…/);
  logger.debug({ repo: "secret" }, "git");
  assert.match(lines[5] ?? "", /secret/, "debug tells everything");
});
