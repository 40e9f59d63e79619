// The waiting room over time, on a clock the test drives (purgatory.md, "Waiting room"). Told of one server, and of a cluster
// (npm run test:cluster): then what is looked at is looked at on every machine.

import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { drivenTime } from "../harness/driven-time.js";
import { Person } from "../harness/grasp-people.js";
import { Story, stateEvent } from "../harness/grasp-story.js";
import { until } from "../harness/server.js";

const minute = 60_000;
const hour = 60 * minute;

describe("waiting and expiry", () => {
  const clock = drivenTime();
  let story: Story;
  before(async () => {
    story = await Story.begin({ ...clock.parts, settings: { NGIT_PING_INTERVAL_SECS: "1d" } });
  });
  after(() => story.end());

  const person = (): Person => new Person(Math.floor(clock.nowMs() / 1000), 600);
  /** Sweeps come round on the same clock. */
  const eventually = (isSo: () => Promise<boolean> | boolean): Promise<boolean> =>
    until(async () => {
      clock.advance(200);
      return isSo();
    });
  const status = (owner: Person, identifier: string): Promise<number | string> => story.status(owner, identifier);
  const isOnADisk = (owner: Person, identifier: string): boolean =>
    story.directories(owner, identifier).some((directory) => existsSync(directory));

  it("an announcement without data loses its repository after 30 minutes, and a state within a day revives it", async () => {
    const alice = person();
    await story.announce(alice, "soft");
    clock.advance(29 * minute);
    assert.equal(await status(alice, "soft"), 200);
    clock.advance(2 * minute);
    assert.ok(await eventually(async () => (await status(alice, "soft")) === 404));
    assert.ok(await eventually(() => !isOnADisk(alice, "soft")));
    const work = await story.workingCopy();
    const tip = await work.commit("late");
    const state = await story.state(alice, "soft", { "refs/heads/main": tip });
    assert.equal(await status(alice, "soft"), 200);
    await work.must("push", "-q", story.url(alice, "soft"), "main");
    assert.ok(await story.isServed(state));
  });

  it("a soft announcement is gone after a day: then a state has no announcement", async () => {
    const alice = person();
    await story.announce(alice, "gone");
    clock.advance(31 * minute);
    assert.ok(await eventually(async () => (await status(alice, "gone")) === 404));
    clock.advance(24 * hour + minute);
    // A stranger's state changes nothing by being refused.
    const eve = person();
    const refusal = async (): Promise<string> =>
      (await story.publish(stateEvent(eve, "gone", { "refs/heads/main": "1".repeat(40) }))).message;
    assert.ok(
      await eventually(async () => (await refusal()) === "invalid: no announcement exists for this repository"),
    );
  });

  it("a client that sends a soft announcement again has its repository again", async () => {
    const alice = person();
    const event = await story.announce(alice, "revived");
    clock.advance(31 * minute);
    assert.ok(await eventually(async () => (await status(alice, "revived")) === 404));
    assert.match((await story.publish(event)).message, /^purgatory:/);
    assert.equal(await status(alice, "revived"), 200);
  });

  it("a state restarts the clock of its announcement; unfinished states of clients go and may come again", async () => {
    const alice = person();
    await story.announce(alice, "restart");
    clock.advance(20 * minute);
    const work = await story.workingCopy();
    const tip = await work.commit("one");
    const state = await story.state(alice, "restart", { "refs/heads/main": tip });
    clock.advance(20 * minute);
    assert.equal(await status(alice, "restart"), 200, "40 minutes after the announcement, 20 after the state");
    clock.advance(11 * minute);
    assert.ok(await eventually(async () => (await status(alice, "restart")) === 404));
    // The same sweep ends the state's own wait right after its announcement's.
    const sentAgain = async (): Promise<boolean> => {
      assert.match((await story.publish(state)).message, /^purgatory:/);
      return (await status(alice, "restart")) === 200;
    };
    assert.ok(await eventually(sentAgain));
    await work.must("push", "-q", story.url(alice, "restart"), "main");
    assert.ok(await story.isServed(state));
  });

  it("threats 18: data for an event that never comes is gone with its objects after 30 minutes", async () => {
    const alice = person();
    const { work } = await story.hosted(alice, "placeholder");
    const tip = await work.commit("parked");
    const urls = story.urls(alice, "placeholder");
    const ids = urls.map((_, index) => `ab${index}c`.repeat(16));
    // Whichever machine takes a push, one of them ends the wait.
    for (const [index, url] of urls.entries()) await work.must("push", "-q", url, `${tip}:refs/nostr/${ids[index]}`);
    const folders = story.directories(alice, "placeholder").map((directory) => join(directory, "unclaimed"));
    const kept = (): string[] => folders.flatMap((folder) => (existsSync(folder) ? readdirSync(folder) : []));
    assert.deepEqual(kept(), ids);
    clock.advance(31 * minute);
    assert.ok(await eventually(() => kept().length === 0), `left: ${kept()}`);
    for (const url of urls) {
      const fetched = await (await story.workingCopy()).git("fetch", url, tip);
      assert.match(fetched.stderr, /not our ref/);
    }
  });

  it("a wall clock that jumps an hour ends nothing", async () => {
    const alice = person();
    await story.announce(alice, "jump");
    clock.jumpWall(hour);
    clock.advance(1_000);
    clock.advance(1_000);
    assert.equal(await status(alice, "jump"), 200);
    clock.advance(20 * minute);
    assert.equal(await status(alice, "jump"), 200);
    clock.advance(11 * minute);
    assert.ok(await eventually(async () => (await status(alice, "jump")) === 404));
  });

  it("related events wait with their repository and are served with it", async () => {
    const [alice, bob] = [person(), person()];
    await story.announce(alice, "related");
    const issue = bob.sign(1621, [["a", alice.coordinate("related")]], "it is broken");
    assert.match((await story.publish(issue)).message, /^purgatory:/);
    assert.equal(await story.isServed(issue), false);
    const work = await story.workingCopy();
    const tip = await work.commit("one");
    await story.state(alice, "related", { "refs/heads/main": tip });
    await work.must("push", "-q", story.url(alice, "related"), "main");
    assert.ok(await story.isServedByAll(issue));
  });

  it("a state without refs changes nothing: it releases no announcement and licenses no deletion", async () => {
    const alice = person();
    await story.announce(alice, "nothing");
    const empty = stateEvent(alice, "nothing", {});
    await story.publish(empty);
    assert.equal(await story.isServed(empty), false);
    const { work, url } = await story.hosted(alice, "something");
    assert.ok((await story.publish(stateEvent(alice, "something", {}))).ok);
    const pushed = await work.git("push", url, ":refs/heads/main");
    assert.match(pushed.stderr, /remote rejected/);
    assert.ok((await story.advertised(alice, "something"))["refs/heads/main"]);
  });

  it("kind 5 ends a wait: the entry, its repository, and what a push would have done", async () => {
    const alice = person();
    const announcement = await story.announce(alice, "withdrawn");
    await story.accepted(alice.sign(5, [["e", announcement.id]]));
    assert.equal(await status(alice, "withdrawn"), 404);
    assert.ok(await eventually(() => !isOnADisk(alice, "withdrawn")));
    const bob = person();
    const { work, tip, url } = await story.hosted(bob, "state-deleted");
    const two = await work.commit("two");
    const state = await story.state(bob, "state-deleted", { "refs/heads/main": two });
    await story.accepted(bob.sign(5, [["e", state.id]]));
    assert.match((await work.git("push", url, "main")).stderr, /remote rejected/);
    assert.equal((await story.advertised(bob, "state-deleted"))["refs/heads/main"], tip);
  });

  it("threats 11: a governing state that is deleted moves nothing, and the one before does not come back", async () => {
    const [alice, bob] = [person(), person()];
    const { work, url } = await story.hosted(alice, "mark", [["maintainers", bob.pubkey]]);
    const two = await work.commit("two");
    const older = stateEvent(bob, "mark", { "refs/heads/main": two });
    const newer = await story.state(alice, "mark", { "refs/heads/main": two, "refs/heads/x": two });
    await work.must("push", "-q", url, "main", "main:x");
    await story.accepted(alice.sign(5, [["e", newer.id]]));
    await story.publish(older);
    const refs = await story.advertised(alice, "mark");
    assert.equal(refs["refs/heads/x"], two, "an older state does not decide any more");
    const replay = await work.git("push", url, ":refs/heads/x");
    assert.match(replay.stderr, /remote rejected/);
  });

  it("a repository announced again after its deletion is served again with what it had", async () => {
    const alice = person();
    const { tip } = await story.hosted(alice, "back");
    await story.accepted(alice.sign(5, [["a", alice.coordinate("back")]]));
    assert.equal(await status(alice, "back"), 404);
    assert.ok(existsSync(story.directory(alice, "back")), "its data is kept for the grace period");
    const again = story.announcement(alice, "back");
    assert.deepEqual(await story.publish(again), { ok: true, message: "" });
    assert.equal((await story.advertised(alice, "back"))["refs/heads/main"], tip);
  });

  it("threats 1: a state whose ids are refspecs or options waits, releases nothing, and expires", async () => {
    const alice = person();
    const { tip } = await story.hosted(alice, "refspec");
    for (const value of ["+refs/heads/x:refs/heads/main", "--upload-pack=touch /tmp/x", tip.toUpperCase()]) {
      const state = await story.state(alice, "refspec", { "refs/heads/main": value });
      assert.equal(await story.isServed(state), false);
    }
    assert.equal((await story.advertised(alice, "refspec"))["refs/heads/main"], tip);
  });

  it("threats 16: a push that moves nothing does not get a waiting state served, nor start its clock", async () => {
    const alice = person();
    const { work, tip, url } = await story.hosted(alice, "noop");
    const state = await story.state(alice, "noop", { "refs/heads/main": tip, "refs/heads/far": "1".repeat(40) });
    await work.must("push", "-q", url, "main");
    clock.advance(30_000);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(await story.isServed(state), false);
    const deletion = await work.git("push", url, ":refs/heads/main");
    assert.match(deletion.stderr, /the state lists refs\/heads\/main|remote rejected/);
  });

  it("threats 17: many keys that list an owner get copies up to the cap and no more", async () => {
    const alice = person();
    const { tip } = await story.hosted(alice, "famous");
    const strangers = Array.from({ length: 22 }, () => person());
    for (const stranger of strangers) await story.announce(stranger, "famous", [["maintainers", alice.pubkey]]);
    const filled = await Promise.all(strangers.map((stranger) => story.advertised(stranger, "famous")));
    assert.ok(
      filled.every((refs) => refs["refs/heads/main"] === tip),
      "each is filled by its own announcement",
    );
    await story.state(alice, "famous", { "refs/heads/main": tip, "refs/heads/new": tip });
    const moved = await Promise.all(strangers.map((stranger) => story.advertised(stranger, "famous")));
    assert.equal(moved.filter((refs) => refs["refs/heads/new"] === tip).length, 19, "twenty with alice's own");
  });

  it("threats 12: a stranger's repository of the same name shares nothing", async () => {
    const [alice, eve] = [person(), person()];
    const { tip } = await story.hosted(alice, "same");
    await story.announce(eve, "same");
    const state = await story.state(eve, "same", { "refs/heads/main": tip });
    assert.equal(await story.isServed(state), false, "the object is on this server, but not in her repository");
    assert.deepEqual(await story.advertised(eve, "same"), {});
  });
});
