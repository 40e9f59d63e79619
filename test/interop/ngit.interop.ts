// The real ngit and its remote helper: init, push, clone, pull request. Run by `npm run test:interop`.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { SecretKey } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { startInProcess, type TestServer } from "../harness/server.js";
import { ClientHome } from "./client-home.js";

const newKey = (): string => randomBytes(32).toString("hex");

let server: TestServer;
let home: ClientHome;
let work = "";
let nostrUrl = "";

before(async () => {
  server = await startInProcess({ backend: "memory" });
  const relay = server.origin.replace(/^http/, "ws");
  home = await ClientHome.make({ NGIT_RELAY_DEFAULT_SET: relay, NGIT_INDEXER_RELAY_DEFAULT_SET: relay });
  work = await home.directory("work");
});

after(async () => {
  await server.stop();
  await home.remove();
});

test("ngit init announces, publishes the state and pushes", async () => {
  await home.must(work, "git", "init", "-q", "-b", "main", ".");
  await home.must(work, "git", "commit", "-q", "--allow-empty", "-m", "one");
  const key = newKey();
  await home.must(work, "git", "config", "nostr.nsec", key);
  const relay = server.origin.replace(/^http/, "ws");
  await home.must(work, "ngit", "--nsec", key, "--defaults", "init", "--name", "demo", "--grasp-server", relay);
  nostrUrl = (await home.must(work, "git", "remote", "get-url", "origin")).trim();
  assert.match(nostrUrl, /^nostr:\/\/npub1/);
});

test("git push through ngit's remote helper publishes a new state and moves the branch", async () => {
  await home.must(work, "git", "commit", "-q", "--allow-empty", "-m", "two");
  await home.must(work, "git", "push", "-q", "origin", "main");
  const tip = (await home.must(work, "git", "rev-parse", "HEAD")).trim();
  const listed = await home.must(work, "git", "ls-remote", "origin", "refs/heads/main");
  assert.match(listed, new RegExp(`^${tip}`, "m"));
});

/** Pushes a branch as a pull request and answers its commit. */
async function propose(copy: string, name: string, ...options: string[]): Promise<string> {
  await home.must(copy, "git", "checkout", "-q", "-b", `pr/${name}`);
  // Larger than a patch may be: ngit then sends a pull request with git data.
  await writeFile(join(copy, `${name}.txt`), randomBytes(80_000).toString("base64"));
  await home.must(copy, "git", "add", ".");
  await home.must(copy, "git", "commit", "-q", "-m", `a ${name}`);
  const pushed = [`title=A ${name}`, "description=It fixes", ...options].flatMap((option) => ["-o", option]);
  await home.must(copy, "git", "push", "-q", ...pushed, "-u", "origin", `pr/${name}`);
  return (await home.must(copy, "git", "rev-parse", "HEAD")).trim();
}

test("a clone by nostr URL has what was pushed, and a contributor's pull request is served to the owner", async () => {
  const copy = join(home.folder, "copy");
  await home.must(home.folder, "git", "clone", "-q", nostrUrl, copy);
  const tip = (await home.must(work, "git", "rev-parse", "HEAD")).trim();
  assert.equal((await home.must(copy, "git", "rev-parse", "HEAD")).trim(), tip);
  const contributor = newKey();
  await home.must(copy, "git", "config", "nostr.nsec", contributor);
  const fix = await propose(copy, "fix");
  const npub = /^nostr:\/\/(npub1[a-z0-9]+)/.exec(nostrUrl)?.[1];
  const seen = await home.must(work, "git", "ls-remote", `${server.origin}/${npub}/demo.git`, "refs/nostr/*");
  assert.match(seen, new RegExp(`^${fix}\\s+refs/nostr/[0-9a-f]{64}$`, "m"));
  assert.match(await home.must(work, "ngit", "pr", "list"), /A fix/);
});

test("a maintainer whom ngit invites pushes after accepting, and not after leaving", async () => {
  const bob = SecretKey.generate(randomBytes);
  const nsec = Buffer.from(bob.exportBytes()).toString("hex");
  const owner = (await home.must(work, "git", "config", "nostr.nsec")).trim();
  await home.must(
    work,
    ...(["ngit", "--nsec", owner, "--defaults", "repo", "edit", "--add-maintainer", npubOf(bob.pubkey)] as const),
  );
  const copy = join(home.folder, "bob");
  await home.must(home.folder, "git", "clone", "-q", nostrUrl, copy);
  await home.must(copy, "git", "config", "nostr.nsec", nsec);
  const npub = /^nostr:\/\/(npub1[a-z0-9]+)/.exec(nostrUrl)?.[1];
  const held = async (): Promise<string> =>
    (await home.must(copy, "git", "ls-remote", `${server.origin}/${npub}/demo.git`, "refs/heads/main")).slice(0, 40);
  const before = await held();
  await home.must(copy, "git", "commit", "-q", "--allow-empty", "-m", "by bob");
  assert.notEqual((await home.run(copy, "git", "push", "-q", "origin", "main")).code, 0);
  assert.equal(await held(), before);
  await home.must(copy, "ngit", "--nsec", nsec, "--defaults", "repo", "accept");
  await home.must(copy, "git", "push", "-q", "origin", "main");
  const pushed = (await home.must(copy, "git", "rev-parse", "HEAD")).trim();
  assert.equal(await held(), pushed);
  await home.must(copy, "ngit", "--nsec", nsec, "--defaults", "repo", "leave", "--force");
  await home.must(copy, "git", "commit", "-q", "--allow-empty", "-m", "by bob, who left");
  assert.notEqual((await home.run(copy, "git", "push", "-q", "origin", "main")).code, 0);
  assert.equal(await held(), pushed);
});

test("a contributor's own server has the pull request's commits at once, although its event goes elsewhere", async () => {
  const own = await startInProcess({ backend: "memory", settings: { NGIT_GRASP06_ENABLE: "true" } });
  try {
    const copy = join(home.folder, "contributor");
    await home.must(home.folder, "git", "clone", "-q", nostrUrl, copy);
    const key = SecretKey.generate(randomBytes);
    await home.must(copy, "git", "config", "nostr.nsec", Buffer.from(key.exportBytes()).toString("hex"));
    const commit = await propose(copy, "thought", `git-server=${own.origin}`);
    const url = `${own.origin}/prs/${npubOf(key.pubkey)}/demo.git`;
    const [, ref = ""] =
      new RegExp(`^${commit}\\s+(refs/nostr/[0-9a-f]{64})$`, "m").exec(
        await home.must(work, "git", "ls-remote", url),
      ) ?? assert.fail("the pull request's ref is not advertised");
    await home.must(work, "git", "fetch", "-q", url, ref);
    assert.equal((await home.must(work, "git", "rev-parse", "FETCH_HEAD")).trim(), commit);
    // By id, as clients fetch that know only the event's commit.
    const other = await home.directory("by-id");
    await home.must(other, "git", "init", "-q", ".");
    await home.must(other, "git", "fetch", "-q", url, commit);
  } finally {
    await own.stop();
  }
});
