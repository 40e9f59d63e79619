// Large files (LFS) as git-lfs asks for them, over plain HTTP: what a push brings before its commits, what a clone gets, who may
// bring how much, what becomes of what nobody names, and how another server finds what it lacks. git-lfs itself is in
// test/interop/git-lfs.interop.ts.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { holdfast } from "../cli/run.js";
import { Person } from "../harness/grasp-people.js";
import type { Story, WorkingCopy } from "../harness/grasp-story.js";
import { batch, download, type LargeFile, largeFileOf, pointerTo, put, upload } from "../harness/lfs-client.js";
import { basic, signedHeader, startPrivate } from "../harness/private-service.js";
import { ask } from "../harness/raw-http.js";
import { newFolder, until } from "../harness/server.js";
import { beginPair, beginPrs, type Pair, prsUrl, pullRequest, push, refOf } from "./prs-world.js";

const patienceMs = 120_000;

/** A commit whose tree has a pointer to each file. */
const commitPointers = (work: WorkingCopy, text: string, files: readonly LargeFile[]): Promise<string> => {
  for (const [index, file] of files.entries())
    writeFileSync(join(work.folder, `large${index}.bin`), `${pointerTo(file)}\n`);
  return work.commit(text);
};

/** Every file below a repository's folder for large files. */
const filesOf = (directory: string): string[] => {
  const folder = join(directory, "lfs");
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name)
    .sort();
};

describe("large files", () => {
  let story: Story;
  before(async () => {
    story = await beginPrs({
      settings: {
        NGIT_UNCLAIMED_MAX_BYTES: "2KiB",
        NGIT_UNCLAIMED_PER_HOUR_PER_IP: "1000",
        NGIT_UNCLAIMED_TOTAL_MAX_BYTES: "8KiB",
        NGIT_REPOSITORY_MAX_BYTES: "64KiB",
        NGIT_BLOSSOM_READ: "true",
      },
    });
  });
  after(() => story.end());

  it("come before their push, are nobody's to download until a released commit names them, and then everybody's", async () => {
    const alice = new Person();
    const file = largeFileOf("the large content of a file");
    await story.announce(alice, "flow");
    const url = story.url(alice, "flow");
    const work = await story.workingCopy();
    const tip = await commitPointers(work, "one", [file]);
    await story.state(alice, "flow", { "refs/heads/main": tip });
    assert.deepEqual(await upload(url, [file]), [200]);
    assert.equal(await download(url, file), undefined);
    assert.equal((await ask(`${story.server.origin}/${file.oid}`)).status, 404);
    assert.deepEqual(await upload(url, [file]), [204], "it is here already");
    await work.must("push", "-q", url, "main");
    assert.equal(await download(url, file), file.content.toString());
    const byHash = await ask(`${story.server.origin}/${file.oid}`);
    assert.equal(byHash.body.toString(), file.content.toString());
    assert.equal(byHash.headers["content-security-policy"], "default-src 'none'; sandbox");
    const page = await (await fetch(url)).text();
    assert.match(page, /Large files<\/dt><dd>1 file/);
    const { objects } = await batch(url, "download", [file]);
    const href = objects[0]?.actions?.download.href ?? "";
    const part = await ask(href, { headers: { Range: "bytes=4-8" } });
    assert.deepEqual([part.status, part.text, part.headers["content-range"]], [206, "large", "bytes 4-8/27"]);
    assert.equal((await ask(href, { method: "HEAD" })).headers["content-length"], "27");
    const metrics = await (await fetch(`${story.server.origin}/metrics`)).text();
    assert.match(metrics, /ngit_lfs_files\{state="here"\} 1/);
    assert.match(metrics, /ngit_lfs_requests_total\{operation="download",status="ok"\}/);
    assert.match(metrics, /^ngit_lfs_bytes_total\{direction="in"\} 27$/m);
    assert.match(metrics, /^ngit_lfs_stored_bytes 27$/m);
    assert.doesNotMatch(metrics, /operation="download",status="aborted"/);
  });

  it("are taken only as what was announced: size, hash, address and time of the ticket", async () => {
    const alice = new Person();
    const { url } = await story.hosted(alice, "checked");
    const file = largeFileOf("what was announced");
    const wrong = Buffer.from("what was ANNOUNCED");
    const { objects } = await batch(url, "upload", [file]);
    const href = objects[0]?.actions?.upload.href ?? "";
    assert.match((await put(href, wrong)).text, /does not have the hash/);
    assert.equal((await put(href, Buffer.from("longer than it was announced"))).status, 422);
    assert.equal((await put(href.replace(file.oid, "a".repeat(64)), file.content)).status, 403);
    assert.equal((await put(href.replace(/size=\d+/, "size=1"), file.content)).status, 403);
    assert.equal((await put(href.replace(/ends=\d+/, "ends=1"), file.content)).status, 403);
    assert.equal((await ask(href)).status, 403, "a ticket for bringing is none for fetching");
    const other = await story.hosted(alice, "other");
    assert.equal((await put(href.replace("/checked.git", "/other.git"), file.content)).status, 403, other.url);
    assert.deepEqual(filesOf(story.directory(alice, "checked")), []);
  });

  it("answer only what is LFS: locks, other paths, unknown repositories and bad requests are refused by name", async () => {
    const alice = new Person();
    const { url } = await story.hosted(alice, "strict");
    for (const path of ["locks", "locks/verify", "objects", "objects/xyz", ""]) {
      assert.equal((await ask(`${url}/info/lfs/${path}`)).status, 404, path);
    }
    const post = async (body: unknown): Promise<number> =>
      (await ask(`${url}/info/lfs/objects/batch`, { body: typeof body === "string" ? body : JSON.stringify(body) }))
        .status;
    assert.equal(await post("no JSON"), 400);
    assert.equal(await post({ operation: "destroy", objects: [] }), 400);
    assert.equal(await post({ operation: "download", hash_algo: "md5", objects: [] }), 409);
    assert.equal(await post({ operation: "download", transfers: ["tus"], objects: [] }), 422);
    assert.equal(await post({ operation: "upload", objects: [{ oid: "../../etc/passwd", size: 1 }] }), 422);
    assert.equal(await post({ operation: "upload", objects: [{ oid: "a".repeat(64), size: -1 }] }), 422);
    const unknown = story.url(alice, "unknown");
    assert.equal((await ask(`${unknown}/info/lfs/objects/batch`, { body: "{}" })).status, 404);
    const { objects } = await batch(url, "download", [largeFileOf("nobody has it")]);
    assert.equal(objects[0]?.error?.code, 404);
  });

  it("of strangers are as small as unclaimed pushes; a maintainer's count in the repository's quota", async () => {
    const alice = new Person();
    const bob = new Person();
    const { url } = await story.hosted(alice, "limits", [["maintainers", bob.pubkey]]);
    const big = largeFileOf(Buffer.alloc(10_000, "b"));
    const asked = await batch(url, "upload", [big]);
    assert.equal(asked.status, 401);
    assert.equal(asked.headers["lfs-authenticate"], 'Basic realm="holdfast"');
    assert.match(asked.message ?? "", /log in as a maintainer/);
    assert.equal(
      (await batch(url, "upload", [big], signedHeader(bob, `${url}x`))).status,
      401,
      "signed for another repository",
    );
    const stranger = await batch(url, "upload", [big], signedHeader(new Person(), url));
    assert.equal(stranger.objects[0]?.error?.code, 413, "who is known and no maintainer is not asked again");
    assert.deepEqual(await upload(url, [big], signedHeader(bob, url)), [200]);
    assert.equal(await download(url, big), big.content.toString(), "a maintainer's are served at once");
    const tooBig = largeFileOf(Buffer.alloc(60_000, "c"));
    const full = await batch(url, "upload", [tooBig], signedHeader(alice, url));
    assert.match(full.objects[0]?.error?.message ?? "", /this repository uses .* of 64 KiB/);
  });

  it("of pull requests are named by them, also under /prs/, and come along into the repository they are for", async () => {
    const alice = new Person();
    const bob = new Person();
    const { work, url } = await story.hosted(alice, "offered");
    const file = largeFileOf("a contributor's file");
    assert.deepEqual(await upload(url, [file]), [200]);
    const tip = await commitPointers(work, "offered", [file]);
    const request = await story.accepted(pullRequest(story, bob, alice, "offered", tip, { clone: url }));
    assert.equal(await download(url, file), undefined);
    await work.must("push", "-q", url, `HEAD:${refOf(request)}`);
    assert.equal(await download(url, file), file.content.toString());

    const second = largeFileOf("another file of his");
    const own = prsUrl(story, bob, "offered");
    assert.deepEqual(await upload(own, [second]), [200]);
    const further = await commitPointers(work, "further", [second]);
    const contributed = pullRequest(story, bob, alice, "offered", further);
    assert.equal((await push(work, own, contributed)).code, 0);
    await story.accepted(contributed);
    assert.equal(await download(own, second), second.content.toString());
    const isThere = async (): Promise<boolean> => (await download(url, second)) !== undefined;
    assert.ok(await until(isThere, patienceMs), "the repository gets it from there");
  });

  it("work in a SHA-256 repository, and stay when it is made anew as one", async () => {
    const alice = new Person();
    await story.announce(alice, "long");
    const url = story.url(alice, "long");
    const file = largeFileOf("in both formats");
    assert.deepEqual(await upload(url, [file]), [200]);
    const work = await story.workingCopy("sha256");
    const tip = await commitPointers(work, "one", [file]);
    await story.state(alice, "long", { "refs/heads/main": tip });
    await work.must("push", "-q", url, "main");
    assert.equal(await download(url, file), file.content.toString());
  });

  it("of strangers have one budget with unclaimed pushes: the oldest of whoever holds most gives way", async () => {
    const alice = new Person();
    const { url } = await story.hosted(alice, "flooded");
    const files = ["1", "2", "3", "4", "5", "6"].map((digit) => largeFileOf(Buffer.alloc(1_900, digit)));
    for (const file of files) assert.deepEqual(await upload(url, [file]), [200]);
    const kept = filesOf(story.directory(alice, "flooded"));
    assert.ok(!kept.includes(files[0]?.oid ?? "") && kept.includes(files[5]?.oid ?? ""), kept.join());
  });

  it("that come at the same moment have one room between them, whatever was said of their sizes", async () => {
    const alice = new Person();
    const { url } = await story.hosted(alice, "room");
    const files = ["a", "b"].map((letter) => largeFileOf(Buffer.alloc(40_000, letter)));
    const [one, other] = files as [LargeFile, LargeFile];
    const hrefs: string[] = [];
    for (const file of files) {
      const { objects } = await batch(url, "upload", [file], signedHeader(alice, url));
      hrefs.push(objects[0]?.actions?.upload.href ?? "");
    }
    const before = filesOf(story.directory(alice, "room")).length;
    const first = slowly(hrefs[0] ?? "", one);
    const isComing = (): boolean => filesOf(story.directory(alice, "room")).length > before;
    assert.ok(await until(isComing, patienceMs));
    assert.equal((await put(hrefs[1] ?? "", other.content)).status, 413);
    first.end();
    assert.equal(await first.status, 200);
    assert.equal((await put(hrefs[1] ?? "", other.content)).status, 413, "now it is here");
    const small = largeFileOf(Buffer.alloc(1_000, "c"));
    assert.deepEqual(await upload(url, [small], signedHeader(alice, url)), [200], "what is left is left");
  });
});

/** A transfer that stands still until `end` is called. */
function slowly(href: string, { content }: LargeFile): { readonly status: Promise<number>; end(): void } {
  const asked = request(href, { method: "PUT", headers: { "Content-Length": content.length } });
  const half = Math.floor(content.length / 2);
  const status = new Promise<number>((resolve, reject) => {
    asked.once("error", reject);
    asked.once("response", (response) => resolve(response.resume().statusCode ?? 0));
  });
  asked.write(content.subarray(0, half));
  return { status, end: () => void asked.end(content.subarray(half)) };
}

describe("large files on two servers", { timeout: 600_000 }, () => {
  let pair: Pair;
  let first: Story;
  let second: Story;
  before(async () => {
    pair = await beginPair();
    ({ first, second } = pair);
  });
  after(() => pair.end());

  it("are found by the one that lacks them; then checked, mended, backed up and restored", async () => {
    const owner = new Person();
    const [url, there] = [first.url(owner, "both"), second.url(owner, "both")];
    await first.accepted(
      owner.sign(30617, [
        ["d", "both"],
        ["clone", url, there],
        ["relays", `ws://${first.server.domain}`, `ws://${second.server.domain}`],
      ]),
    );
    const work = await first.workingCopy();
    const files = [largeFileOf("one large file"), largeFileOf("another large file")];
    const tip = await commitPointers(work, "one", files);
    const state = await first.state(owner, "both", { "refs/heads/main": tip });
    assert.deepEqual(await upload(url, files), [200, 200]);
    await work.must("push", "-q", url, "main");
    assert.ok(await until(() => second.isServed(state), patienceMs), "a release does not wait for large files");
    const [one, other] = files as [LargeFile, LargeFile];
    const isThere = async (): Promise<boolean> =>
      (await download(there, one)) !== undefined && (await download(there, other)) !== undefined;
    assert.ok(await until(isThere, patienceMs), "the second server has found them");
    const metrics = await (await fetch(`${second.server.origin}/metrics`)).text();
    assert.match(metrics, /^ngit_lfs_hunted_files_total 2$/m);
    assert.match(metrics, /^ngit_lfs_hunts_total\{result="complete"\} [1-9]/m);

    const { folder } = first.server;
    const settings = (at: string): Record<string, string> => ({
      NGIT_DOMAIN: first.server.domain,
      NGIT_GIT_DATA_PATH: join(at, "git"),
      NGIT_RELAY_DATA_PATH: join(at, "relay"),
    });
    const verb = (at: string, ...args: string[]) => holdfast(args, settings(at));
    const fresh = async (): Promise<string> => {
      const made = await newFolder();
      pair.folders.push(made);
      return made;
    };
    const backup = join(await fresh(), "backup");
    assert.equal((await verb(folder, "backup", backup)).code, 0);
    const restored = await fresh();
    assert.equal((await verb(restored, "restore", backup)).code, 0);
    assert.deepEqual(filesOf(join(restored, "git", owner.npub, "both.git")), [one.oid, other.oid].sort());

    const path = join(first.directory(owner, "both"), "lfs", one.oid.slice(0, 2), one.oid);
    writeFileSync(path, "rotten");
    const name = `${owner.npub}/both`;
    const checked = await verb(folder, "repos", "fsck", name);
    assert.equal(checked.code, 1);
    assert.match(checked.stdout, new RegExp(`large file ${one.oid} is damaged or lost`));
    assert.match((await verb(folder, "repos", "show", name)).stdout, /large files +[12], /);
    const isMended = async (): Promise<boolean> => (await download(url, one)) === one.content.toString();
    assert.ok(await until(isMended, patienceMs), "it is brought back from the second server");
    rmSync(path);
    assert.equal(await download(url, one), undefined, "whoever asks for a lost one finds out");
    assert.ok(await until(isMended, patienceMs), "and it is brought back");
    assert.equal((await verb(folder, "repos", "fsck", name)).code, 0);

    // Deleted and restored, they are what they were.
    assert.equal((await verb(folder, "repos", "delete", name)).code, 0);
    assert.equal(await download(url, one), undefined);
    assert.equal((await verb(folder, "repos", "restore", name)).code, 0);
    assert.equal(await download(url, one), one.content.toString());

    // While no server runs a check tells, and changes nothing.
    await first.relay.close();
    await first.server.stop();
    writeFileSync(path, "rotten");
    const stray = join(first.directory(owner, "both"), "lfs", "00", "0".repeat(64));
    mkdirSync(dirname(stray), { recursive: true });
    writeFileSync(stray, "nobody's");
    const told = await verb(folder, "repos", "fsck", name);
    assert.equal(told.code, 1);
    assert.match(told.stdout, new RegExp(`large file ${one.oid} is damaged or lost`));
    assert.match(told.stdout, /large file 0{64} is not recorded/);
    assert.deepEqual([existsSync(stray), readFileSync(path, "utf8")], [true, "rotten"]);
  });
});

it("large files of a private service are for members: batch, bringing and fetching, by signature or token", async () => {
  const service = await startPrivate({ settings: { NGIT_UNCLAIMED_MAX_BYTES: "1KiB" } });
  const { story, alice, bob, stranger } = service;
  try {
    await story.announce(alice, "team");
    const url = story.url(alice, "team");
    const [small, big] = [largeFileOf("for the team"), largeFileOf(Buffer.alloc(5_000, "t"))];
    const tokenFor = async (mayPush: boolean): Promise<string> =>
      basic("ci", (await service.operate("tokens.add", { member: bob.npub, push: mayPush })).token);
    const [reads, pushes] = [await tokenFor(false), await tokenFor(true)];
    for (const shown of [undefined, signedHeader(stranger, url), signedHeader(alice, `${url}x`), basic("x", "y")]) {
      const answer = await batch(url, "download", [small], shown);
      assert.deepEqual(
        [answer.status, answer.message],
        [401, undefined],
        "nothing is said, not even whether it exists",
      );
      assert.equal(answer.headers["content-length"], "0");
    }
    assert.equal((await batch(url, "upload", [small], reads)).status, 403, "a token that may only read brings nothing");
    const bring = async (files: readonly LargeFile[], authorization: string): Promise<number[]> => {
      const { objects } = await batch(url, "upload", files, authorization);
      const hrefs = objects.map(({ actions }) => actions?.upload.href ?? "");
      for (const href of hrefs) assert.equal((await ask(href)).status, 401, "a ticket alone opens nothing");
      const statuses = files.map((file, index) => put(hrefs[index] ?? "", file.content, authorization));
      return (await Promise.all(statuses)).map(({ status }) => status);
    };
    assert.deepEqual(
      await bring([big], pushes),
      [200],
      "a token that may push brings what the repository's quota takes",
    );
    assert.deepEqual(await bring([small], signedHeader(alice, url)), [200]);
    const { objects } = await batch(url, "download", [big], reads);
    const href = objects[0]?.actions?.download.href ?? "";
    assert.equal((await ask(href)).status, 401, "a ticket alone opens nothing");
    assert.equal((await ask(href, { headers: { Authorization: reads } })).status, 200);
    assert.equal((await ask(`${story.server.origin}/${big.oid}`)).status, 401);
  } finally {
    await story.end();
  }
});

describe("large files over time", () => {
  const clock = new ManualClock(Date.now());
  let story: Story;
  before(async () => {
    const settings = { NGIT_PING_INTERVAL_SECS: "60d", NGIT_PURGATORY_START_GRACE_SECS: "0" };
    story = await beginPrs({ clock, settings });
  });
  after(() => story.end());

  /** Sweeps and rounds come round on the same clock. */
  const eventually = (isSo: () => Promise<boolean> | boolean, stepMs = 200): Promise<boolean> =>
    until(async () => {
      clock.advance(stepMs);
      return await isSo();
    }, patienceMs);

  it("that nobody names expire like unclaimed pushes; what no commit names any more goes after the grace", async () => {
    const alice = new Person(Math.floor(clock.nowMs() / 1000), 600);
    await story.announce(alice, "time");
    const url = story.url(alice, "time");
    const directory = story.directory(alice, "time");
    const work = await story.workingCopy();
    const [kept, dropped, unnamed] = [largeFileOf("kept"), largeFileOf("dropped"), largeFileOf("unnamed")];
    const first = await commitPointers(work, "both", [kept, dropped]);
    await story.state(alice, "time", { "refs/heads/main": first });
    assert.deepEqual(await upload(url, [kept, dropped, unnamed]), [200, 200, 200]);
    await work.must("push", "-q", url, "main");
    assert.equal(await download(url, dropped), "dropped");
    clock.advance(31 * 60_000);
    assert.ok(await eventually(() => !filesOf(directory).includes(unnamed.oid)), "it has expired");
    assert.equal(await download(url, kept), "kept");

    await work.must("checkout", "-q", "--orphan", "fresh");
    await work.must("rm", "-q", "-rf", ".");
    const second = await commitPointers(work, "one of them", [kept]);
    await story.state(alice, "time", { "refs/heads/main": second });
    await work.must("push", "-q", "-f", url, "fresh:main");
    // A week until everything is searched again, two weeks of grace, and the hourly round after each.
    const isGone = (): boolean => !filesOf(directory).includes(dropped.oid);
    assert.ok(await eventually(isGone, 6 * 3_600_000), "nothing has named it for weeks");
    assert.equal(await download(url, kept), "kept");
  });
});
