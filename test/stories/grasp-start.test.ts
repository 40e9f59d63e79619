// What a start, a restart and a push at work mean for what waits (purgatory.md, "Waiting room": expiry).

import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { request } from "node:http";
import { describe, it } from "node:test";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { newFolder, removeFolder, startInProcess, until } from "../harness/server.js";

const settings = { NGIT_PING_INTERVAL_SECS: "1d" };
const minute = 60_000;

describe("expiry and the life of the server", () => {
  it("after a start nothing expires for ten minutes, however long the server was down", async () => {
    const folder = await newFolder();
    const alice = new Person();
    const first = await Story.on(await startInProcess({ backend: "lmdb", folder, settings }));
    await first.announce(alice, "patient");
    await first.relay.close();
    await first.server.stop();
    const clock = new ManualClock(Date.now() + 40 * minute);
    const longGrace = { ...settings, NGIT_PURGATORY_START_GRACE_SECS: "10m" };
    const story = await Story.on(await startInProcess({ backend: "lmdb", folder, clock, settings: longGrace }));
    try {
      const status = async () =>
        (await fetch(`${story.url(alice, "patient")}/info/refs?service=git-upload-pack`)).status;
      for (let i = 0; i < 9; i++) {
        clock.advance(minute);
        assert.equal(await status(), 200, `${i + 1} minutes after the start`);
      }
      clock.advance(2 * minute);
      const isGone = await until(async () => {
        clock.advance(200);
        return (await status()) === 404;
      });
      assert.ok(isGone);
    } finally {
      await story.relay.close();
      await story.server.stop();
      await removeFolder(folder);
    }
  });

  it("nothing expires while a push for it is at work", async () => {
    const clock = new ManualClock(Date.now());
    const long = { ...settings, NGIT_GIT_IDLE_SECS: "1d", NGIT_GIT_TOTAL_SECS: "1d" };
    const story = await Story.begin({ clock, settings: long });
    try {
      const alice = new Person();
      await story.announce(alice, "slow");
      const work = await story.workingCopy();
      const tip = await work.commit("one");
      await story.state(alice, "slow", { "refs/heads/main": tip });
      const line = `${"0".repeat(40)} ${tip} refs/heads/main\0 report-status`;
      const url = `${story.url(alice, "slow")}/git-receive-pack`;
      const push = request(url, { method: "POST", headers: { "Transfer-Encoding": "chunked" } });
      push.on("error", () => undefined);
      push.write(`${(line.length + 4).toString(16).padStart(4, "0")}${line}0000PACK`);
      const isAtWork = await until(async () => {
        const names = await readdir(`${story.directory(alice, "slow")}/objects`);
        return names.some((name) => name.startsWith("tmp_quarantine"));
      });
      assert.ok(isAtWork);
      const status = async () => (await fetch(`${story.url(alice, "slow")}/info/refs?service=git-upload-pack`)).status;
      for (let i = 0; i < 4; i++) {
        clock.advance(20 * minute);
        assert.equal(await status(), 200);
      }
      push.destroy();
      const isGone = await until(async () => {
        clock.advance(200);
        return (await status()) === 404;
      });
      assert.ok(isGone, "when the push is over its time is over");
    } finally {
      await story.end();
    }
  });
});
