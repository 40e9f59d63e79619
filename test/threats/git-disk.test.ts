// threats.md row 15: the disk is full, by the operator's measure and really. Refusals say so, reads go on, nothing is
// deleted to make room, and everything works again when there is some.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, statfsSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { HousekeepingResult } from "../../src/operator/repositories.js";
import { askServer } from "../../src/operator/socket.js";
import { Person } from "../harness/grasp-people.js";
import { Story, stateEvent, type WorkingCopy } from "../harness/grasp-story.js";
import { ask } from "../harness/raw-http.js";
import { type ChildServer, newFolder, startChild, until } from "../harness/server.js";
import { filesBelow, traceless } from "../harness/traceless.js";

const canMount =
  spawnSync("sh", ["-c", "d=$(mktemp -d) && mount -t tmpfs -o size=1m t $d && umount $d && rmdir $d"]).status === 0;
const skip = canMount ? false : "mounting a small disk needs root";

/** The store's word, or that of the watch over the disk's share: whichever looked last. */
const saysFull = /the server's disk is (full|nearly full, only deletions are taken): try again later/;

describe("threat 15: a full disk", { timeout: 900_000 }, () => {
  let folder: string;
  let git: string;
  let relay: string;
  let server: ChildServer;
  let story: Story;
  let work: WorkingCopy;
  let url: string;
  let tip: string;
  const alice = new Person();
  const mount = (path: string, megabytes: number): void => {
    mkdirSync(path, { recursive: true });
    assert.equal(spawnSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", path]).status, 0);
  };
  before(async () => {
    if (skip) return;
    folder = await newFolder();
    [git, relay] = [join(folder, "git"), join(folder, "relay")];
    mount(git, 32);
    // The store keeps 128 MiB free for what it has promised.
    mount(relay, 400);
    mkdirSync(join(folder, "tmp"));
    server = await startChild({ backend: "lmdb", folder, settings: { TMPDIR: join(folder, "tmp") } });
    story = await Story.on(server);
    ({ work, url, tip } = await story.hosted(alice, "kept"));
  });
  after(async () => {
    if (skip) return;
    await story.relay.close();
    await server.stop();
    for (const path of [git, relay]) spawnSync("umount", ["--lazy", path]);
    rmSync(folder, { recursive: true, force: true });
  });

  const fill = (path: string, percent: number): string => {
    const ballast = join(path, "ballast");
    rmSync(ballast, { force: true });
    const { blocks, bavail, bsize } = statfsSync(path);
    const wanted = Math.floor((blocks * percent) / 100) - (blocks - bavail);
    try {
      writeFileSync(ballast, Buffer.alloc(Math.max(0, wanted * bsize)));
    } catch (error) {
      // The server wrote something meanwhile: then it is full all the same.
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
    return ballast;
  };
  const packsIn = (directory: string): string[] =>
    readdirSync(join(directory, "objects/pack"))
      .filter((name) => name.endsWith(".pack"))
      .map((name) => join(directory, "objects/pack", name));
  const commitLarge = async (megabytes: number): Promise<string> => {
    writeFileSync(join(work.folder, "large"), randomBytes(megabytes * 2 ** 20));
    await work.must("config", "core.compression", "0");
    return work.commit(`large ${megabytes} ${randomBytes(3).toString("hex")}`);
  };

  it("threat 15: above the operator's share pushes are refused with the reason, clones go on, and space brings them back", {
    skip,
  }, async () => {
    const next = await work.commit("next");
    await story.state(alice, "kept", { "refs/heads/main": next });
    const ballast = fill(git, 92);
    // The disk is looked at every two seconds.
    const sees = async (): Promise<boolean> =>
      /disk/.test((await work.git("push", url, `${tip}:refs/heads/other`)).stderr);
    assert.ok(await until(sees, 120_000));
    await traceless(server, async () => {
      const pushed = await work.git("push", url, "main");
      assert.notEqual(pushed.code, 0);
      assert.match(pushed.stderr, /disk/);
      assert.equal((await work.git("clone", "-q", "--bare", url, `../copy${randomBytes(3).toString("hex")}`)).code, 0);
    });
    unlinkSync(ballast);
    assert.ok(await until(async () => (await work.git("push", url, "main")).code === 0, 120_000));
    assert.equal((await story.advertised(alice, "kept"))["refs/heads/main"], next);
    tip = next;
  });

  it("threat 15: a disk that fills up in the middle of a push refuses it and keeps everything there was", {
    skip,
  }, async () => {
    const large = await commitLarge(12);
    await story.state(alice, "kept", { "refs/heads/main": large });
    // Below the share that is looked at, but not enough for the pack.
    const ballast = fill(git, 70);
    const before = Object.keys(filesBelow(git));
    await traceless(server, async () => {
      const pushed = await work.git("push", url, "main");
      assert.notEqual(pushed.code, 0);
      assert.match(pushed.stderr, /rejected|No space|could not finish/);
      assert.equal((await story.advertised(alice, "kept"))["refs/heads/main"], tip);
      assert.equal((await work.git("clone", "-q", "--bare", url, `../copy${randomBytes(3).toString("hex")}`)).code, 0);
    });
    assert.deepEqual(Object.keys(filesBelow(git)), before, "nothing was deleted to make room");
    unlinkSync(ballast);
    assert.ok(await until(async () => (await work.git("push", url, "main")).code === 0, 120_000));
    assert.equal((await story.advertised(alice, "kept"))["refs/heads/main"], large);
    const fsck = await work.git(`--git-dir=${story.directory(alice, "kept")}`, "fsck", "--strict");
    assert.equal(fsck.code, 0, fsck.stderr);
    tip = large;
  });

  it("threat 15: a repack for which there is no room leaves everything as it was, and the next one with room works", {
    skip,
  }, async () => {
    const directory = story.directory(alice, "kept");
    const repository = `${alice.npub}/kept`;
    // Two packs, of which the first is so large that a second copy does not fit beside the ballast.
    tip = await work.commit("a second pack");
    await story.state(alice, "kept", { "refs/heads/main": tip });
    await work.must("push", "-q", url, "main");
    const repack = async (): Promise<HousekeepingResult> => {
      const asked = { operation: "repos.gc", parameters: { repository, cruft: true } } as const;
      const outcome = await askServer(relay, asked, () => undefined);
      assert.ok(outcome?.ok, JSON.stringify(outcome));
      return outcome.result as HousekeepingResult;
    };
    const sound = async (): Promise<void> => {
      const fsck = await work.git(`--git-dir=${directory}`, "fsck", "--strict", "--no-dangling");
      assert.equal(fsck.code, 0, fsck.stderr);
      const left = Object.keys(filesBelow(git)).filter((name) => /\.lock$|(?:^|\/)\.?tmp[-_]/.test(name));
      assert.deepEqual(left, []);
      const copy = `../copy${randomBytes(3).toString("hex")}`;
      assert.equal((await work.git("clone", "-q", "--bare", url, copy)).code, 0);
      assert.equal(await work.must(`--git-dir=${copy}`, "rev-parse", "main"), tip);
    };
    const ballast = fill(git, 85);
    const before = filesBelow(git);
    const packBytes = packsIn(directory).reduce((sum, name) => sum + statSync(name).size, 0);
    const { bavail, bsize } = statfsSync(git);
    assert.ok(packBytes > bavail * bsize, "there is no room for a second copy");
    await traceless(server, async () => {
      assert.deepEqual((await repack()).failed, [repository]);
      await sound();
    });
    assert.deepEqual(filesBelow(git), before, "no file came, went or changed");

    unlinkSync(ballast);
    assert.deepEqual(await repack().then(({ done, failed, busy }) => ({ done, failed, busy })), {
      done: 1,
      failed: [],
      busy: [],
    });
    assert.equal(packsIn(directory).length, 1);
    await sound();
  });

  for (const [what, percent] of [
    ["above the operator's share", 96],
    ["that is really full", 100],
  ] as const) {
    it(`threat 15: an event for a store's disk ${what} is refused, what was stored is served, and space brings writes back`, {
      skip,
    }, async () => {
      const ballast = fill(relay, percent);
      const other = new Person();
      const refusal = async (): Promise<string> => {
        const { ok, message } = await story.publish(story.announcement(other, `full${randomBytes(3).toString("hex")}`));
        return ok ? "" : message;
      };
      // A write that fails may be followed by one that fits, until the server has looked at its disk.
      assert.ok(await until(async () => /nearly full/.test(await refusal()), 120_000));
      await traceless(
        server,
        async () => {
          assert.match(await refusal(), saysFull);
          const state = await story.publish(stateEvent(alice, "kept", { "refs/heads/main": tip, "refs/heads/x": tip }));
          assert.match(state.message, saysFull);
          assert.equal((await story.served({ kinds: [30617], authors: [alice.pubkey] })).length, 1);
          assert.equal((await story.advertised(alice, "kept"))["refs/heads/main"], tip);
          assert.equal((await ask(`${server.origin}/readyz`)).status, 503);
        },
        { besides: /^$/ },
      );
      unlinkSync(ballast);
      assert.ok(await until(async () => (await refusal()) === "", 120_000));
      assert.equal(server.child.exitCode, null);
    });
  }
});
