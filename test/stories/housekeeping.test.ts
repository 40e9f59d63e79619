// Housekeeping of a running server, seen from outside (git-http.md, Serving, last point): a repository that was pushed
// to often is quick to clone, nobody notices the work, and whatever ends it leaves a good repository.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, mkdir, rm, writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { askServer } from "../../src/operator/socket.js";
import { isEveryFault } from "../faults/every-fault.js";
import { runProgram } from "../harness/git-server.js";
import { Person } from "../harness/grasp-people.js";
import { Story, stateEvent, type WorkingCopy } from "../harness/grasp-story.js";
import { type ChildServer, newFolder, removeFolder, startChild, until } from "../harness/server.js";

const pushes = 13;
const repackAfterPacks = 8;
const patienceMs = 120_000;

const packFiles = (directory: string): string[] => readdirSync(join(directory, "objects/pack"));
const packsIn = (directory: string): number => packFiles(directory).filter((name) => name.endsWith(".pack")).length;
const hasBitmap = (directory: string): boolean =>
  packFiles(directory).some((name) => /^multi-pack-index-.*\.bitmap$/.test(name));

async function sound(directory: string): Promise<void> {
  const fsck = await runProgram("git", [`--git-dir=${directory}`, "fsck", "--strict", "--no-dangling"]);
  assert.equal(fsck.code, 0, fsck.stderr);
  // What a step that still runs holds goes by itself; what was left behind does not.
  const left = (): string[] =>
    readdirSync(directory, { recursive: true })
      .map(String)
      .filter((name) => /\.lock$|(?:^|\/)\.?tmp[-_]/.test(name));
  assert.ok(await until(() => left().length === 0, patienceMs), left().join(" "));
  const names = new Set(packFiles(directory));
  for (const name of names) {
    if (name.endsWith(".pack")) assert.ok(names.has(name.replace(/\.pack$/, ".idx")), `${name} has no index`);
  }
}

async function pushNext(story: Story, owner: Person, id: string, work: WorkingCopy, text: string): Promise<string> {
  const tip = await work.commit(text);
  await story.accepted(stateEvent(owner, id, { "refs/heads/main": tip }));
  await work.must("push", "-q", story.url(owner, id), "main");
  return tip;
}

async function metric(story: Story, line: RegExp): Promise<number> {
  const text = await (await fetch(`${story.server.origin}/metrics`)).text();
  return Number(line.exec(text)?.[1] ?? Number.NaN);
}

it(`after ${pushes} pushes a repository has few packs, a bitmap and a commit-graph, and nobody had to ask for it`, async () => {
  const story = await Story.begin({ settings: { NGIT_GIT_REPACK_AFTER_PACKS: String(repackAfterPacks) } });
  try {
    const owner = new Person();
    const { work } = await story.hosted(owner, "busy");
    const directory = story.directory(owner, "busy");
    let tip = "";
    for (let index = 1; index < pushes; index++) tip = await pushNext(story, owner, "busy", work, `push ${index}`);
    assert.ok(
      await until(() => hasBitmap(directory) && packsIn(directory) < repackAfterPacks, patienceMs),
      packFiles(directory).join(" "),
    );
    assert.ok(await until(() => existsSync(join(directory, "packed-refs")), patienceMs));
    // BDAT: which paths each commit changed, for histories of one path.
    assert.ok(readFileSync(join(directory, "objects/info/commit-graph")).includes("BDAT"));
    const clone = await story.workingCopy();
    await clone.must("pull", "-q", story.url(owner, "busy"), "main");
    assert.equal(await clone.must("rev-parse", "HEAD"), tip);
    assert.ok(
      await until(async () => {
        const done = await metric(story, /^ngit_git_housekeeping_runs_total\{kind="geometric",result="done"\} (\d+)$/m);
        return done >= 1;
      }, patienceMs),
    );
    assert.ok((await metric(story, /^ngit_git_housekeeping_packs_joined_total (\d+)$/m)) >= repackAfterPacks - 1);
    // Packs of the last pushes may be joined at any moment, and a foreign fsck takes a pack that goes for a damaged one.
    await story.server.stop();
    await sound(directory);
  } finally {
    await story.end();
  }
});

describe("while housekeeping runs", { timeout: 900_000 }, () => {
  let folder: string;
  let server: ChildServer;
  let story: Story;
  const owner = new Person();
  let work: WorkingCopy;
  let hold: string;
  let reached: string;
  let holdCheck: string;
  let heldTip: string;

  /** git that stops before it writes the multi-pack index, or checks objects, for as long as a file is there. */
  async function slowGit(): Promise<string> {
    const programs = join(folder, "programs");
    await mkdir(programs);
    [hold, reached, holdCheck] = [join(folder, "hold"), join(folder, "reached"), join(folder, "hold-check")];
    const real = (await runProgram("sh", ["-c", "command -v git"])).stdout.trim();
    const script = `#!/bin/sh
for word in "$@"; do
  if [ "$word" = multi-pack-index ]; then
    : > '${reached}'
    while [ -e '${hold}' ]; do sleep 0.05; done
  fi
  if [ "$word" = fsck ]; then
    while [ -e '${holdCheck}' ]; do sleep 0.05; done
  fi
done
exec '${real}' "$@"
`;
    await writeFile(join(programs, "git"), script);
    await chmod(join(programs, "git"), 0o755);
    return programs;
  }

  const start = (programs: string): Promise<ChildServer> =>
    startChild({
      backend: "lmdb",
      folder,
      settings: { PATH: `${programs}:${process.env.PATH ?? ""}`, NGIT_GIT_REPACK_AFTER_PACKS: "3" },
    });

  before(async () => {
    folder = await newFolder();
    server = await start(await slowGit());
    story = await Story.on(server);
    ({ work } = await story.hosted(owner, "held"));
    await writeFile(hold, "");
    for (const text of ["two", "three"]) heldTip = await pushNext(story, owner, "held", work, text);
    assert.ok(await until(() => existsSync(reached), patienceMs), server.log());
  });
  after(async () => {
    await story.relay.close();
    await server.stop();
    await removeFolder(folder);
  });

  it("a clone works", async () => {
    const clone = await story.workingCopy();
    await clone.must("pull", "-q", story.url(owner, "held"), "main");
    assert.equal(await clone.must("rev-parse", "HEAD"), heldTip);
    assert.ok(existsSync(hold), "it was still held");
  });

  it("a push does not wait for it, and it is done when the repository is quiet again", async () => {
    const directory = story.directory(owner, "held");
    await rm(reached);
    await pushNext(story, owner, "held", work, "beside");
    assert.ok(!hasBitmap(directory), "the one that was held gave way");
    assert.ok(await until(() => existsSync(reached), patienceMs), "it begins again");
    await rm(hold);
    assert.ok(await until(() => hasBitmap(directory) && processesIn(directory).length === 0, patienceMs));
    await sound(directory);
  });

  it("a check of its objects stops it and keeps it away: a pack that was replaced is not told as damaged", async () => {
    const directory = story.directory(owner, "held");
    const parameters = { repository: `${owner.npub}/held` };
    const ask = (operation: "repos.fsck" | "repos.gc") =>
      askServer(join(folder, "relay"), { operation, parameters } as never, () => undefined);
    await writeFile(hold, "");
    await rm(reached, { force: true });
    try {
      const stopped = ask("repos.gc");
      assert.ok(await until(() => existsSync(reached), patienceMs), server.log());
      await writeFile(holdCheck, "");
      const checked = ask("repos.fsck");
      assert.ok(await until(() => processesIn(directory).some((pid) => commandOf(pid).includes("fsck")), patienceMs));
      await rm(hold);
      assert.match(JSON.stringify(await stopped), /"busy":\["/);
      assert.match(JSON.stringify(await ask("repos.gc")), /"busy":\["/);
      await rm(holdCheck);
      assert.match(JSON.stringify(await checked), /"unsound":\[\]/);
      assert.match(JSON.stringify(await ask("repos.gc")), /"done":1/);
    } finally {
      await rm(hold, { force: true });
      await rm(holdCheck, { force: true });
    }
  });

  it("the server stops within seconds, and its successor goes on where it stopped", async () => {
    await writeFile(hold, "");
    await rm(reached, { force: true });
    for (const text of ["a", "b", "c", "d"]) await pushNext(story, owner, "held", work, text);
    assert.ok(await until(() => existsSync(reached), patienceMs));
    await story.relay.close();
    await server.stop();
    assert.equal((await server.ended).code, 0, server.log());
    await rm(hold);
    server = await start(join(folder, "programs"));
    story = await Story.on(server);
    const directory = story.directory(owner, "held");
    assert.ok(await until(() => hasBitmap(directory) && processesIn(directory).length === 0, patienceMs));
    await sound(directory);
  });
});

it("a clone that has begun gets everything although its packs are replaced meanwhile", async () => {
  // No room to keep answers: git waits for its reader.
  const story = await Story.begin({ backend: "lmdb", settings: { NGIT_GIT_PACK_CACHE_BYTES: "0" } });
  try {
    const owner = new Person();
    const { work, url } = await story.hosted(owner, "slow");
    await writeFile(join(work.folder, "large"), randomBytes(8 << 20));
    const tip = await pushNext(story, owner, "slow", work, "large");
    const old = packFiles(story.directory(owner, "slow")).filter((name) => name.endsWith(".pack"));
    const body = `0032want ${tip}\n00000009done\n`;
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request(`${url}/git-upload-pack`, { method: "POST" }, resolve);
      asked.on("error", reject);
      asked.end(body);
    });
    // Nothing is read: git stands still in the middle of its pack.
    const gc = { operation: "repos.gc", parameters: { repository: `${owner.npub}/slow`, cruft: true } } as const;
    const outcome = await askServer(join(story.server.folder, "relay"), gc, () => undefined);
    assert.ok(outcome?.ok, JSON.stringify(outcome));
    const now = packFiles(story.directory(owner, "slow"));
    assert.ok(!old.some((name) => now.includes(name)), "the packs it was made from are gone");
    const whole = await buffer(answer);
    assert.equal(whole.toString("latin1", 0, 8), "0008NAK\n");
    const clone = await story.workingCopy();
    await writeFile(join(clone.folder, "got.pack"), whole.subarray(8));
    await clone.must("index-pack", "--strict", "got.pack");
  } finally {
    await story.end();
  }
});

const rounds = Number(process.env.HOUSEKEEPING_KILLS ?? (isEveryFault ? 5 : 1));

it(`kill -9 of everything in the middle leaves a good repository, ${rounds} times`, { timeout: 900_000 }, async () => {
  const folder = await newFolder();
  const owner = new Person();
  const settings = { NGIT_GIT_REPACK_AFTER_PACKS: "2" };
  let server: ChildServer | undefined;
  const seed = randomBytes(4).readUInt32BE();
  let state = seed;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
  try {
    server = await startChild({ backend: "lmdb", folder, settings });
    let story = await Story.on(server);
    await story.announce(owner, "killed");
    const work = await story.workingCopy();
    let tip = "";
    for (let round = 0; round < rounds; round++) {
      const directory = story.directory(owner, "killed");
      // git at work in it: a repack and its children. It may be over before anybody looks: then there is more to repack.
      const isAtWork = (): boolean => processesIn(folder).some((pid) => commandOf(pid).includes("repack"));
      const isOver = (): boolean => hasBitmap(directory) && packsIn(directory) <= 3;
      let wasSeen = false;
      for (let attempt = 0; !wasSeen; attempt++) {
        assert.ok(attempt < 50, `seed ${seed}: no repack was seen`);
        for (let index = 0; index < 3; index++) {
          const name = `${round} ${attempt} ${index}`;
          await writeFile(join(work.folder, `data ${name}`), randomBytes(400_000));
          tip = await work.commit(name);
          await story.accepted(stateEvent(owner, "killed", { "refs/heads/main": tip }));
          await work.must("push", "-q", `http://${server.domain}/${owner.npub}/killed.git`, "main");
        }
        const wasSoon = await until(() => {
          wasSeen = isAtWork();
          return wasSeen || isOver();
        }, patienceMs);
        assert.ok(wasSoon, `seed ${seed}`);
      }
      await new Promise((resolve) => setTimeout(resolve, random(40)));
      for (const pid of [server.child.pid ?? 0, ...processesIn(folder)]) killNow(pid);
      await server.ended;
      server = await startChild({ backend: "lmdb", folder, settings });
      story = await Story.on(server);
      assert.equal((await story.advertised(owner, "killed"))["refs/heads/main"], tip, `seed ${seed}`);
      assert.ok(await until(() => hasBitmap(directory) && packsIn(directory) <= 3, patienceMs), `seed ${seed}`);
      assert.ok(await until(() => processesIn(folder).length === 0, patienceMs));
      await sound(directory);
    }
    await story.relay.close();
  } finally {
    await server?.stop();
    await removeFolder(folder);
  }
});

function killNow(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone already.
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/** Programs that were given a file of this folder: git, not the server, which gets it by its environment. */
const processesIn = (folder: string): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => commandOf(pid).includes(folder));
