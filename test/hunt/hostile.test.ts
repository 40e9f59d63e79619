// threats.md rows 4 and 7 for hunting: whatever a remote server does, the attempt ends, nothing is left behind, and the
// next attempt ends the same way.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { HuntConfig } from "../../src/hunt/core/messages.js";
import { runProgram } from "../harness/git-server.js";
import { type Misbehaviour, mustGit } from "../harness/hunt-git-server.js";
import { type HouseWish, until } from "../harness/hunt-house.js";
import { huntWorld, impatient } from "../harness/hunt-world.js";
import { keyOf } from "../harness/relay-events.js";

const owner = keyOf("hostile owner");

const shortFetches = (config: HuntConfig): HuntConfig => ({
  ...impatient(config),
  gitHuntTotalSecs: 5,
  gitHuntSlowSecs: 1,
});

async function world(context: TestContext, wish: HouseWish = {}) {
  const made = await huntWorld(context, { hunt: shortFetches, ...wish });
  return { ...made, name: made.house.name(owner, "demo") };
}

/** Two attempts were made, each ended with this answer, and the disk looks as before. */
async function failsTwice(
  context: TestContext,
  { house, remote, name }: Awaited<ReturnType<typeof world>>,
  answer: string,
): Promise<void> {
  const attempts = (): number => house.logged.filter(({ message }) => message === "back-off").length;
  await until("an attempt ended", () => attempts() >= 1);
  await until("a second attempt ended", () => attempts() >= 2);
  const known = house.room.hunting.knownOf(name);
  assert.equal(known?.servers[0]?.answer, answer);
  assert.deepEqual(await house.packs(name), []);
  assert.deepEqual(await house.refs(name), {});
  context.diagnostic(
    `two attempts: ${JSON.stringify(remote.counts())}, ${remote.connectionTimesMs.length} connections`,
  );
  await house.room.close();
  assert.deepEqual(await house.leftovers(name), []);
  assert.deepEqual(house.faults, []);
}

const bad: readonly (readonly [string, Misbehaviour, string])[] = [
  ["sends one byte a second", { type: "one-byte-a-second" }, "timeout"],
  ["hangs after the headers of the pack", { type: "hang-after-headers" }, "timeout"],
  ["never answers", { type: "hang" }, "timeout"],
  ["sends a corrupt pack", { type: "corrupt-pack" }, "bad-objects"],
  ["answers 500", { type: "status", status: 500 }, "http-status"],
  ["redirects to a private address", { type: "redirect", to: () => "https://10.0.0.1/x" }, "redirect-failed"],
  ["redirects to the metadata service", { type: "redirect", to: () => "https://169.254.169.254/x" }, "redirect-failed"],
  ["redirects to a file", { type: "redirect", to: () => "file:///etc/passwd" }, "bad-redirect"],
  ["redirects for ever", { type: "redirect", to: (path) => path }, "redirect-failed"],
];

for (const [what, behaviour, answer] of bad) {
  test(`a remote that ${what} ends the attempt and leaves nothing behind`, async (context) => {
    const setting = await world(context);
    const { house, work, remote } = setting;
    const tip = await work.commitFile("a", randomBytes(5_000));
    await remote.publish("demo", work.path, { "refs/heads/main": tip });
    remote.behaviour = behaviour;
    await house.announce(owner, "demo", [remote.url("demo")]);
    await house.state(owner, "demo", { "refs/heads/main": tip });
    await failsTwice(context, setting, answer);
  });
}

test('a remote that says "not our ref" for ever is asked at most twelve times an attempt', async (context) => {
  const setting = await world(context);
  const { house, work, remote } = setting;
  const ids: string[] = [];
  for (let index = 0; index < 9; index++) ids.push(await work.commit(`c${index}`));
  await remote.publish("demo", work.path, { "refs/heads/main": ids[0] ?? "" });
  remote.behaviour = { type: "not-our-ref", advertised: ids };
  await house.announce(owner, "demo", [remote.url("demo")]);
  await house.state(owner, "demo", Object.fromEntries(ids.map((id, index) => [`refs/heads/b${index}`, id])));
  await until("an attempt ended", () => house.logged.some(({ message }) => message === "back-off"));
  assert.ok(remote.connectionTimesMs.length >= 10, "it was asked again and again");
  assert.ok(remote.connectionTimesMs.length <= 12, `${remote.connectionTimesMs.length} connections`);
  await failsTwice(context, setting, "ok");
  assert.ok(remote.connectionTimesMs.length <= 36);
});

test("a pack with a tree that holds .git is refused, however often it is sent", async (context) => {
  const setting = await world(context);
  const { house, work, remote } = setting;
  const blob = await mustGit(["hash-object", "-w", "--stdin"], work.path);
  const entry = Buffer.concat([Buffer.from("100644 .git\0"), Buffer.from(blob, "hex")]);
  const made = await runProgram("git", ["hash-object", "-w", "-t", "tree", "--literally", "--stdin"], {
    cwd: work.path,
    input: entry,
  });
  const tree = made.stdout.trim();
  const evil = await mustGit(["commit-tree", tree, "-m", "evil"], work.path);
  await remote.publish("demo", work.path, { "refs/heads/main": evil });
  await house.announce(owner, "demo", [remote.url("demo")]);
  await house.state(owner, "demo", { "refs/heads/main": evil });
  await failsTwice(context, setting, "bad-objects");
});

test("a pack above the limit of bytes is given up", async (context) => {
  const small = (config: HuntConfig): HuntConfig => ({
    ...shortFetches(config),
    gitHuntMaxBytes: 100_000,
  });
  const setting = await world(context, { hunt: small });
  const { house, work, remote } = setting;
  const tip = await work.commitFile("big", randomBytes(300_000));
  await remote.publish("demo", work.path, { "refs/heads/main": tip });
  await house.announce(owner, "demo", [remote.url("demo")]);
  await house.state(owner, "demo", { "refs/heads/main": tip });
  await failsTwice(context, setting, "too-large");
});

test("a pack above the limit of objects is given up", async (context) => {
  const few = (config: HuntConfig): HuntConfig => ({
    ...shortFetches(config),
    gitHuntMaxObjects: 2,
  });
  const setting = await world(context, { hunt: few });
  const { house, work, remote } = setting;
  const tip = await work.commitFile("a", "three objects");
  await remote.publish("demo", work.path, { "refs/heads/main": tip });
  await house.announce(owner, "demo", [remote.url("demo")]);
  await house.state(owner, "demo", { "refs/heads/main": tip });
  await failsTwice(context, setting, "too-large");
});

test("a redirect within the same host is followed by us and never by git", async (context) => {
  const { house, work, remote } = await world(context);
  const tip = await work.commit("one");
  await remote.publish("moved", work.path, { "refs/heads/main": tip });
  const door = createServer((request, response) => {
    response
      .writeHead(301, { location: `http://127.0.0.1:${remote.port}${(request.url ?? "").replace("demo", "moved")}` })
      .end();
  });
  let doorRequests = 0;
  door.on("request", () => doorRequests++);
  await new Promise<void>((done) => door.listen(0, "127.0.0.1", done));
  context.after(() => door.close());
  const { port } = door.address() as AddressInfo;
  await house.announce(owner, "demo", [`http://127.0.0.1:${port}/demo.git`]);
  const state = await house.state(owner, "demo", { "refs/heads/main": tip });
  await until("the state is served", () => house.isServed(state));
  assert.equal(doorRequests, 1, "git went to the end of the chain");
});

test("without the test setting loopback is never dialled, by whatever name", async (context) => {
  const { house, work, remote } = await world(context, {
    environment: { NGIT_TEST: "0" },
    resolve: async () => ({ ok: true, addresses: ["192.0.2.77", "127.0.0.1"] }),
  });
  const tip = await work.commit("one");
  await remote.publish("demo", work.path, { "refs/heads/main": tip });
  const port = remote.port;
  const names = ["127.0.0.1", "[::1]", "2130706433", "0x7f.1", "rebinding.example"];
  await house.announce(
    owner,
    "demo",
    names.map((host) => `http://${host}:${port}/demo.git`),
  );
  await house.state(owner, "demo", { "refs/heads/main": tip });
  const name = house.name(owner, "demo");
  await until("every name was judged", () => house.logged.some(({ message }) => message === "back-off"));
  assert.equal(remote.connectionTimesMs.length, 0);
  for (const { answer } of house.room.hunting.knownOf(name)?.servers ?? []) assert.equal(answer, "address-not-allowed");
  assert.ok((house.room.hunting.knownOf(name)?.servers.length ?? 0) >= 3);
});

test("clone URLs that are not http are not tried", async (context) => {
  const { house, work } = await world(context);
  const tip = await work.commit("one");
  const clone = [`file://${work.path}`, work.path, "ext::sh -c touch% /tmp/x", "ssh://git@host/x", "git://host/x"];
  await house.announce(owner, "demo", clone);
  await house.state(owner, "demo", { "refs/heads/main": tip });
  await until("the attempt ended", () => house.logged.some(({ message }) => message === "back-off"));
  assert.deepEqual(house.room.hunting.knownOf(house.name(owner, "demo"))?.servers, []);
});

test("a config planted in the repository does not turn the fetch to another server", async (context) => {
  const { house, work, remote, name } = await world(context);
  const tip = await work.commit("one");
  await remote.publish("demo", work.path, { "refs/heads/main": tip });
  await house.announce(owner, "demo", [remote.url("demo")]);
  await house.repository(name).refs();
  const planted = `[url "http://127.0.0.1:1/"]\n\tinsteadOf = http://127.0.0.1:${remote.port}/\n[http]\n\tproxy = http://127.0.0.1:1\n`;
  await writeFile(join(house.repository(name).directory, "config"), planted, { flag: "a" });
  const state = await house.state(owner, "demo", { "refs/heads/main": tip });
  await until("the state is served", () => house.isServed(state));
});

test("object ids shaped like options or refspecs are never asked for", async (context) => {
  const { house, work, remote } = await world(context);
  const tip = await work.commit("one");
  await remote.publish("demo", work.path, { "refs/heads/main": tip });
  await house.announce(owner, "demo", [remote.url("demo")], { created_at: house.now - 2 });
  await house.state(owner, "demo", { "refs/heads/main": "--upload-pack=touch /tmp/x" });
  const name = house.name(owner, "demo");
  await house.pullRequest(owner, name, "+refs/heads/main:refs/heads/main", [remote.url("demo")]);
  await house.room.hunting.caughtUp();
  assert.deepEqual(house.room.hunting.known(), []);
  assert.equal(remote.requests.length, 0);
});
