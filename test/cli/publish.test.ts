// `holdfast init` and `holdfast publish` against a started server, as a person uses them: a folder, stock git, no script.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { WebSocketServer } from "ws";
import { Launcher } from "../../src/git/launcher.js";
import type { NostrEvent, Pubkey } from "../../src/nostr/event.js";
import { signEvent } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { keyIn } from "../../src/publish/key-file.js";
import { WorkTree } from "../../src/publish/work-tree.js";
import { runProgram } from "../harness/git-server.js";
import { HuntGitServer } from "../harness/hunt-git-server.js";
import { newFolder, removeFolder, startInProcess, type TestServer } from "../harness/server.js";
import { cleanEnvironment, type Ended, holdfast, program } from "./run.js";

describe("a first repository", { timeout: 300_000 }, () => {
  let server: TestServer;
  let home: string;
  const at = (name: string): string => join(home, name);
  before(async () => {
    server = await startInProcess();
    home = await newFolder();
  });
  after(async () => {
    await server?.end();
    await removeFolder(home);
  });

  const run = (...args: string[]): Promise<Ended> => holdfast(args, { HOME: home });
  const asJson = async (...args: string[]): Promise<Record<string, unknown>> => {
    const ended = await run(...args, "--json");
    assert.equal(ended.code, 0, ended.stdout + ended.stderr);
    return JSON.parse(ended.stdout) as Record<string, unknown>;
  };
  const git = async (...args: string[]): Promise<string> => {
    const identity = ["-c", "user.name=me", "-c", "user.email=me@example.com"];
    const { code, stdout, stderr } = await runProgram("git", [...identity, ...args], { cwd: home });
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  const commit = async (folder: string, text: string): Promise<string> => {
    writeFileSync(at(`${folder}/README.md`), text);
    await git("-C", folder, "commit", "-qam", text);
    return git("-C", folder, "rev-parse", "HEAD");
  };

  test("is one command: a key, an announcement, a state and a push; the addresses it prints can be cloned and opened", async () => {
    const ended = await run("init", at("hello"), "--server", server.domain);
    assert.equal(ended.code, 0, ended.stdout + ended.stderr);
    assert.match(ended.stdout, /^key +.*nostr\.key \(made now: keep it, it is you\)$/m);
    const url = /^page +(\S+)$/m.exec(ended.stdout)?.[1] ?? "";
    assert.equal(await git("-C", "hello", "remote", "get-url", "origin"), url);
    await git("clone", "-q", url, "again");
    assert.equal(await git("-C", "again", "rev-parse", "main"), await git("-C", "hello", "rev-parse", "main"));
    const page = await fetch(url);
    assert.equal(page.status, 200);
    const key = at(".config/holdfast/nostr.key");
    assert.equal(statSync(key).mode & 0o777, 0o600);
    assert.match(readFileSync(key, "utf8"), /^nsec1[0-9a-z]+\n$/);
  });

  test("what it makes has the modes of the person's own umask, as if git had made it; the key stays closed", async () => {
    for (const [umask, folder, file] of [
      ["022", 0o755, 0o644],
      ["027", 0o750, 0o640],
    ] as const) {
      const name = `open-${umask}`;
      const ended = await runProgram(
        "sh",
        [
          ...["-c", `umask ${umask}; exec "$@"`, "sh", process.execPath, program],
          ...["init", at(name), "--server", server.domain, "--key", at(`${name}.key`)],
        ],
        { env: cleanEnvironment({ HOME: home }) },
      );
      assert.equal(ended.code, 0, ended.stderr);
      const modes = [name, `${name}/README.md`, `${name}/.git`, `${name}/.git/config`, `${name}.key`];
      assert.deepEqual(
        modes.map((path) => statSync(at(path)).mode & 0o777),
        [folder, file, folder, file, 0o600],
      );
    }
  });

  test("a remote whose address cannot be decoded is none on a GRASP server", async () => {
    await git("clone", "-q", at("hello"), "undecodable");
    const origin = await git("-C", "hello", "remote", "get-url", "origin");
    await git("-C", "undecodable", "remote", "set-url", "origin", origin.replace(/[^/]+\.git$/, "100%.git"));
    const none = await run("publish", at("undecodable"));
    assert.match(none.stderr, /^holdfast: .* has no remote on a GRASP server: `holdfast init` makes one\n$/);
    assert.equal(none.code, 1);
    await git("-C", "undecodable", "remote", "add", "holdfast", origin);
    assert.equal((await asJson("publish", at("undecodable"))).url, origin);
  });

  test("the key that is there is taken and never written; one that is none is refused", async () => {
    const before = readFileSync(at(".config/holdfast/nostr.key"), "utf8");
    const answer = await asJson("init", at("second"), "--server", server.domain, "--name", "The second");
    assert.equal(readFileSync(at(".config/holdfast/nostr.key"), "utf8"), before);
    assert.equal((answer.key as { isNew: boolean }).isNew, false);
    writeFileSync(at("broken.key"), "nsec1oops");
    const refused = await run("init", at("third"), "--server", server.domain, "--key", at("broken.key"));
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /broken\.key holds no nsec/);
    assert.equal(readFileSync(at("broken.key"), "utf8"), "nsec1oops");
  });

  test("publish moves the branch; a second call finds nothing to do; --all takes every branch and tag along", async () => {
    const moved = await commit("hello", "More");
    const first = await asJson("publish", at("hello"));
    assert.deepEqual(
      [first.stated, first.pushed, first.refs],
      [true, ["refs/heads/main"], { "refs/heads/main": moved }],
    );
    const url = String(first.url);
    assert.ok((await git("ls-remote", url)).includes(`${moved}\trefs/heads/main`));
    const nothing = await asJson("publish", at("hello"));
    assert.deepEqual([nothing.announced, nothing.stated, nothing.pushed], [false, false, []]);
    await git("-C", "hello", "branch", "side");
    await git("-C", "hello", "tag", "v1");
    const all = await asJson("publish", at("hello"), "--all");
    assert.deepEqual(Object.keys(all.refs as object).sort(), ["refs/heads/main", "refs/heads/side", "refs/tags/v1"]);
    const there = await git("ls-remote", url);
    assert.match(there, /refs\/tags\/v1$/m);
    // A clone that lacks a branch does not delete it.
    await git("-C", "hello", "branch", "-D", "side");
    await commit("hello", "Again");
    await asJson("publish", at("hello"));
    assert.match(await git("ls-remote", url), /refs\/heads\/side$/m);
  });

  test("a push tells how far git is, and one that fails says why in git's words", async () => {
    await git("init", "-q", "--bare", "bare.git");
    const launcher = new Launcher();
    try {
      const tree = new WorkTree(launcher, at("hello"), { HOME: home, PATH: process.env.PATH ?? "" });
      const told: string[] = [];
      const push = (folder: string): Promise<void> =>
        tree.push({ url: at(folder), authorization: () => undefined }, ["refs/heads/main"], {
          force: false,
          progress: (done, total, label) => void told.push(`${label} ${done === total ? "all" : "some"}`),
        });
      await push("bare.git");
      assert.ok(told.includes("writing objects all"), told.join(", "));
      assert.equal(await git("-C", "bare.git", "rev-parse", "main"), await git("-C", "hello", "rev-parse", "main"));
      const failed = push("none.git");
      await assert.rejects(
        failed,
        /^PublishRefusal: git push failed in .*hello: fatal: '.*none\.git' does not appear to be/,
      );
    } finally {
      await launcher.close();
    }
  });

  test("commits on the server that are not here are not lost by accident", async () => {
    const url = await git("-C", "hello", "remote", "get-url", "origin");
    const there = await git("-C", "hello", "rev-parse", "main");
    await git("-C", "hello", "reset", "-q", "--hard", "HEAD~1");
    await commit("hello", "Another way");
    const refused = await run("publish", at("hello"));
    assert.equal(refused.code, 1);
    assert.match(
      refused.stderr,
      /^holdfast: refs\/heads\/main has commits on the server that are not here: `git pull`/,
    );
    assert.ok((await git("ls-remote", url)).includes(`${there}\trefs/heads/main`));
    const forced = await asJson("publish", at("hello"), "--force");
    assert.deepEqual(forced.pushed, ["refs/heads/main"]);
  });

  test("what another maintainer published stays when somebody publishes from a folder that lacks it", async () => {
    const { url } = await asJson("init", at("common"), "--server", server.domain);
    const own = keyIn(at(".config/holdfast/nostr.key"), randomBytes);
    const other = keyIn(at("other.key"), randomBytes);
    assert.ok(own.ok && other.ok);
    const identifier = String(url).replace(/^.*\/(.*)\.git$/, "$1");
    const client = await server.connect();
    const asked = await client.ask("mine", { kinds: [30617], authors: [own.key.pubkey], "#d": [identifier] });
    const [first] = asked.events as NostrEvent[];
    assert.ok(first);
    const tags = [...first.tags, ["maintainers", other.key.pubkey]];
    const again = { kind: 30617, created_at: first.created_at + 1, tags, content: "" };
    assert.equal((await client.publish(signEvent(own.key, again, randomBytes)))[2], true);
    client.close();

    await git("clone", "-q", String(url), "theirs");
    const moved = await commit("theirs", "Theirs");
    await asJson("publish", at("theirs"), "--key", at("other.key"));
    await git("-C", "theirs", "checkout", "-q", "-b", "side");
    await commit("theirs", "Beside");
    await asJson("publish", at("theirs"), "--key", at("other.key"));
    await git("-C", "common", "checkout", "-q", "-b", "mine");
    const mine = await commit("common", "Mine");
    await asJson("publish", at("common"));
    const there = await git("ls-remote", String(url));
    assert.match(there, /refs\/heads\/side$/m);
    assert.ok(there.includes(`${moved}\trefs/heads/main`), there);
    assert.ok(there.includes(`${mine}\trefs/heads/mine`), there);
  });

  test("a folder with files that is no repository is left alone, and so is one without a remote here", async () => {
    mkdirSync(at("files"));
    writeFileSync(at("files/secret.txt"), "");
    const files = await run("init", at("files"), "--server", server.domain);
    assert.equal(files.code, 1);
    assert.match(files.stderr, /holds files and is no repository yet: run `git init`/);
    await git("init", "-q", "plain");
    const plain = await run("publish", at("plain"));
    assert.match(plain.stderr, /has no remote on a GRASP server: `holdfast init` makes one/);
    const empty = await run("init", at("plain"), "--server", server.domain);
    assert.match(empty.stderr, /has no commit on a branch that is checked out: commit something first/);
    assert.deepEqual([plain.code, empty.code], [1, 1]);
  });

  test("a server that is not there, or refuses, is named with its reason", async () => {
    const nowhere = await run("init", at("hello"), "--server", "127.0.0.1:1");
    assert.equal(nowhere.code, 1);
    assert.match(nowhere.stderr, /^holdfast: ws:\/\/127\.0\.0\.1:1 cannot be reached: [^\n]+\n$/);
    const wrong = await run("init", at("hello"), "--server", "ssh://x");
    assert.equal(wrong.code, 2);
    // The server goes by another name than the address it was reached at: its announcement would not be its own.
    const isByName = server.domain.startsWith("localhost");
    const name = isByName
      ? server.domain.replace("localhost", "127.0.0.1")
      : server.domain.replace(/^[^:]+/, "localhost");
    const other = await run("init", at("by another name"), "--server", name);
    assert.equal(other.code, 1);
    assert.match(other.stderr, /^holdfast: ws:\/\/\S+ refuses the announcement: [^\n]+\n$/);
  });

  test("a server of another make will do: any relay with a git server at the same address", async () => {
    const foreign = await HuntGitServer.start("localhost");
    const events: Record<string, unknown>[] = [];
    const relay = new WebSocketServer({ server: foreign.server });
    relay.on("connection", (socket) =>
      socket.on("message", (data) => {
        const [verb, first, filter] = JSON.parse(String(data)) as [string, unknown, { kinds: number[] }];
        if (verb === "EVENT") {
          const event = first as { id: string; kind: number; pubkey: Pubkey };
          events.unshift({ ...event });
          // It makes the repository a little later than it answers.
          if (event.kind === 30617) void foreign.takePushes(`${npubOf(event.pubkey)}/elsewhere`);
          socket.send(JSON.stringify(["OK", event.id, true, ""]));
        } else if (verb === "REQ") {
          const wanted = events.filter(({ kind }) => filter.kinds.includes(Number(kind)));
          for (const event of wanted) socket.send(JSON.stringify(["EVENT", first, event]));
          socket.send(JSON.stringify(["EOSE", first]));
        }
      }),
    );
    try {
      const name = `localhost:${foreign.port}`;
      const first = await asJson("init", at("elsewhere"), "--server", name);
      assert.deepEqual([first.announced, first.stated, first.pushed], [true, true, ["refs/heads/main"]]);
      const moved = await commit("elsewhere", "More");
      const second = await asJson("publish", at("elsewhere"));
      assert.deepEqual([second.announced, second.stated, second.pushed], [false, true, ["refs/heads/main"]]);
      assert.match(await git("ls-remote", String(first.url)), new RegExp(`^${moved}\trefs/heads/main$`, "m"));
      assert.deepEqual(
        events.map(({ kind }) => kind),
        [30618, 30618, 30617],
      );
    } finally {
      for (const socket of relay.clients) socket.terminate();
      await foreign.close();
    }
  });
});
