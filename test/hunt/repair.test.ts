// What is served stays sound: drifted refs, lost objects, a lost directory, lost pull request refs; and repositories of
// one maintainer set share no files.
import assert from "node:assert/strict";
import { access, chmod, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { diskAddress } from "../../src/git/address.js";
import { mustGit } from "../harness/hunt-git-server.js";
import { until } from "../harness/hunt-house.js";
import { huntWorld } from "../harness/hunt-world.js";
import { keyOf } from "../harness/relay-events.js";

const owner = keyOf("repair owner");

/** One served repository with two branches, its data on a listed server. */
async function served(context: TestContext) {
  const made = await huntWorld(context);
  const { house, work, remote } = made;
  const first = await work.commitFile("a", "one");
  const second = await work.commitFile("b", "two");
  const refs = { "refs/heads/dev": first, "refs/heads/main": second };
  await remote.publish("demo", work.path, refs);
  const name = house.name(owner, "demo");
  await house.announce(owner, "demo", [remote.url("demo")], { created_at: house.now - 3 });
  const state = await house.state(owner, "demo", refs, { created_at: house.now - 2 });
  await until("the state is served", () => house.isServed(state));
  await until("the fetch is over", () => house.room.hunting.fetchesInFlight === 0);
  return { ...made, name, refs, first, second, directory: house.repository(name).directory };
}

test("refs that drifted while the server was down are realigned at its start, without asking anybody", async (context) => {
  const { house, again: startAgain, remote, name, refs, first, directory } = await served(context);
  await house.shut();
  await mustGit(["--git-dir", directory, "update-ref", "refs/heads/main", first]);
  await mustGit(["--git-dir", directory, "update-ref", "-d", "refs/heads/dev"]);
  await mustGit(["--git-dir", directory, "update-ref", "refs/tags/planted", first]);
  const asked = remote.requests.length;
  const again = await startAgain();
  await again.room.repair.settled();
  assert.deepEqual(await again.refs(name), refs);
  assert.equal(remote.requests.length, asked);
});

test("objects that were lost are found by the check and hunted", async (context) => {
  const { house, remote, name, refs, second, directory } = await served(context);
  for (const file of await readdir(join(directory, "objects/pack"))) await rm(join(directory, "objects/pack", file));
  const report = await house.room.repair.check(name);
  assert.deepEqual(report?.adrift, []);
  assert.ok(report?.found.missing.includes(second));
  await until(
    "they came back",
    async () => (await house.repository(name).missingObjects([second], { deep: true })).size === 0,
  );
  await until("nothing is hunted any more", () => house.room.hunting.known().length === 0);
  assert.deepEqual((await house.room.repair.check(name))?.found, { missing: [], pullRequests: [] });
  assert.deepEqual(await house.refs(name), refs);
  context.diagnostic(`requests: ${JSON.stringify(remote.counts())}`);
  assert.deepEqual(house.faults, []);
});

test("a pack whose bytes rotted is replaced by what a listed server has, though the same objects lie in it", async (context) => {
  const { house, name, refs, directory } = await served(context);
  const folder = join(directory, "objects/pack");
  for (const file of (await readdir(folder)).filter((one) => one.endsWith(".pack"))) {
    const bytes = await readFile(join(folder, file));
    // In the middle: the header and the checksum at the end stay, objects between them do not.
    const middle = bytes.length >> 1;
    for (let at = middle; at < middle + 8; at++) bytes[at] = (bytes[at] ?? 0) ^ 0xff;
    await chmod(join(folder, file), 0o600);
    await writeFile(join(folder, file), bytes);
  }
  assert.notDeepEqual(await house.repository(name).fsck(), []);
  await house.room.repair.damaged(name);
  await until("it is sound again", async () => (await house.repository(name).fsck()).length === 0);
  assert.deepEqual(await house.refs(name), refs);
});

test("a repository whose directory is gone is filled again", async (context) => {
  const { house, again: startAgain, name, refs, directory } = await served(context);
  await house.shut();
  await rm(directory, { recursive: true });
  const again = await startAgain();
  await until("its refs are back", async () => JSON.stringify(await again.refs(name)) === JSON.stringify(refs));
  assert.deepEqual(again.faults, []);
});

test("a served pull request that lost its ref gets it back", async (context) => {
  const { house, again: startAgain, work, remote, name, directory } = await served(context);
  const tip = await work.commit("topic");
  await remote.publish("fork", work.path, { "refs/heads/topic": tip });
  const event = await house.pullRequest(keyOf("somebody"), name, tip, [remote.url("fork")]);
  await until("the pull request is served", () => house.isServed(event));
  await house.shut();
  await mustGit(["--git-dir", directory, "update-ref", "-d", `refs/nostr/${event.id}`]);
  const again = await startAgain();
  await again.room.repair.settled();
  await again.room.repair.check(name);
  assert.equal((await again.refs(name))[`refs/nostr/${event.id}`], tip);
});

test("repositories of one maintainer set share no files: each is complete when the other goes", async (context) => {
  const { house, remote, name, refs, directory } = await served(context);
  const maintainer = keyOf("repair maintainer");
  const before = remote.requests.length;
  await house.announce(owner, "demo", [remote.url("demo")], { tags: [["maintainers", maintainer.pubkey]] });
  const tags = [["maintainers", owner.pubkey]];
  const announcement = await house.announce(maintainer, "demo", [], { tags });
  assert.equal(await house.isServed(announcement), true, "filled from its sibling at once");
  assert.equal(remote.requests.length, before, "and from nowhere else");
  const sibling = house.name(maintainer, "demo");
  const other = house.repository(sibling).directory;
  await assert.rejects(access(join(other, "objects/info/alternates")));
  await rm(directory, { recursive: true });
  const tips = Object.values(refs) as (typeof refs)["refs/heads/main"][];
  assert.equal((await house.repository(sibling).missingObjects(tips, { deep: true })).size, 0);
  assert.equal(await house.gitHost.repositories.exists(diskAddress(name)), false);
  await mustGit(["--git-dir", other, "fsck", "--full"]);
});
