// Budgets and disk marks as people meet them (git-http.md, "Budgets"): the terminal says limit and use, an account
// shrinks with what was deleted, and a full disk stops writing and nothing else.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { askServer } from "../../src/operator/socket.js";
import type { DiskReading } from "../../src/store/disk-space.js";
import { Person } from "../harness/grasp-people.js";
import { Story, type WorkingCopy } from "../harness/grasp-story.js";
import { newFolder, removeFolder, startInProcess, until } from "../harness/server.js";

const patienceMs = 120_000;

async function commitBytes(work: WorkingCopy, file: string, bytes: number): Promise<string> {
  await writeFile(join(work.folder, file), randomBytes(bytes));
  return work.commit(`${file} of ${bytes}`, "note");
}

describe("a repository's quota", { timeout: 900_000 }, () => {
  it("is said in the terminal, warned of from 80 %, and freed by deleting and housekeeping", async () => {
    const folder = await newFolder();
    const settings = {
      NGIT_REPOSITORY_MAX_BYTES: "1MiB",
      NGIT_GIT_CRUFT_GRACE_DAYS: "0",
      // Nothing happens by itself here.
      NGIT_GIT_REPACK_AFTER_PACKS: "1000",
    };
    const server = await startInProcess({ backend: "lmdb", folder, settings });
    try {
      const story = await Story.on(server);
      const owner = new Person();
      const { work, url, tip } = await story.hosted(owner, "small");
      await work.must("checkout", "-q", "-b", "big");
      const big = await commitBytes(work, "most", 900_000);
      await story.state(owner, "small", { "refs/heads/main": tip, "refs/heads/big": big });
      const pushed = await work.git("push", url, "big");
      assert.equal(pushed.code, 0, pushed.stderr);
      assert.match(pushed.stderr, /note: this repository uses 8\d\d KiB of 1 MiB/);
      const more = await commitBytes(work, "more", 300_000);
      await story.state(owner, "small", { "refs/heads/main": tip, "refs/heads/big": more });
      const refused = await work.git("push", url, "big");
      assert.notEqual(refused.code, 0);
      assert.match(refused.stderr, /a push may have 1\d\d KiB at most.*this repository uses 8\d\d KiB of 1 MiB/);
      // The branch goes, its objects with housekeeping, and there is room again.
      await story.state(owner, "small", { "refs/heads/main": tip });
      assert.ok(await until(async () => !(await story.advertised(owner, "small"))["refs/heads/big"], patienceMs));
      const gc = { operation: "repos.gc", parameters: { repository: `${owner.npub}/small`, cruft: true } } as const;
      const done = await askServer(join(folder, "relay"), gc, () => undefined);
      assert.ok(done?.ok, JSON.stringify(done));
      await story.state(owner, "small", { "refs/heads/main": tip, "refs/heads/big": more });
      const again = await work.git("push", url, "big");
      assert.notEqual(again.code, 0, "900 kB and 300 kB are still too much together");
      await work.must("checkout", "-q", "main");
      const fits = await commitBytes(work, "fits", 300_000);
      await story.state(owner, "small", { "refs/heads/main": fits });
      const accepted = await work.git("push", url, "main");
      assert.equal(accepted.code, 0, accepted.stderr);
      assert.doesNotMatch(accepted.stderr, /note:/);
      await story.relay.close();
    } finally {
      await server.stop();
      await removeFolder(folder);
    }
  });
});

describe("a disk that fills up", { timeout: 900_000 }, () => {
  let story: Story;
  let free = 100;
  const readDisk = async (): Promise<DiskReading> => ({ totalBytes: 100, freeBytes: free });
  const owner = new Person();
  const issue = () => owner.sign(1621, [["a", owner.coordinate("kept")]], "is it full?");

  const metrics = async (): Promise<string> => (await fetch(`${story.server.origin}/metrics`)).text();

  before(async () => {
    story = await Story.begin({ backend: "lmdb", readDisk });
  });
  after(() => story.end());

  it("refuses pushes from 90 %, events from 95 %, lets deletions and readers through, and recovers", async () => {
    const { work, url, tip } = await story.hosted(owner, "kept");
    const next = await work.commit("next");
    await story.state(owner, "kept", { "refs/heads/main": next });
    const first = await story.accepted(issue());

    free = 10;
    assert.ok(
      await until(async () => (await metrics()).includes('ngit_disk_used_ratio{volume="git"} 0.9'), patienceMs),
    );
    const refused = await work.git("push", url, "main");
    assert.match(refused.stderr, /the server's disk is nearly full, it takes no pushes now: try again later/);
    await story.accepted(issue());

    free = 5;
    let answer = await story.publish(issue());
    assert.ok(
      await until(async () => {
        answer = await story.publish(issue());
        return !answer.ok;
      }, patienceMs),
    );
    assert.equal(answer.message, "error: the server's disk is nearly full, only deletions are taken: try again later");
    assert.equal((await fetch(`${story.server.origin}/readyz`)).status, 503);
    assert.match(await metrics(), /ngit_disk_used_ratio\{volume="relay"\} 0\.95/);
    assert.match(await metrics(), /ngit_events_rejected_total\{kind="1621",reason="disk-full"\}/);
    assert.ok(await story.isServed(first));
    assert.equal((await story.advertised(owner, "kept"))["refs/heads/main"], tip);
    await story.accepted(owner.sign(5, [["e", first.id]]));
    assert.ok(!(await story.isServed(first)));

    free = 50;
    assert.ok(await until(async () => (await story.publish(issue())).ok, patienceMs));
    await work.must("push", "-q", url, "main");
    assert.equal((await fetch(`${story.server.origin}/readyz`)).status, 200);
  });
});

describe("a small disk, really", { timeout: 900_000 }, () => {
  it("takes no push while it is 90 % full, and takes it when there is room", async (context) => {
    const folder = await newFolder();
    const disk = join(folder, "git");
    mkdirSync(disk);
    if (spawnSync("mount", ["-t", "tmpfs", "-o", "size=16m", "tmpfs", disk]).status !== 0) {
      await removeFolder(folder);
      context.skip("mounting a small disk needs root");
      return;
    }
    const server = await startInProcess({ backend: "lmdb", folder });
    try {
      const story = await Story.on(server);
      const owner = new Person();
      const { work, url } = await story.hosted(owner, "kept");
      const next = await work.commit("next");
      await story.state(owner, "kept", { "refs/heads/main": next });
      await writeFile(join(disk, "ballast"), randomBytes(15 << 20));
      const push = () => work.git("push", url, "main");
      let stderr = "";
      const isRefused = async (): Promise<boolean> => {
        const shown = await fetch(`${server.origin}/metrics`).then((answer) => answer.text());
        const used = Number(/ngit_disk_used_ratio\{volume="git"\} (\S+)/.exec(shown)?.[1]);
        if (used < 0.9) return false;
        stderr = (await push()).stderr;
        return true;
      };
      assert.ok(await until(isRefused, patienceMs));
      assert.match(stderr, /the server's disk is nearly full/);
      await rm(join(disk, "ballast"));
      assert.ok(await until(async () => (await push()).code === 0, patienceMs));
      assert.ok(await story.isServed(stateEventOf(await story.served({ kinds: [30618] }))));
      await story.relay.close();
    } finally {
      await server.stop();
      spawnSync("umount", ["--lazy", disk]);
      await removeFolder(folder);
    }
  });
});

function stateEventOf<T>(events: readonly T[]): T {
  const [event] = events;
  assert.ok(event);
  return event;
}
