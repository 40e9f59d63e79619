import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { systemClock } from "../base/clock.js";
import type { Send } from "./cache-entry.js";
import { type AnswerOrigin, FetchCache } from "./fetch-cache.js";
import { Launcher } from "./launcher.js";

const size = 3 << 20;

describe("shared answers", () => {
  let folder: string;
  let launcher: Launcher;
  let started = 0;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "answers-test-"));
    launcher = new Launcher();
  });
  after(async () => {
    await launcher.close();
    await rm(folder, { recursive: true, force: true });
  });

  const say = (script: string, expected = size): AnswerOrigin => ({
    expectedBytes: async () => expected,
    start: async (signal, file) => {
      started += 1;
      const job = await launcher.start({
        argv: ["/bin/sh", "-c", script],
        env: { PATH: "/usr/bin:/bin" },
        limits: { wallClockMs: 20_000 },
        ...(file === undefined ? {} : { stdoutFile: file }),
      });
      if (signal.aborted) job.end();
      else signal.addEventListener("abort", () => job.end());
      return job;
    },
  });
  const big = say(`head -c ${size} /dev/zero`);
  const never = new AbortController().signal;
  const collect = (): { send: Send; bytes: () => number } => {
    let bytes = 0;
    const send: Send = async (chunk) => {
      bytes += chunk.length;
      return true;
    };
    return { send, bytes: () => bytes };
  };
  const make = (maxBytes = 1 << 30): FetchCache =>
    new FetchCache(join(folder, String(Math.random())), () => maxBytes, systemClock);

  it("run once for equal requests, at once and later, and give everybody everything", async () => {
    const answers = make();
    started = 0;
    const clients = Array.from({ length: 5 }, collect);
    const results = await Promise.all(clients.map(({ send }) => answers.send("k", big, send, never)));
    assert.deepEqual(new Set(clients.map(({ bytes }) => bytes())), new Set([size]));
    for (const result of results) assert.deepEqual(result, { status: "sent", bytes: size });
    assert.equal(started, 1);
    const later = collect();
    await answers.send("k", big, later.send, never);
    assert.equal(later.bytes(), size);
    assert.equal(started, 1);
    await answers.close();
    assert.equal(existsSync(answers.directory), false);
  });

  it("a first client that stops reading does not hold up the others", async () => {
    const answers = make();
    let letGo: (ok: boolean) => void = () => undefined;
    let taken = 0;
    const stuck: Send = (chunk) => {
      taken += chunk.length;
      return new Promise((resolve) => {
        letGo = resolve;
      });
    };
    const first = answers.send("k", big, stuck, never);
    while (taken === 0) await new Promise((resolve) => setImmediate(resolve));
    const second = collect();
    await answers.send("k", big, second.send, never);
    assert.equal(second.bytes(), size);
    // Woken at last, the first gets the rest from the file.
    const pump = setInterval(() => letGo(true), 1);
    assert.equal((await first).status, "sent");
    clearInterval(pump);
    assert.equal(taken, size);
    await answers.close();
  });

  it("what a client has not taken yet is not overwritten by what others read meanwhile", async () => {
    const answers = make();
    const lines = 1_000_000;
    const texts = [0, 1].map((key) => Array.from({ length: lines }, (_, index) => `${2 * index + key}\n`).join(""));
    const sources = [0, 1].map((key) => say(`seq ${key} 2 ${2 * lines - 1}`));
    const read = async (key: number, turns: number): Promise<boolean> => {
      const chunks: Buffer[] = [];
      const slow: Send = async (chunk) => {
        for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
        chunks.push(Buffer.from(chunk));
        return true;
      };
      await answers.send(`k${key}`, sources[key] as AnswerOrigin, slow, never);
      return Buffer.concat(chunks).equals(Buffer.from(texts[key] as string));
    };
    const areEqual = await Promise.all([0, 1, 20, 300].flatMap((turns) => [read(0, turns), read(1, turns)]));
    assert.deepEqual(new Set(areEqual), new Set([true]));
    await answers.close();
  });

  it("end git when the last client leaves, and keep nothing of it", async () => {
    const answers = make();
    const aborter = new AbortController();
    const endless = say("while :; do head -c 65536 /dev/zero; done");
    const client: Send = async () => {
      aborter.abort();
      return false;
    };
    const result = await answers.send("k", endless, client, aborter.signal);
    assert.equal(result.status, "broken");
    while (launcher.jobsInFlight > 0 || readdirSync(answers.directory).length > 0)
      await new Promise((resolve) => setImmediate(resolve));
    await answers.close();
  });

  it("stay within their bound, the oldest go first", async () => {
    const answers = make(7 << 20);
    for (const key of ["a", "b", "c"]) await answers.send(key, big, collect().send, never);
    assert.ok(answers.keptBytes <= 7 << 20);
    started = 0;
    await answers.send("c", big, collect().send, never);
    assert.equal(started, 0);
    await answers.send("a", big, collect().send, never);
    assert.equal(started, 1);
    await answers.close();
  });

  it("too large ones are passed on and not kept, to everybody who asks", async () => {
    const answers = make(4 << 20);
    started = 0;
    const clients = [collect(), collect()];
    const results = await Promise.all(clients.map(({ send }) => answers.send("k", big, send, never)));
    for (const result of results) assert.deepEqual(result, { status: "sent", bytes: size });
    assert.deepEqual(
      clients.map(({ bytes }) => bytes()),
      [size, size],
    );
    assert.equal(started, 2);
    assert.equal(answers.keptBytes, 0);
    assert.equal(existsSync(answers.directory), false);
    await answers.close();
  });

  it("one that grows far beyond what was expected is cut at the bound, and passed on the next time", async () => {
    const answers = make(4 << 20);
    const larger = say(`if [ -f /proc/self/fd/1 ]; then exec cat /dev/zero; else head -c ${size} /dev/zero; fi`, 1);
    assert.equal((await answers.send("k", larger, collect().send, never)).status, "broken");
    assert.equal(answers.keptBytes, 0);
    const client = collect();
    const whole = { status: "sent", bytes: size };
    assert.deepEqual(await answers.send("k", larger, client.send, never), whole);
    assert.equal(client.bytes(), size);
    await answers.close();
  });

  it("a disk that fills up under an answer breaks it, and the next is passed on", async () => {
    const answers = make();
    const full = say(
      "echo x; [ -p /proc/self/fd/1 -o -S /proc/self/fd/1 ] || { echo 'No space left on device' >&2; exit 128; }",
    );
    assert.equal((await answers.send("k", full, collect().send, never)).status, "broken");
    assert.deepEqual(await answers.send("k", full, collect().send, never), { status: "sent", bytes: 2 });
    await answers.close();
  });

  it("what git says before it dies is passed on and not kept; silence is a failure; a kill is a broken answer", async () => {
    const answers = make();
    const client = collect();
    assert.equal((await answers.send("e", say("echo ERR; exit 128"), client.send, never)).status, "sent");
    assert.equal(client.bytes(), 4);
    assert.deepEqual(await answers.send("s", say("echo why >&2; exit 1"), client.send, never), {
      status: "failed",
      stderr: "why\n",
    });
    assert.equal((await answers.send("k", say("echo x; kill -9 $$"), client.send, never)).status, "broken");
    const full: AnswerOrigin = { expectedBytes: async () => 0, start: async () => undefined };
    assert.equal((await answers.send("b", full, client.send, never)).status, "busy");
    assert.equal(answers.keptBytes, 0);
    await answers.close();
  });
});
