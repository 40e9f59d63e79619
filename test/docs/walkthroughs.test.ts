// The README and the tutorial do what they say, against a started server. Only the address and the folder differ.

import assert from "node:assert/strict";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { holdfast, program } from "../cli/run.js";
import { runProgram } from "../harness/git-server.js";
import { newFolder, removeFolder, startInProcess, type TestServer } from "../harness/server.js";
import { walkthrough } from "./walkthrough.js";

interface Walked {
  readonly folder: string;
  readonly said: string;
  /** How many events of a kind are served that were not before. */
  served(kind: number): Promise<number>;
  git(...args: string[]): Promise<string>;
}

async function walk(server: TestServer, script: string): Promise<Walked> {
  const folder = await mkdtemp(join(server.folder, "reader-"));
  symlinkSync(join(process.cwd(), "node_modules"), join(folder, "node_modules"));
  const before = await idsServed(server, {});
  const input = script.replaceAll("localhost:7334", server.domain).replaceAll("/tmp/", `${folder}/`);
  // A reader has installed the command, and keeps keys in a home of their own.
  const command = `holdfast() { ${JSON.stringify(process.execPath)} ${JSON.stringify(program)} "$@"; }\nexport HOME=$PWD GIT_CONFIG_GLOBAL=$PWD/.gitconfig\n`;
  const identity = "git config --global user.name me\ngit config --global user.email me@example.com\n";
  const ended = await runProgram("bash", [], { cwd: folder, input: command + identity + input });
  assert.equal(ended.code, 0, ended.stdout + ended.stderr);
  return {
    folder,
    said: ended.stdout + ended.stderr,
    served: async (kind) => (await idsServed(server, { kinds: [kind] })).filter((id) => !before.includes(id)).length,
    async git(...args) {
      const result = await runProgram("git", args, { cwd: folder });
      assert.equal(result.code, 0, result.stderr);
      return result.stdout.trim();
    },
  };
}

async function idsServed(server: TestServer, filter: object): Promise<string[]> {
  const relay = await server.connect();
  const { events } = await relay.ask("q", filter);
  await relay.close();
  return events.map(({ id }) => String(id));
}

describe("as written", { timeout: 900_000 }, () => {
  let server: TestServer;
  before(async () => {
    // As an operator's, without the short intervals of tests.
    server = await startInProcess({ backend: "lmdb", settings: { NGIT_TEST: "0" } });
  });
  after(async () => {
    await server?.stop();
    await removeFolder(server.folder);
  });

  test("the README's first repository is announced, pushed and cloned", async () => {
    const { served, git } = await walk(server, walkthrough("README.md", "## First repository in five minutes"));
    assert.equal(await git("-C", "hello-again", "rev-parse", "main"), await git("-C", "hello", "rev-parse", "main~1"));
    await git("-C", "hello-again", "pull", "-q");
    assert.equal(await git("-C", "hello-again", "rev-parse", "main"), await git("-C", "hello", "rev-parse", "main"));
    assert.deepEqual([await served(30617), await served(30618)], [1, 1]);
  });

  test("the tutorial ends with a merged pull request, everything served", async () => {
    const { served, folder, git, said } = await walk(server, walkthrough("docs/tutorial/first-repository.md"));
    const url = readFileSync(join(folder, "playground/url"), "utf8").trim();
    const pullRequest = readFileSync(join(folder, "playground/pr"), "utf8").trim();
    const merged = await git("-C", "playground/work", "rev-parse", "main");
    const refs = await git("ls-remote", url);
    assert.ok(refs.includes(`${merged}\trefs/heads/main`), refs);
    assert.ok(refs.includes(`${merged}\trefs/nostr/${pullRequest}`), refs);
    // The commit of the pull request is there already: the state alone moves the branch.
    const pushes = [...said.matchAll(/^pushed +(.*)$/gm)].map(([, what]) => what);
    assert.deepEqual(pushes, ["main", "main", "nothing: the server had the commits of main"], said);
    assert.deepEqual(await Promise.all([30617, 30618, 1618, 1631].map(served)), [1, 1, 1, 1]);
    assert.equal((await fetch(url)).status, 200);
    const page = await fetch(`${url}/pulls/${pullRequest}`);
    assert.equal(page.status, 200);
    const text = await page.text();
    assert.match(text, /<!doctype html>/i);
    assert.match(text, /<h2[^>]*><bdi>Greet everybody<\/bdi><\/h2>\s*<p[^>]*><span class="tag good">merged</);
  });

  test("the README's other commands exist", async () => {
    const readme = readFileSync("README.md", "utf8");
    const commands = [...readme.matchAll(/`node bin\/holdfast ([\w ]+)`/g)].map(([, command = ""]) => command);
    assert.deepEqual(commands, ["config example", "doctor"]);
    for (const command of commands) {
      const ended = await holdfast([...command.split(" "), "--help"]);
      assert.equal(ended.code, 0, ended.stderr);
    }
    const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
    for (const [, script = ""] of readme.matchAll(/^npm (?:run )?(start|test|\w+:\w+)$/gm)) assert.ok(scripts[script]);
  });

  test("the settings of the tutorial for a first server, and of the proxy how-to, are accepted", async (t) => {
    const folder = await newFolder();
    t.after(() => removeFolder(folder));
    const proxy = /```sh\n((?:NGIT_\w+=.*\n)+)```/.exec(readFileSync("docs/how-to/run-behind-a-proxy.md", "utf8"))?.[1];
    const first = /holdfast\.conf <<'END'\n([\s\S]+?)END\n/.exec(
      readFileSync("docs/tutorial/first-server.md", "utf8"),
    )?.[1];
    for (const input of [proxy, first]) {
      assert.ok(input);
      const file = join(folder, "holdfast.conf");
      writeFileSync(file, input);
      const checked = await holdfast(["config", "check", "--config", file]);
      assert.equal(checked.code, 0, checked.stdout + checked.stderr);
    }
  });

  test("the README states the durability contract", () => {
    const readme = readFileSync("README.md", "utf8");
    for (const promise of [
      "`OK true` for an event and `ok refs/…` for a push are sent only after what they name is on disk",
      "`kill -9` at any moment loses nothing that was acknowledged",
      "A refused push leaves nothing behind",
      "A restart needs no manual step",
    ]) {
      assert.ok(readme.includes(promise), promise);
    }
  });
});
