// Repositories whose objects are named by SHA-256, with stock git: made anew for their first state, pushed, cloned, given pull
// requests, copied between maintainers, followed by another server, checked, backed up and imported.

import assert from "node:assert/strict";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { repositoryConfigs } from "../../src/git/repository-files.js";
import { holdfast } from "../cli/run.js";
import { runProgram } from "../harness/git-server.js";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { rawPush, zeroId } from "../harness/grasp-raw-push.js";
import { Story, stateEvent, type WorkingCopy } from "../harness/grasp-story.js";
import { download, largeFileOf, upload } from "../harness/lfs-client.js";
import { signedHeader } from "../harness/private-service.js";
import { ask, pkt, pktLines } from "../harness/raw-http.js";
import { newFolder, startInProcess, type TestServer, until } from "../harness/server.js";
import { beginPair, beginPrs, type Pair, prsUrl, pullRequest, push, refOf } from "./prs-world.js";

const patienceMs = 120_000;
const zeros = "0".repeat(64);

const configOf = (story: Story, person: Person, identifier: string): string =>
  readFileSync(join(story.directory(person, identifier), "config"), "utf8");

/** The first line of what `info/refs` says, without the service's own. */
async function firstLine(url: string, service: string, version: number): Promise<string> {
  const answer = await ask(`${url}/info/refs?service=${service}`, {
    headers: { "Git-Protocol": `version=${version}` },
  });
  return (
    pktLines(answer.body).filter((line) => !line.startsWith("# service=") && !line.startsWith("version "))[0] ?? ""
  );
}

/** A repository with one SHA-256 commit on main, announced, stated and pushed. */
async function hosted(
  story: Story,
  person: Person,
  identifier: string,
  more: readonly (readonly string[])[] = [],
): Promise<{ readonly work: WorkingCopy; readonly tip: string; readonly url: string; readonly state: SignedEvent }> {
  await story.announce(person, identifier, more);
  const work = await story.workingCopy("sha256");
  const tip = await work.commit(`one of ${identifier}`);
  const state = await story.state(person, identifier, { "refs/heads/main": tip });
  const url = story.url(person, identifier);
  await work.must("push", "-q", url, "main");
  return { work, tip, url, state };
}

async function formatOfClone(story: Story, url: string, tip: string): Promise<string> {
  const copy = await story.workingCopy();
  await copy.must("clone", "-q", url, "copy");
  assert.equal(await copy.must("-C", "copy", "rev-parse", "HEAD"), tip);
  await copy.must("-C", "copy", "fsck", "--strict");
  return await copy.must("-C", "copy", "rev-parse", "--show-object-format");
}

describe("a SHA-256 repository", () => {
  let story: Story;
  before(async () => {
    story = await beginPrs();
  });
  after(() => story.end());

  it("is made anew for its first state, advertises itself as such while it is empty, is pushed and cloned", async () => {
    const alice = new Person();
    const announcement = await story.announce(alice, "new");
    const url = story.url(alice, "new");
    assert.doesNotMatch(
      configOf(story, alice, "new"),
      /objectformat/,
      "an announcement alone makes a SHA-1 repository",
    );
    // What was pushed for an event that nobody knows does not fix the format.
    const stranger = await story.workingCopy();
    await stranger.commit("a pull request before its event");
    const early = `refs/nostr/${"5".repeat(64)}`;
    await stranger.must("push", "-q", url, `HEAD:${early}`);

    const work = await story.workingCopy();
    await work.must("init", "-q", "--object-format=sha256", "-b", "main", "work");
    const inside = (...args: string[]): Promise<string> => work.must("-C", "work", ...args);
    await inside("commit", "-q", "--allow-empty", "-m", "one");
    const tip = await inside("rev-parse", "HEAD");
    assert.equal(tip.length, 64);
    const state = await story.state(alice, "new", { "refs/heads/main": tip });
    assert.match(configOf(story, alice, "new"), /objectformat = sha256/);
    for (const [service, version] of [
      ["git-upload-pack", 0],
      ["git-upload-pack", 1],
      ["git-receive-pack", 0],
    ] as const) {
      const line = await firstLine(url, service, version);
      assert.ok(line.startsWith(`${zeros} capabilities^{}\0`), line);
      assert.match(line, / object-format=sha256(?: |$)/);
      assert.doesNotMatch(line, /object-format=sha1/);
    }
    const v2 = await ask(`${url}/info/refs?service=git-upload-pack`, { headers: { "Git-Protocol": "version=2" } });
    assert.ok(pktLines(v2.body).includes("object-format=sha256"));

    const pushed = await work.git("-C", "work", "push", url, "main");
    assert.equal(pushed.code, 0, pushed.stderr);
    assert.match(pushed.stderr, /remote: the repository is served from now on/);
    assert.ok((await story.isServed(announcement)) && (await story.isServed(state)));
    assert.deepEqual(await story.advertised(alice, "new", "sha256"), { HEAD: tip, "refs/heads/main": tip });
    for (const version of [0, 1, 2]) {
      const copy = `copy${version}`;
      await work.must("-c", `protocol.version=${version}`, "clone", "-q", url, copy);
      assert.equal(await work.must("-C", copy, "rev-parse", "--show-object-format", "HEAD"), `sha256\n${tip}`);
    }
    const page = await (await fetch(url)).text();
    assert.match(page, /SHA-256/);
    assert.match(page, new RegExp(tip.slice(0, 8)));
  });

  it("takes a further push, an annotated tag, a deletion and a shallow clone", async () => {
    const alice = new Person();
    const { work, tip, url } = await hosted(story, alice, "further");
    const two = await work.commit("two");
    await work.must("tag", "-a", "v1", "-m", "one");
    const tag = await work.must("rev-parse", "refs/tags/v1");
    await story.state(alice, "further", { "refs/heads/main": two, "refs/heads/old": tip, "refs/tags/v1": tag });
    await work.must("push", "-q", url, "main", `${tip}:refs/heads/old`, "v1");
    assert.deepEqual(await story.advertised(alice, "further", "sha256"), {
      HEAD: two,
      "refs/heads/main": two,
      "refs/heads/old": tip,
      "refs/tags/v1": tag,
      "refs/tags/v1^{}": two,
    });
    await story.state(alice, "further", { "refs/heads/main": two });
    assert.deepEqual(await story.advertised(alice, "further", "sha256"), { HEAD: two, "refs/heads/main": two });
    await work.must("clone", "-q", "--depth=1", url, "shallow");
    assert.equal(await work.must("-C", "shallow", "rev-list", "--count", "HEAD"), "1");
  });

  it("follows its newest waiting state back to SHA-1 while nothing was ever pushed", async () => {
    const alice = new Person();
    await story.announce(alice, "undecided");
    await story.state(alice, "undecided", { "refs/heads/main": "a".repeat(64) });
    assert.match(configOf(story, alice, "undecided"), /objectformat = sha256/);
    const work = await story.workingCopy();
    const tip = await work.commit("one");
    await story.state(alice, "undecided", { "refs/heads/main": tip });
    assert.doesNotMatch(configOf(story, alice, "undecided"), /objectformat/);
    await work.must("push", "-q", story.url(alice, "undecided"), "main");
    assert.deepEqual(await story.advertised(alice, "undecided"), { HEAD: tip, "refs/heads/main": tip });
  });

  it("refuses states that mix formats or name the other one, by name", async () => {
    const alice = new Person();
    await story.announce(alice, "mixed");
    const mixed = stateEvent(alice, "mixed", { "refs/heads/a": "a".repeat(40), "refs/heads/b": "b".repeat(64) });
    assert.match((await story.publish(mixed)).message, /^invalid: the state mixes SHA-1 and SHA-256 object ids/);
    await hosted(story, alice, "long");
    const short = stateEvent(alice, "long", { "refs/heads/main": "a".repeat(40) });
    assert.match((await story.publish(short)).message, /^invalid: the state names objects by SHA-1, .* SHA-256 ones/);
    await story.hosted(alice, "short");
    const long = stateEvent(alice, "short", { "refs/heads/main": "a".repeat(64) });
    assert.match((await story.publish(long)).message, /^invalid: the state names objects by SHA-256, .* SHA-1 ones/);
  });

  it("tells clients that send the other format which is which, and keeps nothing of it", async () => {
    const alice = new Person();
    const { tip, url } = await hosted(story, alice, "told");
    const sentence = /this repository names its objects by SHA-256, the (?:push|request) by SHA-1/;
    const command = { old: zeroId, new: "a".repeat(40), ref: "refs/heads/main" };
    const raw = await rawPush(url, { commands: [command], capabilities: "report-status side-band-64k" });
    assert.match(raw.text, sentence);
    assert.match(raw.text, /ng refs\/heads\/main/);
    const asked = async (version: number, ...lines: (string | Buffer)[]): Promise<string> => {
      const body = Buffer.concat(lines.map((line) => (typeof line === "string" ? pkt(line) : line)));
      const headers = { "Git-Protocol": `version=${version}`, "Content-Type": "application/x-git-upload-pack-request" };
      return (await ask(`${url}/git-upload-pack`, { headers, body })).text;
    };
    const [flush, delimiter] = [Buffer.from("0000"), Buffer.from("0001")];
    assert.match(await asked(2, "command=ls-refs\n", flush), sentence);
    assert.match(await asked(2, "command=fetch\n", delimiter, `want ${"a".repeat(40)}\n`, "done\n", flush), sentence);
    assert.match(await asked(0, `want ${"a".repeat(40)}\n`, flush, "done\n"), sentence);
    const mixed = { old: zeros, new: "b".repeat(64), ref: "refs/heads/b" };
    const both = await rawPush(url, { commands: [command, mixed], capabilities: "report-status" });
    assert.match(both.text, /all object ids of a push must have the same length/);
    // Stock git refuses by itself, from the advertisement.
    const other = await story.workingCopy();
    await other.commit("one");
    const refused = await other.git("push", url, "HEAD:refs/heads/main");
    assert.notEqual(refused.code, 0);
    assert.deepEqual(await story.advertised(alice, "told", "sha256"), { HEAD: tip, "refs/heads/main": tip });
  });

  it("takes pull requests, before and after their event, and under /prs/ in the format of what they are for", async () => {
    const alice = new Person();
    const bob = new Person();
    const { work, url } = await hosted(story, alice, "offered");
    const known = await work.commit("known first");
    const first = await story.accepted(pullRequest(story, bob, alice, "offered", known, { clone: url }));
    await work.must("push", "-q", url, `HEAD:${refOf(first)}`);
    assert.ok(await story.isServed(first));
    const later = await work.commit("pushed first");
    const second = pullRequest(story, bob, alice, "offered", later, { clone: url });
    await work.must("push", "-q", url, `HEAD:${refOf(second)}`);
    await story.accepted(second);
    assert.ok(await story.isServed(second));
    assert.equal((await story.advertised(alice, "offered", "sha256"))[refOf(second)], later);

    const empty = await firstLine(prsUrl(story, bob, "offered"), "git-receive-pack", 0);
    assert.ok(empty.startsWith(`${zeros} capabilities^{}`), empty);
    const elsewhere = await firstLine(prsUrl(story, bob, "nobody-has-it"), "git-receive-pack", 0);
    assert.ok(elsewhere.startsWith(`${zeroId} capabilities^{}`), elsewhere);
    const third = await work.commit("from a contributor's own place");
    const contributed = pullRequest(story, bob, alice, "offered", third);
    assert.equal((await push(work, prsUrl(story, bob, "offered"), contributed)).code, 0);
    await work.must("fetch", "-q", prsUrl(story, bob, "offered"), refOf(contributed));
    await story.accepted(contributed);
    assert.ok(await story.isServed(contributed));
    assert.equal((await story.advertised(alice, "offered", "sha256"))[refOf(contributed)], third);
  });

  it("is copied to a maintainer's repository of the same format, never to one of the other", async () => {
    const [alice, bob, carol] = [new Person(), new Person(), new Person()];
    const carols = await story.hosted(carol, "shared");
    const { work, url } = await hosted(story, alice, "shared");
    const others = [["maintainers", alice.pubkey, bob.pubkey, carol.pubkey]];
    for (const person of [carol, alice]) await story.announce(person, "shared", others);
    const tip = await work.commit("two");
    await story.state(alice, "shared", { "refs/heads/main": tip });
    await work.must("push", "-q", url, "main");
    await story.announce(bob, "shared", others);
    assert.deepEqual(await story.advertised(bob, "shared", "sha256"), { HEAD: tip, "refs/heads/main": tip });
    assert.equal((await story.advertised(carol, "shared"))["refs/heads/main"], carols.tip);
    assert.equal(await formatOfClone(story, story.url(bob, "shared"), tip), "sha256");
  });
});

describe("a SHA-256 repository on two servers", { timeout: 600_000 }, () => {
  let pair: Pair;
  let first: Story;
  let second: Story;
  before(async () => {
    pair = await beginPair();
    ({ first, second } = pair);
  });
  after(() => pair.end());

  const settingsOn = (folder: string, { domain }: TestServer): Record<string, string> => ({
    NGIT_DOMAIN: domain,
    NGIT_GIT_DATA_PATH: join(folder, "git"),
    NGIT_RELAY_DATA_PATH: join(folder, "relay"),
  });
  const verb = async (folder: string, ...args: string[]): Promise<string> => {
    const ended = await holdfast(args, settingsOn(folder, first.server));
    assert.equal(ended.code, 0, ended.stdout + ended.stderr);
    return ended.stdout;
  };

  it("is followed, with its further pushes and pull requests; then checked, tidied, backed up, restored and imported", async () => {
    const owner = new Person();
    const contributor = new Person();
    const announcement = await first.accepted(
      owner.sign(30617, [
        ["d", "both"],
        ["clone", first.url(owner, "both"), second.url(owner, "both")],
        ["relays", `ws://${first.server.domain}`, `ws://${second.server.domain}`],
      ]),
    );
    const work = await first.workingCopy("sha256");
    const one = await work.commit("one");
    await first.state(owner, "both", { "refs/heads/main": one });
    await work.must("push", "-q", first.url(owner, "both"), "main");
    assert.ok(await until(() => second.isServed(announcement), patienceMs), "the second server serves it");
    assert.equal((await second.advertised(owner, "both", "sha256"))["refs/heads/main"], one);
    assert.equal(await formatOfClone(second, second.url(owner, "both"), one), "sha256");

    const two = await work.commit("two");
    const further = await first.state(owner, "both", { "refs/heads/main": two });
    await work.must("push", "-q", first.url(owner, "both"), "main");
    const offered = await work.commit("offered");
    const request = pullRequest(first, contributor, owner, "both", offered, { clone: first.url(owner, "both") });
    await first.accepted(request);
    await work.must("push", "-q", first.url(owner, "both"), `HEAD:${refOf(request)}`);
    assert.ok(await until(() => second.isServed(further), patienceMs), "the further push arrives");
    assert.ok(await until(() => second.isServed(request), patienceMs), "the pull request arrives");
    assert.equal((await second.advertised(owner, "both", "sha256"))[refOf(request)], offered);

    const { folder } = first.server;
    const name = `${owner.npub}/both`;
    assert.match(await verb(folder, "repos", "show", name), /format +SHA-256/);
    assert.match(await verb(folder, "repos", "gc", name), /1 repository repacked/);
    assert.match(await verb(folder, "repos", "fsck"), /0 unsound/);
    assert.equal(await formatOfClone(first, first.url(owner, "both"), two), "sha256");
    const backup = join(await fresh(), "backup");
    await verb(folder, "backup", backup);
    const restored = await fresh();
    await verb(restored, "restore", backup);
    assert.match(await verb(restored, "repos", "fsck"), /0 unsound/);
    const ids = ["--git-dir", join(restored, "git", owner.npub, "both.git"), "rev-parse", "refs/heads/main"];
    assert.equal((await runProgram("git", ids)).stdout.trim(), two);

    const directory = join(await fresh(), "git");
    cpSync(first.server.gitPath, directory, { recursive: true });
    rmSync(join(directory, owner.npub, "both.git/holdfast-identifier"));
    const events = join(await fresh(), "events.jsonl");
    await verb(folder, "events", "export", "--output", events);
    const imported = await verb(await fresh(), "repos", "import", directory, "--events", events, "--json");
    const { repositories } = JSON.parse(imported) as { repositories: { repository: string; verdict: string }[] };
    assert.deepEqual(
      repositories.map(({ repository, verdict }) => `${repository} ${verdict}`),
      [`${name} ready`],
    );
  });

  const fresh = async (): Promise<string> => {
    const folder = await newFolder();
    pair.folders.push(folder);
    return folder;
  };
});

it("a repository that a crash left half made anew is made anew at the next start, and keeps its large files", {
  timeout: 300_000,
}, async () => {
  const begun = await Story.begin({ backend: "lmdb" });
  const alice = new Person();
  const { folder, port } = begun.server;
  const url = begun.url(alice, "crashed");
  await begun.announce(alice, "crashed");
  const large = largeFileOf("brought before its push");
  assert.deepEqual(await upload(url, [large], signedHeader(alice, url)), [200]);
  const work = await begun.workingCopy("sha256");
  const tip = await work.commit("one");
  await begun.state(alice, "crashed", { "refs/heads/main": tip });
  const directory = begun.directory(alice, "crashed");
  await begun.relay.close();
  await begun.server.stop();
  const settings = join(directory, "config");
  const emptied = (name: string): void => {
    for (const inside of readdirSync(join(directory, name))) rmSync(join(directory, name, inside), { recursive: true });
  };
  // What stood there at each moment at which the server may have been killed.
  const moments: readonly (readonly [string, () => void])[] = [
    ["before the first file went", () => mkdirSync(join(directory, "objects/ab"))],
    ["between the objects and the refs", () => emptied("objects")],
    ["before the settings", () => ["objects", "refs"].forEach(emptied)],
  ];
  for (const [moment, killed] of moments) {
    writeFileSync(settings, repositoryConfigs.sha1);
    killed();
    const server = await startInProcess({ backend: "lmdb", folder, port });
    try {
      assert.equal(readFileSync(settings, "utf8"), repositoryConfigs.sha256, moment);
      assert.deepEqual(readdirSync(join(directory, "objects")).sort(), ["info", "pack"], moment);
      assert.match(await firstLine(url, "git-receive-pack", 0), /object-format=sha256/, moment);
      assert.equal(await download(url, large), "brought before its push", moment);
    } finally {
      await server.stop();
    }
  }
  const server = await startInProcess({ backend: "lmdb", folder, port });
  const again = await Story.on(server);
  await work.must("push", "-q", url, "main");
  assert.equal(await formatOfClone(again, url, tip), "sha256");
  await again.end();
});
