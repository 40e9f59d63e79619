// The real git-lfs: push, clone, both object formats, limits, a pull request, a second server that lacks the files. Run by
// `npm run test:interop`.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { signedHeader, startPrivate } from "../harness/private-service.js";
import { until } from "../harness/server.js";
import { ClientHome } from "./client-home.js";

let first: Story;
let second: Story;
let home: ClientHome;
const megabyte = 2 ** 20;
const patienceMs = 120_000;

before(async () => {
  first = await Story.begin({ settings: { NGIT_UNCLAIMED_MAX_BYTES: "1MiB" } });
  const follow = { NGIT_SYNC_BOOTSTRAP_RELAY_URL: `ws://${first.server.domain}`, NGIT_GIT_HUNT_SYNC_DELAY_MS: "500" };
  second = await Story.begin({ settings: follow });
  home = await ClientHome.make({ GIT_TERMINAL_PROMPT: "0", GIT_CONFIG_NOSYSTEM: "1" });
  await home.must(home.folder, "git", "lfs", "install", "--skip-repo");
});

after(async () => {
  await second.end();
  await first.end();
  await home.remove();
});

/** Stock git and git-lfs send it with each request. */
const header = (person: Person, root: string): string =>
  `http.extraHeader=Authorization: ${signedHeader(person, root)}`;

async function workingCopy(name: string, format = "sha1"): Promise<string> {
  const work = await home.directory(name);
  await home.must(work, "git", "init", "-q", "-b", "main", `--object-format=${format}`, ".");
  await home.must(work, "git", "lfs", "track", "*.bin");
  return work;
}

async function commit(work: string, file: string, bytes: number): Promise<{ tip: string; content: Buffer }> {
  const content = randomBytes(bytes);
  await writeFile(join(work, file), content);
  await home.must(work, "git", "add", ".");
  await home.must(work, "git", "commit", "-q", "-m", file);
  return { tip: (await home.must(work, "git", "rev-parse", "HEAD")).trim(), content };
}

async function clone(url: string, name: string): Promise<string> {
  await home.must(home.folder, "git", "clone", "-q", url, name);
  return join(home.folder, name);
}

for (const format of ["sha1", "sha256"]) {
  test(`a maintainer pushes a file of 3 MB to a ${format} repository, and a clone has it`, async (t) => {
    const alice = new Person();
    await first.announce(alice, format);
    const url = first.url(alice, format);
    const work = await workingCopy(format, format);
    const { tip, content } = await commit(work, "large.bin", 3 * megabyte);
    await first.state(alice, format, { "refs/heads/main": tip });
    t.diagnostic(await home.must(work, "git", "-c", header(alice, url), "push", url, "main"));
    const copy = await clone(url, `${format}-copy`);
    assert.deepEqual(await readFile(join(copy, "large.bin")), content);
    assert.match(await home.must(copy, "git", "lfs", "fsck"), /OK/);
  });
}

test("whoever is not known brings small files with a pull request, and is asked who he is for large ones", async (t) => {
  const [alice, bob] = [new Person(), new Person()];
  const { url } = await first.hosted(alice, "asked");
  const work = await workingCopy("stranger");
  const small = await commit(work, "small.bin", megabyte / 2);
  const request = await first.accepted(
    bob.sign(1618, [
      ["a", alice.coordinate("asked")],
      ["c", small.tip],
      ["clone", url],
    ]),
  );
  await home.must(work, "git", "push", "-q", url, `HEAD:refs/nostr/${request.id}`);
  assert.ok(await first.isServed(request));
  const copy = await clone(url, "asked-copy");
  await home.must(copy, "git", "fetch", "-q", "origin", `refs/nostr/${request.id}`);
  await home.must(copy, "git", "checkout", "-q", "FETCH_HEAD");
  assert.deepEqual(await readFile(join(copy, "small.bin")), small.content);
  await commit(work, "big.bin", 2 * megabyte);
  const refused = await home.run(work, "git", "push", url, `HEAD:refs/nostr/${"a".repeat(64)}`);
  t.diagnostic(refused.output);
  assert.notEqual(refused.code, 0);
  assert.match(refused.output, /redentials|Authentication|Username/);
});

test("a second server looks for the files of what it follows, and a clone from it has them", async () => {
  const alice = new Person();
  const [url, there] = [first.url(alice, "both"), second.url(alice, "both")];
  await first.accepted(
    alice.sign(30617, [
      ["d", "both"],
      ["clone", url, there],
      ["relays", `ws://${first.server.domain}`, `ws://${second.server.domain}`],
    ]),
  );
  const work = await workingCopy("both");
  const { tip, content } = await commit(work, "large.bin", megabyte);
  const state = await first.state(alice, "both", { "refs/heads/main": tip });
  await home.must(work, "git", "-c", header(alice, url), "push", "-q", url, "main");
  assert.ok(await until(() => second.isServed(state), patienceMs));
  const isWhole = async (): Promise<boolean> => {
    const name = `from-second-${Date.now()}`;
    await home.run(home.folder, "git", "clone", "-q", there, name);
    const path = join(home.folder, name, "large.bin");
    return existsSync(path) && (await readFile(path)).equals(content);
  };
  assert.ok(await until(isWhole, patienceMs));
});

test("a private server takes and gives large files with a machine token, as git-lfs gets it from a credential helper", async () => {
  const service = await startPrivate();
  const { story, alice } = service;
  try {
    await story.announce(alice, "team");
    const url = story.url(alice, "team");
    const { token } = await service.operate("tokens.add", { member: alice.npub, push: true });
    const helper = `credential.helper=!f() { echo username=ci; echo password=${token}; }; f`;
    const work = await workingCopy("team");
    const { tip, content } = await commit(work, "large.bin", 3 * megabyte);
    await story.state(alice, "team", { "refs/heads/main": tip });
    await home.must(work, "git", "-c", helper, "push", "-q", url, "main");
    await home.must(home.folder, "git", "-c", helper, "clone", "-q", "-c", helper, url, "team-copy");
    assert.deepEqual(await readFile(join(home.folder, "team-copy", "large.bin")), content);
    const outside = await home.run(home.folder, "git", "clone", "-q", url, "team-outside");
    assert.notEqual(outside.code, 0);
  } finally {
    await story.end();
  }
});
