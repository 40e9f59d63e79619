import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Launcher } from "./launcher.js";
import type { Job } from "./launcher-job.js";
import { type Send, SharedAnswers } from "./shared-answers.js";

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

  const say = (script: string) => async (): Promise<Job> => {
    started += 1;
    return await launcher.start({
      argv: ["/bin/sh", "-c", script],
      env: { PATH: "/usr/bin:/bin" },
      limits: { wallClockMs: 20_000 },
    });
  };
  const size = 3 << 20;
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
  const make = (maxBytes = 1 << 30): SharedAnswers =>
    new SharedAnswers(join(folder, String(Math.random())), () => maxBytes);

  it("run once for equal requests, at once and later, and give everybody everything", async () => {
    const answers = make();
    started = 0;
    const clients = Array.from({ length: 5 }, collect);
    const results = await Promise.all(clients.map(({ send }) => answers.send("k", big, send, never)));
    assert.deepEqual(new Set(clients.map(({ bytes }) => bytes())), new Set([size]));
    assert.equal(results.filter((result) => result.status === "sent" && result.shared).length, 4);
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
    assert.equal(launcher.jobsInFlight, 0);
    while (readdirSync(answers.directory).length > 0) await new Promise((resolve) => setImmediate(resolve));
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

  it("too large ones are passed on and not kept", async () => {
    const answers = make(4 << 20);
    const client = collect();
    await answers.send("k", big, client.send, never);
    assert.equal(client.bytes(), size);
    assert.equal(answers.keptBytes, 0);
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
    assert.equal((await answers.send("b", async () => undefined, client.send, never)).status, "busy");
    assert.equal(answers.keptBytes, 0);
    await answers.close();
  });
});
