// Clients that are not stock git (interop.md): gitworkshop, Shakespeare, ngit, replayed as they speak.

import assert from "node:assert/strict";
import * as fs from "node:fs";
import { after, before, describe, it } from "node:test";
import git from "isomorphic-git";
import http from "isomorphic-git/http/node";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { Person } from "../harness/grasp-people.js";
import { rawPush, zeroId } from "../harness/grasp-raw-push.js";
import { onCluster, Story } from "../harness/grasp-story.js";
import { until } from "../harness/server.js";

describe("gitworkshop: protocol v0, no side-band, report-status and delete-refs only", () => {
  const capabilities = "report-status delete-refs agent=browser";
  let story: Story;
  before(async () => {
    story = await Story.begin();
  });
  after(() => story.end());

  it("the advertisement has every capability it demands", async () => {
    const alice = new Person();
    await story.hosted(alice, "caps");
    const response = await fetch(`${story.url(alice, "caps")}/info/refs?service=git-upload-pack`);
    const text = await response.text();
    const demanded = ["multi_ack_detailed", "side-band-64k", "shallow", "object-format=sha1", "filter"];
    for (const token of [...demanded, "allow-tip-sha1-in-want", "allow-reachable-sha1-in-want", "symref=HEAD:"]) {
      assert.ok(text.includes(token), token);
    }
    assert.equal(response.headers.get("access-control-allow-origin"), "*");
  });

  it("right after two OKs it pushes, gets a plain report, and reads every ref back", async () => {
    const alice = new Person();
    await story.announce(alice, "web");
    const work = await story.workingCopy();
    const tip = await work.commit("one");
    await story.state(alice, "web", { "refs/heads/main": tip });
    const url = story.url(alice, "web");
    const commands = [{ old: zeroId, new: tip, ref: "refs/heads/main" }];
    const { status, text } = await rawPush(url, { commands, capabilities, from: work.folder, objects: [tip] });
    assert.equal(status, 200);
    assert.equal(text, "000eunpack ok\n0017ok refs/heads/main\n0000");
    assert.equal((await story.advertised(alice, "web"))["refs/heads/main"], tip);
    const again = await rawPush(url, { commands, capabilities, from: work.folder, objects: [tip] });
    assert.equal(again.text, "000eunpack ok\n0017ok refs/heads/main\n0000", "a report for a no-op push too");
  });

  it("a refusal is first one ERR line, then the report, with status 200", async () => {
    const alice = new Person();
    const { work, tip, url } = await story.hosted(alice, "refused");
    const two = await work.commit("two");
    const commands = [{ old: tip, new: two, ref: "refs/heads/main" }];
    const { status, text } = await rawPush(url, { commands, capabilities, from: work.folder, objects: [two] });
    assert.equal(status, 200);
    assert.match(text, /^[0-9a-f]{4}ERR authorisation failed: no state by a maintainer lists refs\/heads\/main/);
    assert.match(text, /ng refs\/heads\/main no state by a maintainer/);
    assert.doesNotMatch(text, /not found|\b404\b/);
  });

  it("it deletes a branch with delete-refs and no pack", async () => {
    const alice = new Person();
    const { work, tip, url } = await story.hosted(alice, "delete");
    const two = await work.commit("two");
    await story.state(alice, "delete", { "refs/heads/main": tip, "refs/heads/side": two });
    await work.must("push", "-q", url, "main:side");
    await work.must("tag", "-a", "v", "-m", "v");
    const tag = await work.must("rev-parse", "refs/tags/v");
    await story.state(alice, "delete", { "refs/heads/main": tip, "refs/tags/v": tag });
    const commands = [
      { old: two, new: zeroId, ref: "refs/heads/side" },
      { old: zeroId, new: tag, ref: "refs/tags/v" },
    ];
    const { text } = await rawPush(url, { commands, capabilities, from: work.folder, objects: [tag] });
    assert.match(text, /ok refs\/heads\/side\n.*ok refs\/tags\/v\n/s);
    assert.deepEqual(Object.keys(await story.advertised(alice, "delete")), [
      "HEAD",
      "refs/heads/main",
      "refs/tags/v",
      "refs/tags/v^{}",
    ]);
  });

  it("threats 2: push certificates, commands twice and lines nobody knows are refused, and nothing is left", async () => {
    const alice = new Person();
    const { work, tip, url } = await story.hosted(alice, "certificates");
    const two = await work.commit("two");
    await story.state(alice, "certificates", { "refs/heads/main": two });
    const line = (text: string): string => (text.length + 4).toString(16).padStart(4, "0") + text;
    const command = `${tip} ${two} refs/heads/main`;
    const heads = [
      `${line("push-cert\0report-status\n")}${line("certificate version 0.1\n")}${line(`${command}\n`)}${line("push-cert-end\n")}0000`,
      `${line(`${command}\0report-status`)}${line(command)}0000`,
      `${line(`${command}\0report-status`)}${line("option ci.skip")}0000`,
    ];
    for (const head of heads) {
      const { text } = await rawPush(url, { commands: [], capabilities: "", head, from: work.folder, objects: [two] });
      assert.doesNotMatch(text, /unpack ok/, head);
    }
    assert.equal((await story.advertised(alice, "certificates"))["refs/heads/main"], tip);
    const left = story.isOnOneDisk ? fs.readdirSync(`${story.directory(alice, "certificates")}/objects`) : [];
    assert.deepEqual(
      left.filter((name) => name.startsWith("tmp_")),
      [],
    );
  });
});

// A second counts here, and a cluster's time goes on while the story is told: see test/cluster/stories.cluster.ts.
describe("Shakespeare: isomorphic-git, the state lists every local ref and one branch is pushed", {
  skip: onCluster,
}, () => {
  const clock = new ManualClock(Date.now());
  let story: Story;
  before(async () => {
    story = await Story.begin({ clock });
  });
  after(() => story.end());

  it("the push is reported, and after ten seconds the state is served as partial; a second push renews nothing", async () => {
    const alice = new Person();
    await story.announce(alice, "app");
    const work = await story.workingCopy();
    const first = await work.commit("one");
    await work.must("checkout", "-q", "-b", "draft");
    const draft = await work.commit("draft");
    await work.must("checkout", "-q", "main");
    const second = await work.commit("two");
    const state = await story.state(
      alice,
      "app",
      { "refs/heads/main": second, "refs/heads/draft": draft, "refs/heads/old": first },
      second,
    );
    const url = story.url(alice, "app");
    const push = (ref: string) => git.push({ fs, http, dir: work.folder, url, ref, remoteRef: ref });
    const pushed = await push("main");
    assert.equal(pushed.ok, true);
    assert.equal(pushed.refs["refs/heads/main"]?.ok, true);
    assert.equal((await story.advertised(alice, "app"))["refs/heads/main"], second, "what was pushed is there");
    assert.equal(await story.isServed(state), false, "the rest may still come");
    clock.advance(6_000);
    assert.equal((await push("main")).ok, true, "a non-empty report for a push that moves nothing");
    clock.advance(3_000);
    assert.equal(await story.isServed(state), false);
    clock.advance(2_100);
    assert.ok(await until(() => story.isServed(state)));
    const refs = await story.advertised(alice, "app");
    assert.deepEqual(refs, { HEAD: second, "refs/heads/main": second, "refs/heads/old": first });
    await work.must("push", "-q", url, "draft");
    assert.equal((await story.advertised(alice, "app"))["refs/heads/draft"], draft, "a partial state can be completed");
  });
});

describe("ngit: a pull request's data comes before its event", () => {
  let story: Story;
  before(async () => {
    story = await Story.begin();
  });
  after(() => story.end());

  const pullRequest = (author: Person, owner: Person, identifier: string, tip: string) =>
    author.sign(1618, [
      ["a", owner.coordinate(identifier)],
      ["c", tip],
      ["clone", story.url(owner, identifier)],
      ["subject", "please"],
    ]);

  it("the ref is not shown until the event comes; then the event is served with its OK", async () => {
    const [alice, bob] = [new Person(), new Person()];
    const { work, url } = await story.hosted(alice, "pr");
    const tip = await work.commit("change");
    const event = pullRequest(bob, alice, "pr", tip);
    await work.must("push", "-q", url, `main:refs/nostr/${event.id}`);
    assert.equal((await story.advertised(alice, "pr"))[`refs/nostr/${event.id}`], undefined);
    const answer = await story.publish(event);
    assert.deepEqual(answer, { ok: true, message: "" });
    assert.ok(await story.isServed(event));
    assert.equal((await story.advertised(alice, "pr"))[`refs/nostr/${event.id}`], tip);
  });

  it("event first: it waits, the push of its commit releases it, another commit is refused", async () => {
    const [alice, bob] = [new Person(), new Person()];
    const { work, tip: base, url } = await story.hosted(alice, "pr2");
    const tip = await work.commit("change");
    const event = pullRequest(bob, alice, "pr2", tip);
    assert.match((await story.publish(event)).message, /^purgatory:/);
    const wrong = await work.git("push", url, `${base}:refs/nostr/${event.id}`);
    assert.match(wrong.stderr, new RegExp(`the c tag of that event names ${tip.slice(0, 8)}, not ${base.slice(0, 8)}`));
    assert.equal(await story.isServed(event), false);
    const pushed = await work.git("push", url, `${tip}:refs/nostr/${event.id}`);
    assert.match(pushed.stderr, /remote: the pull request is served from now on/);
    assert.ok(await story.isServed(event));
    const deleted = await work.git("push", url, `:refs/nostr/${event.id}`);
    assert.match(deleted.stderr, /cannot be deleted by a push: it belongs to its event/);
  });

  it("threats 10: whoever pushed last to an unknown event does not decide; its c does", async () => {
    const [alice, bob] = [new Person(), new Person()];
    const { work, url } = await story.hosted(alice, "pr3");
    const tip = await work.commit("change");
    const event = pullRequest(bob, alice, "pr3", tip);
    await work.must("push", "-q", url, `${tip}:refs/nostr/${event.id}`);
    const other = await work.commit("somebody else's");
    await work.must("push", "-q", "--force", url, `${other}:refs/nostr/${event.id}`);
    await story.publish(event);
    assert.equal((await story.advertised(alice, "pr3"))[`refs/nostr/${event.id}`], tip);
  });

  it("threats 10: data that lacks the event's commit goes when the event comes", async () => {
    const [alice, bob] = [new Person(), new Person()];
    const { work, url } = await story.hosted(alice, "pr4");
    const parked = await work.commit("parked");
    await work.must("checkout", "-q", "HEAD~1");
    const tip = await work.commit("change", "other");
    const event = pullRequest(bob, alice, "pr4", tip);
    await work.must("push", "-q", url, `${parked}:refs/nostr/${event.id}`);
    assert.match((await story.publish(event)).message, /^purgatory:/);
    const fetched = await (await story.workingCopy()).git("fetch", url, parked);
    assert.match(fetched.stderr, /not our ref/);
    if (story.isOnOneDisk) assert.deepEqual(fs.readdirSync(`${story.directory(alice, "pr4")}/unclaimed`), []);
  });

  it("threats 18: an event for another repository does not open this one", async () => {
    const [alice, eve] = [new Person(), new Person()];
    const { work, url } = await story.hosted(alice, "pr5");
    await story.hosted(eve, "hers");
    const tip = await work.commit("change");
    const event = pullRequest(eve, eve, "hers", tip);
    await story.publish(event);
    const pushed = await work.git("push", url, `${tip}:refs/nostr/${event.id}`);
    assert.match(pushed.stderr, /that event is for another repository: push to the one its a tag names/);
  });

  it("a deleted pull request takes its ref along", async () => {
    const [alice, bob] = [new Person(), new Person()];
    const { work, url } = await story.hosted(alice, "pr6");
    const tip = await work.commit("change");
    const event = pullRequest(bob, alice, "pr6", tip);
    await work.must("push", "-q", url, `${tip}:refs/nostr/${event.id}`);
    await story.accepted(event);
    await story.accepted(bob.sign(5, [["e", event.id]]));
    assert.equal((await story.advertised(alice, "pr6"))[`refs/nostr/${event.id}`], undefined);
  });
});
