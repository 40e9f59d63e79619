// Clients that are not stock git, faults in the middle of a push, and many clients at once.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import fs, { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import git from "isomorphic-git";
import http from "isomorphic-git/http/node";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import { RepositoryAddress } from "../../src/git/address.js";
import type { Oid, RefName } from "../../src/nostr/nip34.js";
import { GitServer, hexId, npub, owner } from "../harness/git-server.js";
import { until } from "../harness/server.js";

const author = { name: "A", email: "a@example.com" };

describe("clients", () => {
  let server: GitServer;
  const usual = defaultConfig({
    gitPackConcurrent: 1,
    gitPackConcurrentPerRepository: 1,
    gitPackConcurrentPerIp: 1,
    gitPackQueue: 2,
  });
  let config = usual;
  before(async () => {
    server = await GitServer.start({
      live: {
        get current() {
          return config;
        },
      },
    });
  });
  after(() => server.stop());

  it("isomorphic-git pushes, is refused with a reason, and clones", async () => {
    const url = await server.create("iso");
    const dir = server.folderFor("iso");
    await git.init({ fs, dir, defaultBranch: "main" });
    await fs.promises.writeFile(join(dir, "file"), "x");
    await git.add({ fs, dir, filepath: "file" });
    const oid = await git.commit({ fs, dir, message: "one", author });
    await assert.rejects(git.push({ fs, http, dir, url, ref: "main", remoteRef: "main" }), (error) => {
      const text = JSON.stringify(error) + String(error);
      return /no state by a maintainer lists refs\/heads\/main/.test(text);
    });
    server.state({ "refs/heads/main": oid, "refs/heads/not-pushed": "1".repeat(40) });
    const result = await git.push({ fs, http, dir, url, ref: "main", remoteRef: "main" });
    assert.equal(result.ok, true);
    await server.repositories.open(server.addressOf("iso")).updateRefs([], "refs/heads/main" as RefName);
    const copy = server.folderFor("iso-clone");
    await git.clone({ fs, http, dir: copy, url, ref: "main" });
    assert.equal(await git.resolveRef({ fs, dir: copy, ref: "HEAD" }), oid);
    await git.push({ fs, http, dir, url, ref: "main", remoteRef: "main" });
  });

  it("equal clones at once run git once, and all get everything", async () => {
    const url = await server.create("shared");
    const work = await server.workingCopy("shared");
    const tip = await server.commit(work, "big", randomBytes(3 << 20));
    server.candidates = [];
    server.state({ "refs/heads/main": tip });
    await server.mustGit(work, "push", "-q", url, "main");
    await server.repositories.open(server.addressOf("shared")).updateRefs([], "refs/heads/main" as RefName);
    const targets = Array.from({ length: 6 }, (_, i) => server.folderFor(`shared${i}`));
    const results = await Promise.all(targets.map((target) => server.git(server.folder, "clone", "-q", url, target)));
    // One runs, two may queue: six can only succeed by sharing.
    for (const [index, result] of results.entries()) {
      assert.equal(result.code, 0, result.stderr);
      assert.equal(await server.mustGit(targets[index] ?? "", "rev-parse", "HEAD"), tip);
    }
    const fetches = server.operations.filter(({ operation, bytesOut }) => operation === "clone" && bytesOut > 1 << 20);
    assert.equal(fetches.length, 6);
    const again = await server.git(server.folder, "clone", "-q", url, server.folderFor("shared-again"));
    assert.equal(again.code, 0, again.stderr);
  });

  it("threat 9: more work than the queue holds is told to come back, while advertisements stay quick", async () => {
    const url = await server.create("busy");
    const work = await server.workingCopy("busy");
    const tip = await server.commit(work, "big", randomBytes(8 << 20));
    server.candidates = [];
    server.state({ "refs/heads/main": tip });
    await server.mustGit(work, "push", "-q", url, "main");
    const pkt = (text: string): string => (text.length + 4).toString(16).padStart(4, "0") + text;
    // Without room to keep answers git waits for its reader: clients that do not read hold their places.
    config = { ...usual, gitPackCacheBytes: 0 };
    const stuck = Array.from({ length: 3 }, (_, i) => {
      const aborter = new AbortController();
      const body = `${pkt(`want ${tip} side-band-64k agent=${i}\n`)}0000${pkt("done\n")}`;
      return { aborter, answer: fetch(`${url}/git-upload-pack`, { method: "POST", body, signal: aborter.signal }) };
    });
    for (const { answer } of stuck) answer.catch(() => undefined);
    // Whichever came first has its place, the other two wait for it.
    await Promise.any(stuck.map(({ answer }) => answer));
    assert.ok(await until(() => server.http.queued.fetches === 2, 120_000), "nobody waits");
    const body = `${pkt(`want ${tip} side-band-64k agent=x\n`)}0000${pkt("done\n")}`;
    const refused = await fetch(`${url}/git-upload-pack`, { method: "POST", body });
    assert.equal(refused.status, 503);
    assert.equal(refused.headers.get("retry-after"), "5");
    const begun = performance.now();
    assert.equal((await fetch(`${url}/info/refs?service=git-upload-pack`)).status, 200);
    assert.ok(performance.now() - begun < 20_000);
    for (const { aborter } of stuck) aborter.abort();
    config = usual;
    assert.ok(await until(() => server.launcher.jobsInFlight === 0, 120_000), "git goes on");
  });

  it("/prs/ acts like an empty repository, is made by the first accepted push and leaves nothing after a refused one", async () => {
    const address = RepositoryAddress.of(owner, npub, "pulls", "prs");
    server.catalogue.set("pulls", { address, createOnPush: true });
    const url = `${server.origin}/prs/${npub}/pulls.git`;
    const target = server.folderFor("prs-clone");
    const cloned = await server.git(server.folder, "clone", url, target);
    assert.equal(cloned.code, 0, cloned.stderr);
    assert.match(cloned.stderr, /empty repository/);
    assert.equal(await server.repositories.exists(address), false);
    const work = await server.workingCopy("prs");
    server.unclaimed = { ok: true, maxBytes: 10 };
    const large = await server.git(work, "push", url, `main:refs/nostr/${hexId()}`);
    assert.notEqual(large.code, 0);
    assert.equal(await server.repositories.exists(address), false);
    server.unclaimed = { ok: true, maxBytes: 1 << 20 };
    const id = hexId();
    const pushed = await server.git(work, "push", url, `main:refs/nostr/${id}`);
    assert.equal(pushed.code, 0, pushed.stderr);
    assert.equal((await server.repositories.open(address).unclaimed())[0]?.eventId, id);
  });

  it("pushes at the same moment to one repository all land or are told why", async () => {
    const url = await server.create("parallel");
    const work = await server.workingCopy("parallel");
    const tip = (await server.mustGit(work, "rev-parse", "HEAD")) as Oid;
    const names = Array.from({ length: 6 }, (_, i) => `b${i}`);
    server.candidates = [];
    server.state(Object.fromEntries(names.map((name) => [`refs/heads/${name}`, tip])), true);
    const results = await Promise.all(names.map((name) => server.git(work, "push", url, `main:${name}`)));
    for (const result of results) assert.equal(result.code, 0, result.stderr);
    assert.equal((await server.refsOf("parallel")).split("\n").length, 6);
  });

  it("a launcher killed during a push leaves nothing half done: the push stands or is refused, and the next works", async () => {
    const url = await server.create("killed");
    const work = await server.workingCopy("killed");
    const tip = (await server.mustGit(work, "rev-parse", "HEAD")) as Oid;
    server.candidates = [];
    server.state({ "refs/heads/main": tip, "refs/heads/next": tip });
    for (const moment of [1, 2]) {
      let asked = 0;
      server.onAuthority = () => {
        asked += 1;
        // The first question comes before git starts, the second while the refs are locked.
        if (asked === moment) process.kill(server.launcher.helperPid ?? 0, "SIGKILL");
      };
      const result = await server.git(work, "push", url, "main");
      server.onAuthority = () => undefined;
      assert.doesNotMatch(result.stderr, /Everything up-to-date/);
      if (result.code !== 0) assert.match(result.stderr, /this server could not finish the push: try again/);
      assert.equal(await server.refsOf("killed"), result.code === 0 ? `refs/heads/main ${tip}` : "");
      if (result.code === 0) {
        await server.repositories
          .open(server.addressOf("killed"))
          .updateRefs([{ ref: "refs/heads/main" as RefName, to: undefined }]);
      }
    }
    const next = await server.git(work, "push", url, "main:next");
    assert.equal(next.code, 0, next.stderr);
    const left = (await server.filesOf("killed")).filter((name) => /\.lock$|tmp_/.test(name));
    assert.deepEqual(left, []);
  });

  it("threat 20: a server killed with SIGKILL in the middle of a clone leaves no git behind", async () => {
    const script = fileURLToPath(new URL("../harness/git-server-process.js", import.meta.url));
    const child = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
    const line = await new Promise<string>((resolve) => child.stdout.once("data", (data) => resolve(String(data))));
    const { url, tip, helper, folder } = JSON.parse(line) as {
      url: string;
      tip: string;
      helper: number;
      folder: string;
    };
    const want = `want ${tip} side-band-64k\n`;
    const body = `${(want.length + 4).toString(16).padStart(4, "0")}${want}00000009done\n`;
    const answer = await fetch(`${url}/git-upload-pack`, { method: "POST", body });
    assert.equal(answer.status, 200);
    const childrenOf = async (pid: number): Promise<number[]> => {
      const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
      return text.trim().split(" ").filter(Boolean).map(Number);
    };
    const gits = await childrenOf(helper);
    const all = [helper, ...gits, ...(await Promise.all(gits.map(childrenOf))).flat()];
    assert.ok(all.length >= 2, "git is at work");
    child.kill("SIGKILL");
    const isAlive = async (pid: number): Promise<boolean> => {
      const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
      return stat !== "" && !/\) Z /.test(stat);
    };
    const end = Date.now() + 60_000;
    while ((await Promise.all(all.map(isAlive))).some(Boolean)) {
      assert.ok(Date.now() < end, "some process stayed behind");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await answer.body?.cancel().catch(() => undefined);
    assert.ok(existsSync(folder));
    await rm(folder, { recursive: true, force: true });
  });
});
