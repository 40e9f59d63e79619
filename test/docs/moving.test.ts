// What docs/how-to/migrate.md and back-up.md promise, by running their commands: a server moved by them has everything the
// old one had. Only addresses and folders differ.

import assert from "node:assert/strict";
import { cpSync, existsSync, readdirSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { runProgram } from "../harness/git-server.js";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { newFolder, removeFolder, startInProcess, type TestServer } from "../harness/server.js";
import { dataSettings, domain } from "../stories/backup-house.js";
import { walkthrough } from "./walkthrough.js";

const settings = { NGIT_DOMAIN: domain };

interface Inhabited {
  readonly story: Story;
  readonly owner: Person;
  readonly tip: string;
  readonly events: SignedEvent[];
  readonly refs: string;
}

/** Lists in the name both servers have, one after the other. */
async function inhabited(): Promise<Inhabited> {
  const story = await Story.begin({ backend: "lmdb", settings });
  const owner = new Person();
  const clone = `https://${domain}/${owner.npub}/moved.git`;
  const announcement = owner.sign(30617, [
    ["d", "moved"],
    ["clone", clone],
    ["relays", `wss://${domain}`],
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
  const refs = await refsOf(story.server, owner);
  return { story, owner, tip, events: [announcement, state, pullRequest, issue], refs };
}

async function idsOf(server: TestServer): Promise<string[]> {
  const relay = await server.connect();
  const { events } = await relay.ask("q", {});
  await relay.close();
  return events.map(({ id }) => String(id)).sort();
}

async function refsOf(server: TestServer, owner: Person): Promise<string> {
  const listed = await runProgram("git", ["ls-remote", `${server.origin}/${owner.npub}/moved.git`]);
  return listed.stdout;
}

/** The page's commands, run by a shell that finds `holdfast` and the settings of a server in `folder`. */
async function follow(folder: string, script: string, replaced: Readonly<Record<string, string>>): Promise<string> {
  const reader = join(folder, "reader");
  await mkdir(reader, { recursive: true });
  const program = join(reader, "holdfast");
  const main = join(process.cwd(), "dist/src/main.js");
  writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`, { mode: 0o755 });
  const exports = Object.entries(dataSettings(folder)).map(([name, value]) => `export ${name}='${value}'\n`);
  let input = `PATH="${reader}:$PATH"\n${exports.join("")}${script}`;
  for (const [from, to] of Object.entries(replaced)) input = input.replaceAll(from, to);
  const ended = await runProgram("bash", [], { cwd: reader, input });
  assert.equal(ended.code, 0, ended.stdout + ended.stderr);
  return ended.stdout;
}

async function isTheSame(folder: string, old: Inhabited): Promise<void> {
  const server = await startInProcess({ backend: "lmdb", folder, settings });
  try {
    assert.deepEqual(await idsOf(server), old.events.map(({ id }) => id).sort());
    assert.equal(await refsOf(server, old.owner), old.refs);
  } finally {
    await server.stop();
  }
}

describe("moving a server", { timeout: 600_000 }, () => {
  let old: Inhabited;
  let stopped: Promise<void> | undefined;
  const stopOld = (): Promise<void> => {
    stopped ??= old.story.relay.close().then(() => old.story.server.stop());
    return stopped;
  };
  before(async () => {
    old = await inhabited();
  });
  after(async () => {
    await stopOld();
    await removeFolder(old.story.server.folder);
  });

  test("by the commands of migrate.md everything is served again", async (t) => {
    const { story, tip, refs } = old;
    assert.match(refs, new RegExp(`${tip}\\trefs/heads/main`));
    const folder = await newFolder();
    t.after(() => removeFolder(folder));
    const said = await follow(folder, walkthrough("docs/how-to/migrate.md"), {
      "127.0.0.1:8080": story.server.origin.replace("http://", ""),
      "/srv/old/git": story.server.gitPath,
    });
    assert.equal(said.match(/^1 ready, 0 need action, 0 unknown$/gm)?.length, 2, said);
    assert.match(said, /events: 4 taken, 0 known already, 0 refused/);
    await isTheSame(folder, old);
  });

  test("by the commands of back-up.md a backup of a running server becomes a whole server", async (t) => {
    const { story } = old;
    const folder = await newFolder();
    t.after(() => removeFolder(folder));
    const backups = join(folder, "backup");
    const said = await follow(story.server.folder, walkthrough("docs/how-to/back-up.md", "## Back up"), {
      "/backup/holdfast": backups,
    });
    assert.match(said, /: 4 events, 1 repository, [\d.]+ \w+, verified\n.* is sound: 4 events, 1 repository/);
    assert.ok(existsSync(join(story.server.folder, "reader/holdfast-backup.tar.gz")));
    assert.deepEqual(
      readdirSync(story.server.gitPath).filter((name) => name.startsWith(".")),
      [],
    );
    await follow(folder, walkthrough("docs/how-to/back-up.md", "## Restore"), { "/backup/holdfast": backups });
    await isTheSame(folder, old);
  });

  test("a copy of a stopped server's data directory is a whole server", async (t) => {
    const { story } = old;
    const folder = await newFolder();
    t.after(() => removeFolder(folder));
    await stopOld();
    for (const part of ["git", "relay"]) {
      cpSync(join(story.server.folder, part), join(folder, part), {
        recursive: true,
        filter: (path) => !path.endsWith(".sock"),
      });
    }
    await isTheSame(folder, old);
  });
});
