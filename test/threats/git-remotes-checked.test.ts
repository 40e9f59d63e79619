// threats.md rows 44 and 49: git servers that treat our look and git's fetch differently.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type TestContext, test } from "node:test";
import type { HuntConfig } from "../../src/hunt/core/messages.js";
import { runProgram } from "../harness/git-server.js";
import { mustGit, type WorkingClone } from "../harness/hunt-git-server.js";
import { until } from "../harness/hunt-house.js";
import { huntWorld, impatient } from "../harness/hunt-world.js";
import { keyOf } from "../harness/relay-events.js";

const owner = keyOf("owner of what is checked");

/** A commit whose tree has a folder `.git` with a `config` in it: whoever checks it out obeys that. */
async function evilCommit(work: WorkingClone): Promise<string> {
  const write = async (type: string, input: Buffer | string): Promise<string> => {
    const args = ["hash-object", "-w", "-t", type, "--literally", "--stdin"];
    return (await runProgram("git", args, { cwd: work.path, input })).stdout.trim();
  };
  const entry = (mode: string, name: string, id: string): Buffer =>
    Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(id, "hex")]);
  const config = await write("blob", "[core]\n\tfsmonitor = touch /tmp/planted\n");
  const folder = await write("tree", entry("100644", "config", config));
  const tree = await write("tree", entry("40000", ".git", folder));
  return mustGit(["commit-tree", tree, "-m", "evil"], work.path);
}

async function refusedTwice(context: TestContext, tipOf: (work: WorkingClone) => Promise<string>, packed: boolean) {
  const { house, work, remote } = await huntWorld(context, { hunt: impatient });
  const name = house.name(owner, "demo");
  const tip = await tipOf(work);
  await remote.publish("demo", work.path, { "refs/heads/main": tip });
  if (packed) await mustGit([`--git-dir=${remote.folder}/demo.git`, "repack", "-adq"]);
  remote.behaviour = { type: "dumb-to-git" };
  await house.announce(owner, "demo", [remote.url("demo")]);
  await house.state(owner, "demo", { "refs/heads/main": tip });
  const attempts = (): number => house.logged.filter(({ message }) => message === "back-off").length;
  await until("two attempts ended", () => attempts() >= 2);
  assert.deepEqual(await house.packs(name), []);
  assert.deepEqual(await house.refs(name), {});
  assert.equal(house.room.hunting.knownOf(name)?.servers[0]?.answer, "bad-objects");
  await house.room.close();
  assert.deepEqual(await house.leftovers(name), []);
  assert.deepEqual(house.faults, []);
}

test("threat 44: a tree with .git/config from a server that is dumb to git is refused, loose or packed", async (context) => {
  await refusedTwice(context, evilCommit, false);
  await refusedTwice(context, evilCommit, true);
});

test("threat 44: git's dumb protocol is refused even when the objects are sound, loose or packed", async (context) => {
  await refusedTwice(context, (work) => work.commitFile("a", "sound"), false);
  await refusedTwice(context, (work) => work.commitFile("a", "sound"), true);
});

test("threat 44: what a fetch brings besides the ids it was for stays in quarantine", async (context) => {
  const { house, work, remote } = await huntWorld(context, { hunt: impatient });
  const name = house.name(owner, "demo");
  const tip = await work.commitFile("a", "wanted");
  const junk = await mustGit(["commit-tree", `${tip}^{tree}`, "-m", "named by nothing"], work.path);
  await remote.publish("demo", work.path, { "refs/heads/main": tip, "refs/heads/junk": junk });
  remote.behaviour = { type: "stuffed-pack", with: junk };
  await house.announce(owner, "demo", [remote.url("demo")]);
  const state = await house.state(owner, "demo", { "refs/heads/main": tip });
  await until("the state is served", () => house.isServed(state));
  const repository = house.repository(name);
  assert.equal((await repository.objectTypes([tip as never, junk as never])).size, 1);
});

test("threat 49: refs without end from a server that showed us few end the attempt, and git holds no more than it may", async (context) => {
  const small = (config: HuntConfig): HuntConfig => ({
    ...impatient(config),
    gitMemoryBytes: 64 << 20,
  });
  const { house, work, remote } = await huntWorld(context, { hunt: small });
  const name = house.name(owner, "demo");
  const tip = await work.commitFile("a", randomBytes(100));
  await remote.publish("demo", work.path, { "refs/heads/main": tip });
  remote.behaviour = { type: "endless-refs", bytes: 160 << 20 };
  await house.announce(owner, "demo", [remote.url("demo")]);
  await house.state(owner, "demo", { "refs/heads/main": tip });
  const attempts = (): number => house.logged.filter(({ message }) => message === "back-off").length;
  await until("an attempt ended", () => attempts() >= 1);
  assert.equal(house.room.hunting.knownOf(name)?.servers[0]?.answer, "fetch-failed");
  assert.deepEqual(await house.packs(name), []);
  await house.room.close();
  assert.deepEqual(house.faults, []);
});
