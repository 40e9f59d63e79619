// What docs/how-to/migrate.md and back-up.md promise: a server moved by them has everything the old one had.

import assert from "node:assert/strict";
import { cpSync, symlinkSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { walkthrough } from "./docs-walkthrough.js";
import { runProgram } from "./harness/git-server.js";
import { Person, type SignedEvent } from "./harness/grasp-people.js";
import { Story } from "./harness/grasp-story.js";
import { newFolder, removeFolder, startInProcess, type TestServer } from "./harness/server.js";

const settings = { NGIT_DOMAIN: "git.example.com" };

/** Lists in the name both servers have, one after the other. */
async function inhabited(): Promise<{ story: Story; owner: Person; tip: string; events: SignedEvent[] }> {
  const story = await Story.begin({ backend: "lmdb", settings });
  const owner = new Person();
  const clone = `https://git.example.com/${owner.npub}/moved.git`;
  const announcement = owner.sign(30617, [
    ["d", "moved"],
    ["clone", clone],
    ["relays", "wss://git.example.com"],
  ]);
  await story.accepted(announcement);
  const work = await story.workingCopy();
  const tip = await work.commit("one");
  const state = await story.state(owner, "moved", { "refs/heads/main": tip });
  const url = story.url(owner, "moved");
  await work.must("push", "-q", url, "main");
  const contributor = new Person();
  const offered = await work.commit("offered");
  const tags = [
    ["a", owner.coordinate("moved")],
    ["c", offered],
    ["clone", clone],
  ];
  const pullRequest = await story.accepted(contributor.sign(1618, tags));
  await work.must("push", "-q", url, `HEAD:refs/nostr/${pullRequest.id}`);
  const issue = await story.accepted(contributor.sign(1621, [["a", owner.coordinate("moved")]], "an issue"));
  return { story, owner, tip, events: [announcement, state, pullRequest, issue] };
}

async function idsOf(server: TestServer): Promise<string[]> {
  const relay = await server.connect();
  const { events } = await relay.ask("q", {});
  await relay.close();
  return events.map(({ id }) => String(id)).sort();
}

async function refsOf(server: TestServer, owner: Person): Promise<string> {
  const listed = await runProgram("git", ["ls-remote", `${server.origin}/${owner.npub}/moved.git`]);
  assert.equal(listed.code, 0, listed.stderr);
  return listed.stdout;
}

describe("moving a server", { timeout: 60_000 }, () => {
  test("by copied repositories and the how-to's script everything is served again", async (t) => {
    const { story, owner, tip, events } = await inhabited();
    t.after(() => story.end());
    const folder = await newFolder();
    t.after(() => removeFolder(folder));
    cpSync(story.server.gitPath, join(folder, "git"), { recursive: true });
    const moved = await startInProcess({ backend: "lmdb", folder, settings });
    const scripts = join(folder, "scripts");
    await mkdir(scripts);
    symlinkSync(join(process.cwd(), "node_modules"), join(scripts, "node_modules"));
    const [from, to] = [story.server.origin, moved.origin].map((origin) => origin.replace("http://", ""));
    const input = walkthrough("docs/how-to/migrate.md")
      .replaceAll("127.0.0.1:8080", from ?? "")
      .replaceAll("127.0.0.1:7334", to ?? "");
    const ended = await runProgram("bash", [], { cwd: scripts, input });
    assert.equal(ended.stdout, "4 events, 0 refused\n", ended.stderr);
    assert.deepEqual(await idsOf(moved), events.map(({ id }) => id).sort());
    const refs = await refsOf(moved, owner);
    assert.equal(refs, await refsOf(story.server, owner));
    assert.match(refs, new RegExp(`${tip}\\trefs/heads/main`));
    await moved.stop();
  });

  test("a copy of a stopped server's data directory is a whole server", async (t) => {
    const { story, owner, events } = await inhabited();
    const refs = await refsOf(story.server, owner);
    const folder = await newFolder();
    t.after(() => removeFolder(folder));
    await story.relay.close();
    await story.server.stop();
    for (const part of ["git", "relay"]) {
      cpSync(join(story.server.folder, part), join(folder, part), {
        recursive: true,
        filter: (path) => !path.endsWith(".sock"),
      });
    }
    await removeFolder(story.server.folder);
    const restored = await startInProcess({ backend: "lmdb", folder, settings });
    assert.deepEqual(await idsOf(restored), events.map(({ id }) => id).sort());
    assert.equal(await refsOf(restored, owner), refs);
    await restored.stop();
  });
});
