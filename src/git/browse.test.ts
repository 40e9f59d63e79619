import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { systemClock } from "../base/clock.js";
import type { Pubkey } from "../nostr/event.js";
import type { Oid, RefName } from "../nostr/nip34.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import { asNpub, type Npub, RepositoryAddress } from "./address.js";
import { Browser } from "./browse.js";
import { Launcher } from "./launcher.js";
import { Repositories } from "./repositories.js";
import type { GitRepository } from "./repository.js";
import { Git } from "./run.js";

const owner = "0".repeat(63).concat("1") as Pubkey;
const npub = asNpub(`npub1${"q".repeat(58)}`) as Npub;
const never = new AbortController().signal;

describe("what a repository's page shows of its content", { timeout: 30_000 }, () => {
  let folder: string;
  let launcher: Launcher;
  let repositories: Repositories;
  let repository: GitRepository;
  let started = 0;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "holdfast-browse-"));
    launcher = new Launcher();
    const git = await Git.find(launcher, { onStart: () => started++ });
    repositories = new Repositories({
      gitDataPath: folder,
      git,
      clock: systemClock,
      store: createMemoryStore({ clock: systemClock }),
    });
    repository = await repositories.create(RepositoryAddress.of(owner, npub, "x"));
  });
  after(async () => {
    await launcher.close();
    await rm(folder, { recursive: true, force: true });
  });

  function plumb(input: string | Buffer, ...args: string[]): string {
    const env = {
      PATH: process.env.PATH,
      GIT_AUTHOR_NAME: "A\x1fb",
      GIT_AUTHOR_EMAIL: "a@x",
      GIT_COMMITTER_NAME: "A",
      GIT_COMMITTER_EMAIL: "a@x",
    };
    const { stdout, status, stderr } = spawnSync("git", [`--git-dir=${repository.directory}`, ...args], { input, env });
    assert.equal(status, 0, String(stderr));
    return stdout.toString().trim();
  }

  function commit(files: Record<string, string | Buffer>, message: string, ...parents: string[]): Oid {
    const entries = Object.entries(files).map(
      ([name, text]) => `100644 blob ${plumb(text, "hash-object", "-w", "--stdin")}\t${name}`,
    );
    const tree = plumb(`${entries.join("\n")}\n`, "mktree");
    return plumb(message, "commit-tree", tree, ...parents.flatMap((parent) => ["-p", parent])) as Oid;
  }

  async function look(browser: Browser, oid: Oid) {
    const result = await browser.view(repository, oid, "192.0.2.1", never);
    assert.ok(result.ok);
    return result.view;
  }

  test("the README, the newest ten commits and how many there are", async () => {
    let tip: Oid | undefined;
    for (let index = 1; index <= 12; index++) {
      tip = commit({ "README.md": "# Hello\n", README: "no" }, `Change ${index}\n\nbody`, ...(tip ? [tip] : []));
    }
    const view = await look(new Browser(), tip as Oid);
    assert.deepEqual(view.readme, { name: "README.md", text: "# Hello\n", isMarkdown: true, isCut: false });
    assert.equal(view.commitCount, 12);
    assert.equal(view.commits.length, 10);
    assert.deepEqual([view.commits[0]?.subject, view.commits[9]?.subject], ["Change 12", "Change 3"]);
    assert.equal(view.commits[0]?.oid, tip);
    assert.match(view.commits[0]?.author ?? "", /^A.b$/);
  });

  test("a second look at the same commit starts nothing", async () => {
    const browser = new Browser();
    const oid = commit({ a: "1" }, "once");
    assert.equal(browser.knows(repository, oid), false);
    await look(browser, oid);
    const before = started;
    assert.equal(browser.knows(repository, oid), true);
    await look(browser, oid);
    assert.equal(started, before);
  });

  test("only so many commits are remembered", async () => {
    const browser = new Browser(2);
    const oids = ["1", "2", "3"].map((text) => commit({ a: text }, text));
    for (const oid of oids) await look(browser, oid);
    assert.deepEqual(
      oids.map((oid) => browser.knows(repository, oid)),
      [false, true, true],
    );
  });

  test("a long README is cut, a huge or binary one not shown, a plain one is not Markdown", async () => {
    const browser = new Browser();
    const long = await look(browser, commit({ "README.md": "é".repeat(200_000) }, "long"));
    assert.equal(long.readme?.isCut, true);
    assert.ok((long.readme?.text.length ?? 0) <= 64 * 1024);
    assert.doesNotMatch(long.readme?.text ?? "", /\ufffd/);
    const huge = await look(browser, commit({ "README.md": Buffer.alloc(5_000_000, 97) }, "huge"));
    assert.equal(huge.readme, undefined);
    const binary = await look(browser, commit({ "README.md": Buffer.from([1, 0, 2]) }, "binary"));
    assert.equal(binary.readme, undefined);
    const plain = await look(browser, commit({ README: "plain\n" }, "plain"));
    assert.deepEqual([plain.readme?.name, plain.readme?.isMarkdown], ["README", false]);
  });

  test("a commit with an endless subject and control signs in its author's name is still one line", async () => {
    const view = await look(new Browser(), commit({ a: "1" }, "s".repeat(500_000)));
    assert.equal(view.commits.length, 1);
    assert.ok((view.commits[0]?.subject.length ?? 0) <= 200);
  });

  test("a branch at something that is no commit, or is not here, has nothing to show", async () => {
    const blob = plumb("text", "hash-object", "-w", "--stdin") as Oid;
    for (const oid of [blob, "1".repeat(40) as Oid]) {
      assert.deepEqual(await look(new Browser(), oid), { readme: undefined, commits: [], commitCount: 0 });
    }
    await assert.rejects(new Browser().view(repository, "--help" as Oid, "192.0.2.1", never), /not an object id/);
    assert.equal((await repository.refs()).refs.get("refs/heads/main" as RefName), undefined);
  });
});
