// The hunt end to end, with real git servers on loopback: seed 5's timelines, and what adds up from several servers.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { waitingEntry } from "../../src/catalogue/waiting.js";
import { mustGit } from "../harness/hunt-git-server.js";
import { freeAddress, fromClient, HuntHouse, until } from "../harness/hunt-house.js";
import { huntWorld } from "../harness/hunt-world.js";
import { keyOf } from "../harness/relay-events.js";

const owner = keyOf("hunt owner");
const contributor = keyOf("hunt contributor");

/** Moves the clock in small steps; fetches, which take real time, end in between. */
async function advance(house: HuntHouse, clock: ManualClock, seconds: number, step = 5): Promise<void> {
  for (let at = 0; at < seconds; at += step) {
    clock.advance(step * 1_000);
    if (house.room.hunting.fetchesInFlight > 0) {
      await until("the fetches ended", () => house.room.hunting.fetchesInFlight === 0);
      await house.room.hunting.caughtUp();
    }
  }
}

test("timeline C: a synced state's refs are served when the data was found on a listed server", async (context) => {
  const { house, work, remote } = await huntWorld(context);
  const tip = await work.commitFile("a", "one");
  await remote.publish("demo", work.path, { "refs/heads/main": tip });
  const name = house.name(owner, "demo");
  const announcement = await house.announce(owner, "demo", [remote.url("demo")]);
  const begun = performance.now();
  const state = await house.state(owner, "demo", { "refs/heads/main": tip });
  assert.equal(await house.isServed(state), false);
  await until("the state is served", () => house.isServed(state));
  context.diagnostic(`synced state to served refs: ${Math.round(performance.now() - begun)} ms`);
  context.diagnostic(`requests: ${JSON.stringify(remote.counts())}, connections ${remote.connectionTimesMs.length}`);
  assert.equal(await house.isServed(announcement), true);
  assert.deepEqual(await house.refs(name), { "refs/heads/main": tip });
  assert.deepEqual(house.released.map(({ kind, via }) => `${kind} ${via}`).sort(), ["announcement hunt", "state hunt"]);
  await until("the fetch is over", async () => (await house.leftovers(name)).length === 0);
  assert.deepEqual(remote.counts(), { "info/refs": 2, "ls-refs": 1, fetch: 1, other: 0 });
  assert.deepEqual(house.room.hunting.known(), []);
  assert.deepEqual(house.faults, []);
});

test("data that is here already when it is looked for releases what waits for it", async (context) => {
  const { house, work } = await huntWorld(context);
  const tip = await work.commitFile("a", "one");
  const name = house.name(owner, "demo");
  await house.announce(owner, "demo", []);
  const state = await house.state(owner, "demo", { "refs/heads/main": tip });
  await house.room.hunting.caughtUp();
  assert.equal(await house.isServed(state), false);
  // As a fetch for another event leaves it that ended a moment before this one came: objects, and nobody who was told.
  await mustGit([
    "--git-dir",
    house.repository(name).directory,
    "fetch",
    "-q",
    "--no-write-fetch-head",
    work.path,
    tip,
  ]);
  house.room.hunting.found(name, { missing: [], pullRequests: [] });
  await until("the state is served", () => house.isServed(state));
  assert.deepEqual(await house.refs(name), { "refs/heads/main": tip });
  assert.deepEqual(house.faults, []);
});

test("an update brings only what is new", async (context) => {
  const { house, work, remote } = await huntWorld(context);
  const first = await work.commitFile("big", randomBytes(400_000));
  await remote.publish("demo", work.path, { "refs/heads/main": first });
  await house.announce(owner, "demo", [remote.url("demo")], { created_at: house.now - 10 });
  const one = await house.state(owner, "demo", { "refs/heads/main": first }, { created_at: house.now - 5 });
  await until("the first state is served", () => house.isServed(one));
  const second = await work.commitFile("small", "y");
  await mustGit(["push", "-q", `${remote.folder}/demo.git`, "HEAD:refs/heads/main"], work.path);
  const two = await house.state(owner, "demo", { "refs/heads/main": second });
  await until("the second state is served", () => house.isServed(two));
  const name = house.name(owner, "demo");
  assert.deepEqual(await house.refs(name), { "refs/heads/main": second });
  const packs = await house.packs(name);
  assert.equal(packs.length, 2);
  const counted = await mustGit(["--git-dir", house.repository(name).directory, "count-objects", "-v"]);
  assert.match(counted, /in-pack: 6\b/);
});

test("a client's state is hunted after three minutes, not before: its push may follow", async (context) => {
  const clock = new ManualClock(Date.now());
  const { house, work, remote } = await huntWorld(context, { clock });
  const tip = await work.commit("one");
  await remote.publish("demo", work.path, { "refs/heads/main": tip });
  await house.announce(owner, "demo", [remote.url("demo")], { source: fromClient });
  const state = await house.state(owner, "demo", { "refs/heads/main": tip }, { source: fromClient });
  await house.room.hunting.caughtUp();
  clock.advance(179_000);
  await house.room.hunting.caughtUp();
  assert.equal(remote.requests.length, 0, "three minutes are not over");
  clock.advance(2_000);
  await until("it is hunted after three minutes", () => house.isServed(state));
});

test("timeline A: a push within three minutes releases a client's state, and nothing is hunted", async (context) => {
  const clock = new ManualClock(Date.now());
  const { house, work, remote } = await huntWorld(context, { clock, listensAt: await freeAddress() });
  const tip = await work.commit("one");
  await remote.publish("demo", work.path, { "refs/heads/main": tip });
  await house.announce(owner, "demo", [remote.url("demo")], { source: fromClient });
  const state = await house.state(owner, "demo", { "refs/heads/main": tip }, { source: fromClient });
  await house.room.hunting.caughtUp();
  assert.equal(house.room.hunting.known().length, 1);
  clock.advance(30_000);
  await mustGit(["push", "-q", house.url(house.name(owner, "demo")), `${tip}:refs/heads/main`], work.path);
  assert.equal(await house.isServed(state), true);
  await house.room.hunting.caughtUp();
  assert.deepEqual(house.room.hunting.known(), []);
  clock.advance(300_000);
  await house.room.hunting.caughtUp();
  assert.equal(remote.requests.length, 0);
});

test("a pull request's tip that a push brings along is not looked for any more, though its repository still waits", async (context) => {
  const clock = new ManualClock(Date.now());
  const { house, work } = await huntWorld(context, { clock, listensAt: await freeAddress() });
  const other = "0123456789abcdef0123456789abcdef01234567";
  const [below, tip] = [await work.commit("one"), await work.commit("two")];
  const name = house.name(owner, "demo");
  await house.announce(owner, "demo", [], { source: fromClient });
  const refs = { "refs/heads/main": tip, "refs/heads/other": other };
  const state = await house.state(owner, "demo", refs, { source: fromClient });
  const pullRequest = await house.pullRequest(contributor, name, below, ["https://nobody.test/x.git"], fromClient);
  const missing = async (): Promise<string[]> => {
    await house.room.hunting.caughtUp();
    return house.room.hunting.known().flatMap((known) => known.missing.map(({ event }) => event));
  };
  assert.deepEqual((await missing()).sort(), [state.id, pullRequest.id].sort());
  // Looks that follow others ask for it no more.
  await house.pullRequest(contributor, name, other, [], fromClient);
  assert.equal((await missing()).length, 3);
  await mustGit(["push", "-q", house.url(name), `${tip}:refs/heads/main`], work.path);
  assert.equal(await house.isServed(pullRequest), false);
  assert.ok(!(await missing()).includes(pullRequest.id));
  assert.deepEqual(house.faults, []);
});

test("two servers and a plain git server: what one was pushed, the other serves by hunting", async (context) => {
  const { house: one, work, remote } = await huntWorld(context, { listensAt: await freeAddress() });
  const two = await HuntHouse.start({ listensAt: await freeAddress() });
  context.after(() => two.close());
  const name = one.name(owner, "demo");
  const tip = await work.commitFile("a", randomBytes(50_000));
  const side = await work.orphan("side");
  await remote.publish("demo", work.path, { "refs/heads/side": side });
  const extra = { source: fromClient, relays: [`ws://${two.domain}`], created_at: one.now - 5 };
  const announcement = await one.announce(owner, "demo", [two.url(name), remote.url("demo")], extra);
  const early = await one.state(
    owner,
    "demo",
    { "refs/heads/main": tip },
    { source: fromClient, created_at: one.now - 4 },
  );
  await mustGit(["push", "-q", one.url(name), `${tip}:refs/heads/main`], work.path);
  assert.equal(await one.isServed(early), true);
  // What event sync will bring: here it is handed over.
  await two.submit(announcement);
  const begun = performance.now();
  await two.submit(early);
  await until("the second server serves it", () => two.isServed(early));
  context.diagnostic(
    `from the synced state to served refs at the second server: ${Math.round(performance.now() - begun)} ms`,
  );
  const again = performance.now();
  const state = await two.state(owner, "demo", { "refs/heads/main": tip, "refs/heads/side": side });
  await one.submit(state);
  await until("both serve the second state", async () => (await one.isServed(state)) && (await two.isServed(state)));
  context.diagnostic(
    `a second state, its branch only at the plain server, at both: ${Math.round(performance.now() - again)} ms`,
  );
  context.diagnostic(`the plain server saw ${JSON.stringify(remote.counts())}`);
  for (const house of [one, two]) {
    const listed = await mustGit(["ls-remote", house.url(name)]);
    assert.match(listed, new RegExp(`${tip}\trefs/heads/main`));
    assert.match(listed, new RegExp(`${side}\trefs/heads/side`));
    assert.deepEqual(house.faults, []);
  }
});

test("timeline B: git first: a state whose data is here is served at once and never hunted", async (context) => {
  const { house, work, remote } = await huntWorld(context);
  const first = await work.commit("one");
  const second = await work.commit("two");
  await remote.publish("demo", work.path, { "refs/heads/main": second });
  await house.announce(owner, "demo", [remote.url("demo")], { created_at: house.now - 20 });
  const newest = await house.state(owner, "demo", { "refs/heads/main": second }, { created_at: house.now - 10 });
  await until("the data came", () => house.isServed(newest));
  const before = remote.requests.length;
  const state = await house.state(owner, "demo", { "refs/heads/main": first, "refs/heads/dev": second });
  assert.equal(await house.isServed(state), true);
  await house.room.hunting.caughtUp();
  assert.equal(remote.requests.length, before);
  assert.deepEqual(await house.refs(house.name(owner, "demo")), { "refs/heads/dev": second, "refs/heads/main": first });
});

test("timeline D: data that never comes: tried with growing pauses, gone soft at 30 minutes by the clock", async (context) => {
  const clock = new ManualClock(Date.now());
  const { house, work, remote } = await huntWorld(context, { clock });
  const tip = await work.commit("here");
  const lacking = await work.commit("nowhere");
  await remote.publish("demo", work.path, { "refs/heads/other": tip });
  await house.announce(owner, "demo", [remote.url("demo")]);
  const state = await house.state(owner, "demo", { "refs/heads/main": lacking });
  await house.room.hunting.caughtUp();
  const startedMs = clock.monotonicMs();
  const attempts: number[] = [];
  let seen = 0;
  for (let second = 0; second < 1_810; second += 1) {
    await advance(house, clock, 1, 1);
    const looks = (): number => remote.requests.filter(({ command }) => command === "ls-refs").length;
    if (looks() > seen) {
      seen = looks();
      attempts.push(Math.round((clock.monotonicMs() - startedMs) / 1_000));
    }
  }
  context.diagnostic(`attempts at seconds ${attempts.slice(0, 8).join(", ")} …, ${attempts.length} in all`);
  assert.deepEqual(attempts.slice(0, 6), [1, 21, 61, 141, 261, 381]);
  const known = house.room.hunting.knownOf(house.name(owner, "demo"));
  assert.deepEqual(known?.missing, [{ event: state.id, soft: false, ids: [lacking] }]);
  assert.equal(known?.servers[0]?.answer, "ok");
  assert.equal(known?.servers[0]?.refused, 1);
  await house.sweep();
  await house.room.hunting.caughtUp();
  assert.equal((await waitingEntry(house.store, state.id))?.phase, "soft");
  assert.equal(await house.gitHost.repositories.exists(house.repository(house.name(owner, "demo")).address), false);
  const before = remote.requests.length;
  await advance(house, clock, 900);
  assert.equal(remote.requests.length, before, "a soft entry is hunted hourly only");
  // The server has it at last: the hourly round finds it, and the repository comes back.
  await mustGit(["push", "-q", `${remote.folder}/demo.git`, "HEAD:refs/heads/main"], work.path);
  await advance(house, clock, 3_600);
  await until("the soft state is served", () => house.isServed(state));
  assert.deepEqual(await house.refs(house.name(owner, "demo")), { "refs/heads/main": lacking });
});

test("a pull request's commit comes from its own clone URL, for that commit only", async (context) => {
  const { house, work, remotes } = await huntWorld(context, {}, 2);
  const [remote, fork] = remotes;
  assert.ok(remote && fork);
  const base = await work.commit("base");
  await remote.publish("demo", work.path, { "refs/heads/main": base });
  const tip = await work.commit("change");
  await fork.publish("fork", work.path, { "refs/heads/topic": tip });
  await house.announce(owner, "demo", [remote.url("demo")], { created_at: house.now - 5 });
  const state = await house.state(owner, "demo", { "refs/heads/main": base });
  await until("the repository is served", () => house.isServed(state));
  const name = house.name(owner, "demo");
  const pullRequest = await house.pullRequest(contributor, name, tip, [fork.url("fork")]);
  await until("the pull request is served", () => house.isServed(pullRequest));
  assert.deepEqual(await house.refs(name), { "refs/heads/main": base, [`refs/nostr/${pullRequest.id}`]: tip });
  assert.ok(fork.counts().fetch >= 1);
});

test("ids spread over three servers add up, one of them named only in the pull request", async (context) => {
  const { house, work, remotes } = await huntWorld(context, {}, 3);
  const [first, second, third] = remotes;
  assert.ok(first && second && third);
  const main = await work.commit("main");
  const dev = await work.orphan("dev");
  const topic = await work.orphan("topic");
  await first.publish("demo", work.path, { "refs/heads/main": main });
  await second.publish("demo", work.path, { "refs/heads/dev": dev });
  await third.publish("demo", work.path, { "refs/heads/topic": topic });
  const name = house.name(owner, "demo");
  await house.announce(owner, "demo", [first.url("demo"), second.url("demo")]);
  const state = await house.state(owner, "demo", { "refs/heads/main": main, "refs/heads/dev": dev });
  const pullRequest = await house.pullRequest(contributor, name, topic, [third.url("demo")]);
  await until("both are served", async () => (await house.isServed(state)) && (await house.isServed(pullRequest)));
  assert.deepEqual(await house.refs(name), {
    "refs/heads/dev": dev,
    "refs/heads/main": main,
    [`refs/nostr/${pullRequest.id}`]: topic,
  });
  context.diagnostic(`requests: ${remotes.map((remote) => JSON.stringify(remote.counts())).join(" ")}`);
  assert.deepEqual(house.faults, []);
});

test("a hunt goes on after a restart in the middle, and what waited before it does not expire at once", async (context) => {
  const clock = new ManualClock(Date.now());
  const { house, work, remote, again: startAgain } = await huntWorld(context, { clock });
  const tip = await work.commit("one");
  await remote.publish("demo", work.path, {});
  await house.announce(owner, "demo", [remote.url("demo")]);
  const state = await house.state(owner, "demo", { "refs/heads/main": tip });
  await house.room.hunting.caughtUp();
  clock.advance(1_000);
  await until("an attempt failed", () => house.room.hunting.known()[0]?.servers.length === 1);
  remote.behaviour = { type: "hang" };
  clock.advance(21_000);
  const before = remote.requests.length;
  await until("the next one hangs", () => remote.requests.length > before || remote.connectionsOpen > 0);
  await house.shut();
  assert.equal(house.gitHost.launcher.jobsInFlight, 0);
  clock.advance(3_600_000);
  remote.behaviour = { type: "none" };
  await remote.publish("demo", work.path, { "refs/heads/main": tip });
  const again = await startAgain();
  await again.sweep();
  assert.equal((await waitingEntry(again.store, state.id))?.phase, "waiting", "not before it was hunted once");
  clock.advance(1_000);
  await until("the state is served", () => again.isServed(state));
  assert.deepEqual(again.faults, []);
});

test("a soft state of which a part is on no server is released as partial, and completed when the rest appears", async (context) => {
  const clock = new ManualClock(Date.now());
  const { house, work, remote } = await huntWorld(context, { clock });
  const main = await work.commit("main");
  const lost = await work.orphan("lost");
  await remote.publish("demo", work.path, { "refs/heads/main": main });
  const name = house.name(owner, "demo");
  await house.announce(owner, "demo", [remote.url("demo")], { created_at: house.now - 9 });
  const first = await house.state(owner, "demo", { "refs/heads/main": main }, { created_at: house.now - 8 });
  await house.room.hunting.caughtUp();
  clock.advance(1_000);
  await until("the first state is served", () => house.isServed(first));
  const next = await house.state(owner, "demo", { "refs/heads/dev": main, "refs/heads/lost": lost });
  await house.room.hunting.caughtUp();
  await advance(house, clock, 1_860);
  await house.sweep();
  await house.room.hunting.caughtUp();
  assert.equal(await house.isServed(next), false);
  await advance(house, clock, 3_600);
  await until("the soft state is served in part", () => house.isServed(next));
  assert.deepEqual(await house.refs(name), { "refs/heads/dev": main });
  assert.equal(house.released.at(-1)?.via, "partial");
  await house.room.hunting.caughtUp();
  assert.deepEqual(house.room.hunting.knownOf(name)?.missing, [
    { event: `partial:${next.id}`, soft: true, ids: [lost] },
  ]);
  await mustGit(["push", "-q", `${remote.folder}/demo.git`, `${lost}:refs/heads/lost`], work.path);
  await advance(house, clock, 3_660);
  await until("the rest came", async () => (await house.refs(name))["refs/heads/lost"] === lost);
  assert.deepEqual(await house.refs(name), { "refs/heads/dev": main, "refs/heads/lost": lost });
});
