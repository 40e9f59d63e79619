// Settings of pushes, from the operator's file to the pusher's terminal, at start and after a reload.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { runProgram } from "../harness/git-server.js";
import { Person } from "../harness/grasp-people.js";
import { Story, type WorkingCopy } from "../harness/grasp-story.js";
import { type ChildServer, newFolder, startChild, until } from "../harness/server.js";

describe("settings of pushes", () => {
  let server: ChildServer;
  let story: Story;
  let work: WorkingCopy;
  let tip: string;
  let url: string;
  let file: string;

  before(async () => {
    const folder = await newFolder();
    file = join(folder, "holdfast.conf");
    await writeFile(file, "NGIT_PUSH_MAX_COMMANDS=20\nNGIT_PUSH_MAX_COMMAND_BYTES=4096\nNGIT_GIT_MEMORY_BYTES=64MiB\n");
    server = await startChild({ folder, args: ["--config", file] });
    story = await Story.on(server);
    ({ work, tip, url } = await story.hosted(new Person(), "limits"));
  });
  after(() => story.end());

  const pushBranches = async (count: number, nameLength = 3): Promise<string> => {
    const refs = Array.from({ length: count }, (_, at) => `main:refs/heads/${String(at).padStart(nameLength, "b")}`);
    return (await work.git("push", url, ...refs)).stderr;
  };

  it("bound the number of refs", async () => {
    assert.match(await pushBranches(21), /a push may move at most 20 refs: push fewer at a time/);
    assert.match(await pushBranches(20), /no state by a maintainer lists/);
  });

  it("bound the bytes of the list of refs", async () => {
    assert.match(await pushBranches(18, 200), /the list of refs is over 4 KiB: push fewer refs at a time/);
  });

  it("bound the memory of the git that checks a push", async () => {
    const person = `A <a@example.com> 1700000000 +0000`;
    const tree = await work.must("rev-parse", "main^{tree}");
    const head = `tree ${tree}\nparent ${tip}\nauthor ${person}\ncommitter ${person}\n\n`;
    const input = Buffer.concat([Buffer.from(head), Buffer.alloc(80 * 2 ** 20, "words ")]);
    const args = ["hash-object", "-t", "commit", "-w", "--stdin"];
    const { stdout } = await runProgram("git", args, { cwd: work.folder, input });
    const large = await work.git("push", url, `${stdout.trim()}:refs/nostr/${"a".repeat(64)}`);
    assert.match(large.stderr, /the objects need more memory to check than this server gives/);
  });

  it("change with a reload, without a restart", async () => {
    await writeFile(file, "NGIT_PUSH_MAX_COMMANDS=2\n");
    server.child.kill("SIGHUP");
    const isTaken = await until(async () => /at most 2 refs/.test(await pushBranches(3)), 120_000);
    assert.ok(isTaken, server.log());
  });
});
