// What the fault harness found, told as stories that need no luck.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, promises, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/base/clock.js";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { RepositoryAddress } from "../../src/git/address.js";
import { Launcher, LauncherError } from "../../src/git/launcher.js";
import { Repositories } from "../../src/git/repositories.js";
import { GitRepository } from "../../src/git/repository.js";
import { Git, GitError } from "../../src/git/run.js";
import { RecheckQueue } from "../../src/hunt/missing.js";
import { PullRequestRefs } from "../../src/purgatory/pull-requests.js";
import { createMemoryStore } from "../../src/store/memory/memory-store.js";
import { StoreFullError } from "../../src/store/port.js";
import { survivable } from "../../src/survivable-errors.js";
import { npub, owner } from "../harness/git-server.js";
import { Person } from "../harness/grasp-people.js";
import { Story, stateEvent } from "../harness/grasp-story.js";
import { type HuntWorld, huntWorld, impatient } from "../harness/hunt-world.js";
import { keyOf } from "../harness/relay-events.js";
import { newFolder, removeFolder, until } from "../harness/server.js";

const killedGit = (): GitError =>
  new GitError("planted", { code: undefined, signal: "SIGKILL", timedOut: false, stderr: "" });

describe("the release", () => {
  let story: Story;
  before(async () => {
    story = await Story.begin({ settings: { NGIT_PARTIAL_STATE_GRACE_SECS: "1" } });
  });
  after(() => story.end());

  it("holds a partial state as far as it can be in every repository it decides in", async () => {
    const [alice, bob] = [new Person(), new Person()];
    const { work, url } = await story.hosted(alice, "pair", [["maintainers", bob.pubkey]]);
    await story.accepted(story.announcement(bob, "pair", [["maintainers", alice.pubkey]]));
    const next = await work.commit("two");
    const state = stateEvent(alice, "pair", { "refs/heads/main": next, "refs/heads/absent": "1".repeat(40) });
    await story.accepted(state);
    await work.must("push", "-q", url, "main");
    assert.ok(await until(() => story.isServed(state), 120_000), "it is served after its grace");
    for (const person of [alice, bob]) {
      const refs = await story.advertised(person, "pair");
      assert.equal(refs["refs/heads/main"], next);
      assert.equal(refs["refs/heads/absent"], undefined);
    }
  });

  it("that git broke off is ended later, without a new push and without a restart", async () => {
    const alice = new Person();
    await story.announce(alice, "later");
    const work = await story.workingCopy();
    const tip = await work.commit("one");
    const state = await story.state(alice, "later", { "refs/heads/main": tip });
    const { place } = PullRequestRefs.prototype;
    let failures = 0;
    PullRequestRefs.prototype.place = () => {
      failures++;
      return Promise.reject(killedGit());
    };
    try {
      await work.must("push", "-q", story.url(alice, "later"), "main");
      assert.ok(failures > 0);
      assert.equal((await story.advertised(alice, "later"))["refs/heads/main"], tip, "the push was acknowledged");
      assert.equal(await story.isServed(state), false);
    } finally {
      PullRequestRefs.prototype.place = place;
    }
    assert.ok(await until(() => story.isServed(state), 120_000));
  });
});

describe("what killed git leaves", () => {
  let folder: string;
  let launcher: Launcher;
  let git: Git;
  before(async () => {
    folder = await newFolder();
    launcher = new Launcher();
    git = await Git.find(launcher);
  });
  after(async () => {
    await launcher.close();
    await removeFolder(folder);
  });

  const repositoryNamed = async (identifier: string): Promise<GitRepository> => {
    const address = RepositoryAddress.of(owner, npub, identifier);
    const repositories = new Repositories({
      gitDataPath: join(folder, "git"),
      git,
      clock: systemClock,
      store: createMemoryStore({ clock: systemClock }),
    });
    return await repositories.create(address);
  };

  const unclaimed = `unclaimed/${"a".repeat(64)}`;
  const planted = [
    "packed-refs.new",
    "packed-refs.lock",
    "objects/pack/multi-pack-index.lock",
    "objects/pack/pack-1234.pack",
    "objects/pack/.tmp-1-pack-1.idx",
    "objects/info/commit-graph.lock",
    `${unclaimed}/pack/pack-1234.pack`,
  ];

  it("is gone when the repository is first looked at, and the next housekeeping works", async () => {
    const repository = await repositoryNamed("swept");
    mkdirSync(join(repository.directory, unclaimed, "pack"), { recursive: true });
    for (const path of planted) writeFileSync(join(repository.directory, path), "");
    await repository.refs();
    const left = readdirSync(repository.directory, { recursive: true }).map(String);
    assert.deepEqual(
      planted.filter((path) => left.includes(path)),
      [],
    );
    assert.ok(await repository.housekeep());
  });

  it("while the server runs does not stop the next housekeeping either", async () => {
    const repository = await repositoryNamed("running");
    await repository.refs();
    for (const path of ["packed-refs.new", "objects/pack/multi-pack-index.lock", "objects/info/commit-graph.lock"]) {
      writeFileSync(join(repository.directory, path), "");
    }
    await assert.rejects(repository.housekeep(), GitError);
    await repository.housekeep().catch(() => undefined);
    assert.ok(await repository.housekeep());
  });
});

describe("a hunt", () => {
  const key = keyOf("hunted");
  const publish = async ({ house, work, remote }: HuntWorld) => {
    const tip = await work.commitFile("a", "one");
    await remote.publish("demo", work.path, { "refs/heads/main": tip });
    await house.announce(key, "demo", [remote.url("demo")], { created_at: house.now - 3 });
    return house.state(key, "demo", { "refs/heads/main": tip }, { created_at: house.now - 2 });
  };

  it("that is cancelled just before git starts ends quietly", async (t) => {
    const world = await huntWorld(t);
    const { house } = world;
    const { quarantine } = GitRepository.prototype;
    let closing: Promise<void> | undefined;
    t.mock.method(GitRepository.prototype, "quarantine", function (this: GitRepository) {
      closing ??= house.room.hunting.close();
      return quarantine.call(this);
    });
    await publish(world);
    assert.ok(await until(() => closing !== undefined, 120_000));
    await closing;
    assert.deepEqual(house.faults, []);
  });

  it("for which no descriptor is left to look at what comes is given up, and done again later", async (t) => {
    const world = await huntWorld(t, { hunt: impatient });
    const { house, remote } = world;
    remote.behaviour = { type: "hang-after-headers" };
    const { readdir } = promises;
    let refusals = 0;
    const refusing = async (...args: Parameters<typeof readdir>): Promise<unknown> => {
      if (!String(args[0]).includes("tmp_quarantine-")) return readdir(...args);
      refusals++;
      throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
    };
    t.mock.method(promises, "readdir", refusing as unknown as typeof readdir);
    syncBuiltinESMExports();
    t.after(() => {
      t.mock.restoreAll();
      syncBuiltinESMExports();
    });
    const state = await publish(world);
    const passing = (): boolean => house.logged.some(({ message }) => message.startsWith("a fault that passes"));
    assert.ok(await until(passing, 120_000), `${refusals} refusals`);
    assert.ok(refusals > 0);
    t.mock.restoreAll();
    syncBuiltinESMExports();
    remote.behaviour = { type: "none" };
    assert.ok(await until(() => house.isServed(state), 120_000), "the state is served");
    assert.deepEqual(house.faults, []);
  });
});

describe("a killed server", () => {
  it("leaves neither its launcher's directory nor the process that writes there", async () => {
    const program = fileURLToPath(new URL("./launcher-owner.js", import.meta.url));
    const child = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"] });
    const [said] = (await once(child.stdout, "data")) as [Buffer];
    const folder = said.toString("utf8").trim();
    assert.ok(await until(() => existsSync(join(folder, "busy/100")), 120_000), "it writes");
    child.kill("SIGKILL");
    const isLeft = (): boolean =>
      readdirSync("/proc").some((pid) => {
        try {
          return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(folder);
        } catch {
          return false;
        }
      });
    assert.ok(await until(() => !isLeft() && !existsSync(folder), 120_000));
  });
});

describe("a fault that passes", () => {
  it("does not reach the end of the process; any other does", () => {
    const reached: unknown[] = [];
    const onFault = survivable({ warn: () => undefined }, (error) => reached.push(error));
    const noDescriptors = Object.assign(new Error("no"), { code: "EMFILE" });
    for (const error of [new StoreFullError("full"), killedGit(), new LauncherError("gone"), noDescriptors])
      onFault(error);
    assert.deepEqual(reached, []);
    const bug = new TypeError("a bug");
    onFault(bug);
    assert.deepEqual(reached, [bug]);
  });

  it("of a look for missing objects is followed by another look", async () => {
    const clock = new ManualClock();
    const name = { owner, identifier: "looked-at" };
    let looks = 0;
    const faults: unknown[] = [];
    const look = async (): Promise<void> => {
      if (++looks < 3) throw killedGit();
    };
    const again = new RecheckQueue(look, (error) => faults.push(error), clock);
    again.add(name);
    await again.idle();
    clock.advance(1_000);
    await again.idle();
    clock.advance(2_000);
    await again.idle();
    clock.advance(3_600_000);
    await again.idle();
    assert.deepEqual([looks, faults.length], [3, 2]);
  });

  it("of a launcher whose death is not known yet fails what was to be started; then there is another", async () => {
    const launcher = new Launcher();
    try {
      const env = { PATH: process.env.PATH ?? "" };
      const request = { argv: ["/bin/true"] as const, env, limits: { wallClockMs: 10_000 } };
      await (await launcher.start(request)).exit;
      process.kill(launcher.helperPid ?? 0, "SIGKILL");
      const starts = [1, 2, 3].map(() => assert.rejects(launcher.start(request), LauncherError));
      // Nobody can be told of its death meanwhile.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
      await Promise.all(starts);
      assert.equal((await (await launcher.start(request)).exit).code, 0);
    } finally {
      await launcher.close();
    }
  });

  it("of the launcher's connection fails the process that was to be started, and it does not hang", async () => {
    const launcher = new Launcher();
    try {
      const env = { PATH: process.env.PATH ?? "" };
      const request = { argv: ["/bin/true"] as const, env, limits: { wallClockMs: 10_000 }, stdin: true };
      await (await launcher.start(request)).exit;
      const folder = launcher.scratchDirectory;
      for (const file of readdirSync(folder)) rmSync(join(folder, file));
      await assert.rejects(launcher.start(request), LauncherError);
    } finally {
      await launcher.close();
    }
  });
});
