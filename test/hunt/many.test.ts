// Many repositories, many hosts: what a git server sees of us, what the metrics say, what a restart remembers.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import type { HuntConfig } from "../../src/hunt/core/messages.js";
import { HuntGitServer, WorkingClone } from "../harness/hunt-git-server.js";
import { HuntHouse, until } from "../harness/hunt-house.js";
import { huntWorld } from "../harness/hunt-world.js";
import { keyOf } from "../harness/relay-events.js";

const owner = keyOf("many owner");
const windowMs = 2_000;
const rate = 60;

async function metric(house: HuntHouse, name: string): Promise<Map<string, number>> {
  const found = (await house.registry.getMetricsAsJSON()).find((one) => one.name === name);
  const values = new Map<string, number>();
  for (const { labels, value } of found?.values ?? []) values.set(JSON.stringify(labels), Number(value));
  return values;
}

test("140 repositories that wait at one domain are asked for in turn, within the throttle the server can see", async (context) => {
  const throttled = (config: HuntConfig): HuntConfig => ({
    ...config,
    gitHuntSyncDelayMs: 600_000,
    gitHuntBaseBackoffSecs: 300,
    gitHuntMaxBackoffSecs: 300,
    windowMs,
    gitDomainConcurrent: 5,
    gitDomainRate: rate,
  });
  // Stands still while a window lasts: everything is due at one moment, and how fast the machine is does not matter.
  const clock = new ManualClock(Date.now());
  const { house, work, remote } = await huntWorld(context, { hunt: throttled, clock });
  const tip = await work.commit("one");
  await remote.publish("empty", work.path, {});
  await remote.publish("full", work.path, { "refs/heads/main": tip });
  const author = (index: number) => keyOf(`many ${Math.floor(index / 40)}`);
  const enter = async (index: number): Promise<void> => {
    const identifier = `repo-${index}`;
    await house.announce(author(index), identifier, [remote.url(index === 110 ? "full" : "empty")]);
    await house.state(author(index), identifier, { "refs/heads/main": tip });
  };
  for (let first = 0; first < 140; first += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, index) => enter(first + index)));
  }
  await house.room.hunting.caughtUp();
  clock.advance(600_000);
  const queued = await metric(house, "purgatory_sync_queue_size");
  assert.equal(queued.get("{}"), 140);
  const atDomain = async (): Promise<number> =>
    (await metric(house, "purgatory_domain_queued")).get('{"domain":"127.0.0.1"}') ?? 0;
  assert.ok((await atDomain()) > 0, "some wait at their domain");
  const connections = (): number => remote.connectionTimesMs.length;
  const asked = (): number => house.room.hunting.known().filter(({ servers }) => servers.length > 0).length;
  const isOver = async (): Promise<boolean> =>
    asked() >= 139 && (await atDomain()) === 0 && house.room.hunting.fetchesInFlight === 0;
  let windows = 1;
  for (; ; windows++) {
    await until(
      "the window is used up, or nobody waits any more",
      async () => connections() >= rate * windows || isOver(),
    );
    if (await isOver()) break;
    assert.equal(connections(), rate * windows, "no more than the rate in each window");
    clock.advance(windowMs + 1);
  }
  assert.ok(windows > 2, "the throttle was reached");
  const served = await house.refs(house.name(author(110), "repo-110"));
  assert.deepEqual(served, { "refs/heads/main": tip });
  context.diagnostic(
    `${JSON.stringify(remote.counts())}; ${connections()} connections in ${windows} windows, ${remote.mostConnectionsOpen} open at once`,
  );
  assert.ok(remote.mostConnectionsOpen <= 5, `${remote.mostConnectionsOpen} open at once`);
  const counted = [...(await metric(house, "purgatory_domain_requests_total")).values()];
  assert.equal(
    remote.connectionTimesMs.length,
    counted.reduce((sum, value) => sum + value, 0),
    "the throttle counted every connection the server saw",
  );
  assert.deepEqual(house.faults, []);
});

test("every metric of the hunt is fed, and domains beyond a hundred share one label", async (context) => {
  const wide = (config: HuntConfig): HuntConfig => ({
    ...config,
    gitHuntSyncDelayMs: 10,
    gitHuntMaxUrlsPerAnnouncement: 20,
  });
  const house = await HuntHouse.start({
    hunt: wide,
    resolve: async (host) =>
      host === "real.example"
        ? { ok: true, addresses: ["127.0.0.1"] }
        : { ok: false, code: "dns-temporary", message: "no answer" },
  });
  const work = await WorkingClone.make();
  const remote = await HuntGitServer.start("real.example");
  context.after(async () => {
    await house.close();
    await work.remove();
    await remote.close();
  });
  const tip = await work.commit("one");
  await remote.publish("demo", work.path, { "refs/heads/main": tip });
  await house.announce(owner, "demo", [remote.url("demo")]);
  const state = await house.state(owner, "demo", { "refs/heads/main": tip });
  await until("it came, by the pinned address of a name DNS does not know", () => house.isServed(state));
  for (let index = 0; index < 6; index++) {
    const hosts = Array.from({ length: 20 }, (_, host) => `https://h${index}-${host}.example/x.git`);
    await house.announce(owner, `wide-${index}`, hosts);
    await house.state(owner, `wide-${index}`, { "refs/heads/main": tip.replace(/^./, "0") });
  }
  const backOffs = (): number => house.logged.filter(({ message }) => message === "back-off").length;
  await until("all were asked", () => backOffs() >= 6);
  assert.equal((await metric(house, "purgatory_sync_queue_size")).get("{}"), 6);
  assert.equal((await metric(house, "purgatory_sync_attempts_total")).get('{"result":"complete"}'), 1);
  assert.equal((await metric(house, "purgatory_sync_attempts_total")).get('{"result":"incomplete"}'), 6);
  assert.equal((await metric(house, "purgatory_sync_oids_fetched_total")).get("{}"), 1);
  const requests = await metric(house, "purgatory_domain_requests_total");
  assert.equal(requests.get('{"domain":"real.example","result":"ok"}'), 4);
  const domains = new Set([...requests.keys()].map((labels) => (JSON.parse(labels) as { domain: string }).domain));
  assert.equal(domains.size, 101);
  assert.ok(domains.has("other"));
  const inFlight = await metric(house, "purgatory_domain_in_flight");
  assert.equal(inFlight.get('{"domain":"real.example"}'), 0);
  assert.ok(((await metric(house, "ngit_git_fetch_bytes_total")).get("{}") ?? 0) > 100);
  const seconds = await house.registry.getSingleMetricAsString("ngit_git_fetch_seconds");
  assert.match(seconds, /ngit_git_fetch_seconds_count 1/);
});

async function failing(context: TestContext, clock: ManualClock) {
  let asked = 0;
  const resolve = async () => {
    asked++;
    return { ok: false as const, code: "dns-missing" as const, message: "no such name" };
  };
  const house = await HuntHouse.start({ clock, resolve });
  context.after(() => house.close());
  return { house, resolve, asked: () => asked };
}

test("a host whose name does not exist is left alone after three failures in ten minutes, also after a restart", async (context) => {
  const clock = new ManualClock(Date.now());
  const { house, resolve, asked } = await failing(context, clock);
  await house.announce(owner, "demo", ["https://gone.example/x.git"]);
  await house.state(owner, "demo", { "refs/heads/main": "1".repeat(40) });
  await house.room.hunting.caughtUp();
  const step = async (seconds: number, of: HuntHouse): Promise<void> => {
    for (let at = 0; at < seconds; at += 10) {
      clock.advance(10_000);
      await until("no fetch runs", () => of.room.hunting.fetchesInFlight === 0);
    }
  };
  await step(900, house);
  const before = asked();
  assert.ok(before >= 5, `${before} look-ups`);
  await step(400, house);
  assert.equal(asked(), before, "left alone");
  await house.shut();
  const again = await HuntHouse.start({ from: house, resolve });
  context.after(() => again.shut());
  await step(600, again);
  assert.equal(asked(), before, "still left alone");
  clock.advance(12 * 3_600_000);
  await again.shut();
  const later = await HuntHouse.start({ from: house, resolve });
  context.after(() => later.shut());
  await step(60, later);
  assert.ok(asked() > before, "a clean sheet after twelve hours");
});
