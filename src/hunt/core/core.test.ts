import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventId } from "../../nostr/event.js";
import { huntConstants } from "./messages.js";
import { DrivenCore, oid } from "./testing/driven-core.js";

const second = 1_000;
const minute = 60 * second;
const event = (number: number) => number.toString(16).padStart(64, "0") as EventId;

/** Every fetch ends at once without anything. */
function deadServers(driver: DrivenCore): void {
  driver.onFetch = (fetch) => driver.finish(fetch.fetch, { failure: "timeout" });
}

const startsOf = (driver: DrivenCore, job: string): number[] =>
  driver.fetches.filter((fetch) => fetch.job === job).map((fetch) => fetch.atMs);

// The fifteen cases of the seed, in its order.

test("next URL: throttled domains are skipped", () => {
  const driver = new DrivenCore({ gitDomainConcurrent: 1, gitDomainRate: 30 });
  driver.announce("busy", "https://a.test/1");
  driver.announce("r", "https://a.test/2", "https://b.test/2");
  driver.waiting("busy", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  driver.waiting("r", { id: "s", ids: [oid(2)] });
  driver.advance(500);
  assert.deepEqual(driver.taken(), ["a.test/1", "b.test/2"]);
});

test("next URL: tried URLs are skipped within an attempt", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1", "https://b.test/1", "https://c.test/1");
  deadServers(driver);
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  assert.deepEqual(driver.taken(), ["a.test/1", "b.test/1", "c.test/1"]);
});

test("next URL: when all are exhausted the attempt ends and nothing starts before its back-off", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  deadServers(driver);
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  driver.taken();
  driver.advance(20 * second - 1);
  assert.deepEqual(driver.taken(), []);
  driver.advance(1);
  assert.deepEqual(driver.taken(), ["a.test/1"]);
});

test("from a URL: what a fetch brings is counted and no longer asked for", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1", "https://b.test/1");
  driver.waiting("r", { id: "s", ids: [oid(1), oid(2)] });
  driver.advance(500);
  driver.finish(1, { arrived: [oid(1)] });
  assert.deepEqual(driver.fetches[1]?.ids, [oid(2)]);
  const counted = driver.of("count").filter((count) => count.metric === "purgatory_sync_oids_fetched_total");
  assert.deepEqual(
    counted.map((count) => count.by),
    [1],
  );
});

test("from a URL: a failed fetch counts nothing and says so in a warning", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  driver.finish(1, { failure: "timeout" });
  assert.equal(
    driver.of("count").some((count) => count.metric === "purgatory_sync_oids_fetched_total"),
    false,
  );
  assert.deepEqual(driver.of("log").find((log) => log.level === "warn")?.fields, {
    url: "https://a.test/1",
    code: "timeout",
  });
});

test("a repository: several URLs are tried until it is complete, then it leaves the queue", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1", "https://b.test/1", "https://c.test/1");
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  assert.equal(driver.core.queueSize, 1);
  driver.finish(1, { failure: "not-git" });
  driver.finish(2, { arrived: [oid(1)] });
  assert.deepEqual(driver.taken(), ["a.test/1", "b.test/1"]);
  assert.equal(driver.core.queueSize, 0);
  driver.advance(3 * 60 * minute);
  assert.deepEqual(driver.taken(), []);
});

test("a repository: throttled domains are queued when it stays incomplete, and served when they free up", () => {
  const driver = new DrivenCore({ gitDomainConcurrent: 1, gitDomainRate: 30 });
  driver.announce("busy", "https://a.test/1");
  driver.announce("r", "https://a.test/2", "https://b.test/2");
  driver.waiting("busy", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  driver.waiting("r", { id: "s", ids: [oid(2)] });
  driver.advance(500);
  driver.finish(2, { failure: "not-git" });
  driver.taken();
  driver.finish(1, { failure: "not-git" });
  assert.deepEqual(driver.fetches[0]?.path, "domain");
  assert.deepEqual(driver.taken(), ["a.test/2"]);
});

test("a repository: partial data of several servers adds up", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1", "https://b.test/1");
  driver.waiting("r", { id: "s", ids: [oid(1), oid(2)] });
  driver.advance(500);
  driver.finish(1, { arrived: [oid(1)] });
  driver.finish(2, { arrived: [oid(2)] });
  assert.equal(driver.core.queueSize, 0);
  assert.equal(driver.of("log").filter((log) => log.message === "repository complete").length, 1);
});

test("back-off: 20, 40, 80, then 120 seconds each", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  deadServers(driver);
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(10 * minute);
  const starts = startsOf(driver, "r");
  assert.deepEqual(
    starts.slice(0, 7).map((atMs, index) => (atMs - (starts[index - 1] ?? 0)) / second),
    [0.5, 20, 40, 80, 120, 120, 120],
  );
});

test("fresh start: a new state sets the back-off to its beginning and moves the next attempt earlier", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  deadServers(driver);
  driver.waiting("r", { id: "s1", ids: [oid(1)] });
  driver.advance(5 * minute);
  driver.taken();
  driver.waiting("r", { id: "s2", ids: [oid(2)] });
  const from = driver.nowMs;
  driver.advance(minute);
  assert.deepEqual(
    startsOf(driver, "r").map((atMs) => atMs - from),
    [500, 20_500],
  );
});

test("ready: neither before its time nor while an attempt is going on", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  driver.waiting("r", { id: "s1", ids: [oid(1)], source: "client" });
  driver.advance(3 * minute - 1);
  assert.deepEqual(driver.taken(), []);
  driver.advance(1);
  assert.deepEqual(driver.taken(), ["a.test/1"]);
  driver.waiting("r", { id: "s2", ids: [oid(2)] });
  driver.advance(10 * second);
  assert.deepEqual(driver.taken(), []);
  driver.finish(1, { failure: "timeout" });
  assert.deepEqual(driver.taken(), ["a.test/1"]);
});

test("throttle: at most five fetches in flight at a domain", () => {
  const driver = new DrivenCore();
  for (let index = 0; index < 9; index++) {
    driver.announce(`r${index}`, `https://a.test/${index}`);
    driver.waiting(`r${index}`, { id: "s", ids: [oid(index)] });
  }
  driver.advance(500);
  assert.equal(driver.running.size, 5);
  driver.finish(3, { failure: "not-git" });
  assert.equal(driver.running.size, 5);
});

test("throttle: at most thirty connections in any minute, and the freed window alone wakes who waits", () => {
  const driver = new DrivenCore();
  deadServers(driver);
  for (let index = 0; index < 31; index++) {
    driver.announce(`r${index}`, `https://a.test/${index}`);
    driver.waiting(`r${index}`, { id: "s", ids: [oid(index)] });
  }
  driver.advance(500);
  assert.equal(driver.fetches.length, 30);
  driver.advance(minute - 1);
  assert.equal(driver.fetches.length, 30);
  driver.advance(1);
  assert.equal(driver.fetches.length, 60);
  assert.equal(driver.fetches[30]?.job, "r30");
});

test("throttle: round-robin, one URL a turn", () => {
  const driver = new DrivenCore({ gitDomainConcurrent: 1, gitDomainRate: 1_000 });
  driver.announce("busy", "https://a.test/busy");
  driver.waiting("busy", { id: "s", ids: [oid(9)] });
  driver.advance(500);
  for (const name of ["a", "b", "c"]) {
    driver.announce(name, `https://a.test/${name}1`, `https://a.test/${name}2`);
    driver.waiting(name, { id: "s", ids: [oid(1)] });
  }
  driver.advance(500);
  driver.taken();
  for (let fetch = 1; fetch <= 7; fetch++) driver.finish(fetch, { failure: "not-git" });
  assert.deepEqual(driver.taken(), ["a.test/a1", "a.test/b1", "a.test/c1", "a.test/a2", "a.test/b2", "a.test/c2"]);
});

test("throttle: a repository that was busy elsewhere when its turn came is served when it is free again", () => {
  const driver = new DrivenCore({ gitDomainConcurrent: 1, gitDomainRate: 30 });
  for (const name of ["a", "b"]) {
    driver.announce(name, `https://${name}.test/busy`);
    driver.waiting(name, { id: "s", ids: [oid(1)] });
  }
  driver.advance(500);
  driver.announce("r", "https://a.test/r", "https://b.test/r");
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  driver.taken();
  driver.finish(1, { failure: "not-git" });
  driver.finish(2, { failure: "not-git" });
  assert.deepEqual(driver.taken(), ["a.test/r"]);
  driver.finish(3, { failure: "not-git" });
  assert.deepEqual(driver.taken(), ["b.test/r"]);
});

test("throttle: a repository that needs nothing any more leaves the domain's queue", () => {
  const driver = new DrivenCore({ gitDomainConcurrent: 1, gitDomainRate: 30 });
  for (const name of ["a", "b", "c"]) {
    driver.announce(name, `https://a.test/${name}`);
    driver.waiting(name, { id: "s", ids: [oid(1)] });
  }
  driver.advance(500);
  driver.send({ type: "removed", repository: "b", id: "s" });
  driver.finish(1, { failure: "not-git" });
  assert.deepEqual(driver.taken(), ["a.test/a", "a.test/c"]);
});

// What the specification adds.

test("a burst from sync is one attempt, half a second after its first event, for all ids", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  for (let index = 0; index < 5; index++) {
    driver.waiting("r", { id: `s${index}`, ids: [oid(index)] });
    driver.advance(100);
  }
  assert.deepEqual(startsOf(driver, "r"), [500]);
  assert.deepEqual(driver.fetches[0]?.ids, [0, 1, 2, 3, 4].map(oid));
});

test("a client's state does not delay what sync has made due", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  driver.waiting("r", { id: "s1", ids: [oid(1)] });
  driver.waiting("r", { id: "s2", ids: [oid(2)], source: "client" });
  driver.advance(500);
  assert.deepEqual(startsOf(driver, "r"), [500]);
});

test("the same state again is no fresh start", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  deadServers(driver);
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(500 + 20_000 + 40_000);
  driver.taken();
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(80 * second - 1);
  assert.deepEqual(driver.taken(), []);
});

test("a pull request for a queued repository moves and resets nothing, but its tip is asked for", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  deadServers(driver);
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(500 + 20_000 + 40_000);
  driver.taken();
  driver.waiting("r", { id: "pr", kind: "pull-request", ids: [oid(2)] });
  driver.advance(80 * second - 1);
  assert.equal(driver.fetches.length, 0);
  driver.advance(1);
  assert.deepEqual(driver.fetches[0]?.ids, [oid(1), oid(2)]);
  driver.taken();
  driver.advance(120 * second - 1);
  assert.deepEqual(driver.taken(), []);
});

test("a pull request brings a repository into the queue that was not in it", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  driver.waiting("r", { id: "pr", kind: "pull-request", ids: [oid(2)], source: "client" });
  driver.advance(3 * minute);
  assert.deepEqual(driver.taken(), ["a.test/1"]);
});

test("a pull request's own URLs are asked for its tip alone, at most three, with their own size limit", () => {
  const driver = new DrivenCore();
  const clone = [1, 2, 3, 4].map((index) => `https://fork${index}.test/x`);
  driver.send({ type: "pull-request", event: event(1), tip: oid(7), clone, source: "sync", soft: false });
  deadServers(driver);
  driver.advance(500);
  assert.deepEqual(
    driver.fetches.map(({ kind, job, ids, maxBytes }) => ({ kind, job, ids, maxBytes })),
    Array.from({ length: 3 }, () => ({
      kind: "pull-request",
      job: event(1),
      ids: [oid(7)],
      maxBytes: 200 * 1024 ** 2,
    })),
  );
  driver.send({ type: "pull-request-removed", event: event(1) });
  driver.taken();
  driver.advance(3 * 60 * minute);
  assert.deepEqual(driver.taken(), []);
});

test("pull requests with slow servers leave the repositories' places alone", () => {
  const driver = new DrivenCore();
  for (let index = 0; index < 50; index++) {
    const clone = [`https://fork${index}.test/x`];
    driver.send({ type: "pull-request", event: event(index), tip: oid(1), clone, source: "sync", soft: false });
  }
  driver.advance(500);
  assert.equal(driver.running.size, 4);
  driver.announce("r", "https://a.test/1");
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  assert.equal(driver.fetches.at(-1)?.job, "r");
});

test("at a busy domain repositories and pull requests take turns", () => {
  const driver = new DrivenCore({ gitDomainConcurrent: 1, gitDomainRate: 1_000 });
  driver.announce("busy", "https://a.test/busy");
  driver.waiting("busy", { id: "s", ids: [oid(9)] });
  driver.advance(500);
  for (let index = 0; index < 4; index++) {
    const clone = [`https://a.test/pr${index}`];
    driver.send({ type: "pull-request", event: event(index), tip: oid(1), clone, source: "sync", soft: false });
  }
  driver.announce("r1", "https://a.test/r1");
  driver.announce("r2", "https://a.test/r2");
  driver.waiting("r1", { id: "s", ids: [oid(1)] });
  driver.waiting("r2", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  driver.taken();
  for (let fetch = 1; fetch <= 5; fetch++) driver.finish(fetch, { failure: "not-git" });
  const kinds = driver.fetches.slice(0, 4).map((fetch) => fetch.kind);
  assert.deepEqual(kinds.toSorted(), ["pull-request", "pull-request", "repository", "repository"]);
  assert.notEqual(kinds[0], kinds[1]);
});

test("a fetch that has run thirty seconds lets the next URL start beside it, and not earlier", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1", "https://b.test/1");
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(500 + 30_000 - 1);
  assert.deepEqual(driver.taken(), ["a.test/1"]);
  driver.advance(1);
  assert.deepEqual(driver.taken(), ["b.test/1"]);
  assert.equal(driver.running.size, 2);
});

test("when one server brings everything, the slow one's fetch is cancelled", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1", "https://b.test/1");
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(31_000);
  driver.finish(2, { arrived: [oid(1)] });
  assert.deepEqual(
    driver.of("cancel").map((cancel) => cancel.fetch),
    [1],
  );
});

test("a push that brings everything ends the hunt", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  driver.send({ type: "arrived", repository: "r", ids: [oid(1)] });
  assert.equal(driver.of("cancel").length, 1);
  assert.equal(driver.core.queueSize, 0);
  driver.finish(1, { failure: "cancelled" });
  driver.taken();
  driver.advance(3 * 60 * minute);
  assert.deepEqual(driver.taken(), []);
});

test("a server that never ends its fetch does not keep the others from being asked again", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://slow.test/1", "https://b.test/1");
  driver.onFetch = (fetch) => {
    if (fetch.url.includes("b.test")) driver.finish(fetch.fetch, { failure: "not-git" });
  };
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(5 * minute);
  const asked = driver.taken();
  assert.equal(asked.filter((url) => url.startsWith("slow")).length, 1);
  assert.ok(asked.filter((url) => url.startsWith("b")).length >= 3);
});

test("a server that sent more than there was room for is told apart until something else is asked of it", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1", "https://b.test/1");
  const known = (): (string | number)[][] =>
    driver.fetches.splice(0).map((one) => [one.url.slice(8, 9), one.tooFewBytes]);
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  driver.finish(1, { failure: "quota-full", tooFewBytes: 5_000 });
  driver.finish(2, { failure: "timeout" });
  assert.deepEqual(known(), [
    ["a", 0],
    ["b", 0],
  ]);
  driver.waiting("r", { id: "p", kind: "pull-request", ids: [oid(2)] });
  driver.advance(20 * second);
  // The shell did not even ask.
  driver.finish(3, { failure: "quota-full" });
  driver.finish(4, { failure: "timeout" });
  assert.deepEqual(known(), [
    ["a", 5_000],
    ["b", 0],
  ]);
  driver.send({ type: "arrived", repository: "r", ids: [oid(1)] });
  driver.advance(60 * second);
  assert.deepEqual(known(), [["a", 0]]);
  driver.finish(5, { failure: "quota-full", tooFewBytes: 5_000 });
  driver.finish(6, { failure: "timeout" });
  driver.waiting("r", { id: "new", ids: [oid(3)] });
  driver.advance(500);
  assert.deepEqual(known().slice(1), [["a", 0]], "a new state is a fresh start");
});

test("soft entries are looked at once when they appear, then every hour, and keep nothing in the queue", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  deadServers(driver);
  driver.waiting("r", { id: "s", ids: [oid(1)], soft: true });
  assert.equal(driver.core.queueSize, 0);
  driver.advance(150 * minute);
  assert.deepEqual(
    startsOf(driver, "r").map((atMs) => atMs - 500),
    [0, 60 * minute, 120 * minute],
  );
});

test("a state that goes soft rests until an hour after its last attempt", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  deadServers(driver);
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(30 * minute);
  const last = startsOf(driver, "r").at(-1) ?? 0;
  driver.taken();
  driver.waiting("r", { id: "s", ids: [oid(1)], soft: true });
  assert.equal(driver.core.queueSize, 0);
  driver.advance(70 * minute);
  assert.deepEqual(startsOf(driver, "r"), [last + 60 * minute]);
});

test("objects a served repository lacks are looked for soon, then hourly, and are never in the queue", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  deadServers(driver);
  driver.waiting("r", { id: "partial", kind: "repair", ids: [oid(1)] });
  assert.equal(driver.core.queueSize, 0);
  driver.advance(70 * minute);
  assert.deepEqual(startsOf(driver, "r"), [500, 500 + 60 * minute]);
});

for (const [what, wake] of [
  ["one of its objects arriving", (d: DrivenCore) => d.send({ type: "arrived", repository: "r", ids: [oid(1)] })],
  ["a new URL", (d: DrivenCore) => d.announce("r", "https://a.test/1", "https://b.test/1")],
  ["a client that sends it again", (d: DrivenCore) => d.waiting("r", { id: "s", ids: [oid(1), oid(2)] })],
] as const) {
  test(`a soft state is woken by ${what}`, () => {
    const driver = new DrivenCore();
    driver.announce("r", "https://a.test/1");
    deadServers(driver);
    driver.waiting("r", { id: "s", ids: [oid(1), oid(2)], soft: true });
    driver.advance(10 * minute);
    driver.taken();
    wake(driver);
    driver.advance(500);
    assert.ok(driver.taken().length > 0);
  });
}

test("the same list of URLs again wakes nothing", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  deadServers(driver);
  driver.waiting("r", { id: "s", ids: [oid(1)], soft: true });
  driver.advance(10 * minute);
  driver.taken();
  driver.announce("r", "https://a.test/1");
  driver.advance(10 * minute);
  assert.deepEqual(driver.taken(), []);
});

test("when every server was asked, the throttled one last, and something is missing still, that is told once", () => {
  const driver = new DrivenCore({ gitDomainConcurrent: 1, gitDomainRate: 30 });
  driver.announce("busy", "https://a.test/1");
  driver.announce("r", "https://a.test/2", "https://b.test/2");
  driver.waiting("busy", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  driver.onFetch = (fetch) => driver.finish(fetch.fetch, { failure: "timeout" });
  driver.waiting("r", { id: "s", ids: [oid(2)] });
  driver.advance(500);
  const told = () => driver.of("looked-everywhere").map(({ job }) => job);
  assert.deepEqual(told(), [], "it still waits at a.test");
  driver.finish(1, { arrived: [oid(1)] });
  assert.deepEqual(told(), ["r"], "and a complete one has nothing to tell");
});

test("an announcement alone is not hunted", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  driver.advance(3 * 60 * minute);
  assert.deepEqual(driver.taken(), []);
});

test("every connection counts: a fetch asks for each, waits for the rate window, and has twelve at most", () => {
  const driver = new DrivenCore({ gitDomainConcurrent: 5, gitDomainRate: 12 });
  driver.announce("r", "https://a.test/1");
  driver.announce("q", "https://a.test/2");
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  const wanted = { type: "connection-wanted", fetch: 1, host: "a.test" } as const;
  for (let index = 2; index <= 12; index++) driver.send(wanted);
  assert.equal(driver.of("connection-granted").length, 11);
  driver.send(wanted);
  assert.deepEqual(
    driver.of("connection-denied").map((denied) => denied.reason),
    ["budget"],
  );
  driver.waiting("q", { id: "s", ids: [oid(1)] });
  driver.advance(minute - 1);
  assert.equal(driver.fetches.length, 1);
  driver.advance(1);
  assert.equal(driver.fetches.length, 2);
});

test("a running fetch that waits for the rate window is served before new ones", () => {
  const driver = new DrivenCore({ gitDomainConcurrent: 5, gitDomainRate: 1 });
  driver.announce("r", "https://a.test/1");
  driver.announce("q", "https://a.test/2");
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.waiting("q", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  driver.send({ type: "connection-wanted", fetch: 1, host: "A.test" });
  driver.advance(minute);
  assert.deepEqual(
    driver.of("connection-granted").map((granted) => [granted.fetch, granted.atMs]),
    [[1, minute + 500]],
  );
  assert.equal(driver.fetches.length, 1);
});

test("a redirected fetch gives up its place, waits for one at the new domain and takes turns with the queue there", () => {
  const driver = new DrivenCore({ gitDomainConcurrent: 1, gitDomainRate: 30 });
  driver.announce("r", "https://a.test/1");
  driver.announce("q", "https://b.test/1");
  for (const name of ["r", "q"]) driver.waiting(name, { id: "s", ids: [oid(1)] });
  driver.advance(500);
  for (const [name, url] of [
    ["a2", "https://a.test/2"],
    ["b2", "https://b.test/2"],
    ["b3", "https://b.test/3"],
  ] as const) {
    driver.announce(name, url);
    driver.waiting(name, { id: "s", ids: [oid(1)] });
  }
  driver.advance(500);
  driver.taken();
  driver.send({ type: "connection-wanted", fetch: 1, host: "b.test" });
  assert.deepEqual(driver.taken(), ["a.test/2"]);
  assert.deepEqual(driver.of("connection-granted"), []);
  driver.finish(2, { failure: "not-git" });
  assert.deepEqual(
    driver.of("connection-granted").map((granted) => granted.fetch),
    [1],
  );
  assert.deepEqual(driver.taken(), []);
  driver.finish(1, { failure: "not-git" });
  assert.deepEqual(driver.taken(), ["b.test/2"]);
});

test("two domains whose fetches are redirected to each other do not lock", () => {
  const driver = new DrivenCore({ gitDomainConcurrent: 1, gitDomainRate: 30 });
  driver.announce("r", "https://a.test/1");
  driver.announce("q", "https://b.test/1");
  for (const name of ["r", "q"]) driver.waiting(name, { id: "s", ids: [oid(1)] });
  driver.advance(500);
  driver.send({ type: "connection-wanted", fetch: 1, host: "b.test" });
  driver.send({ type: "connection-wanted", fetch: 2, host: "a.test" });
  assert.deepEqual(
    driver.of("connection-granted").map((granted) => granted.fetch),
    [1, 2],
  );
});

test("a fetch that ends while it waits for a connection leaves no trace", () => {
  const driver = new DrivenCore({ gitDomainConcurrent: 1, gitDomainRate: 30 });
  driver.announce("r", "https://a.test/1");
  driver.announce("q", "https://b.test/1");
  driver.announce("p", "https://b.test/2");
  for (const name of ["r", "q"]) driver.waiting(name, { id: "s", ids: [oid(1)] });
  driver.advance(500);
  driver.send({ type: "connection-wanted", fetch: 1, host: "b.test" });
  driver.finish(1, { failure: "cancelled" });
  driver.waiting("p", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  driver.finish(2, { failure: "not-git" });
  assert.deepEqual(driver.of("connection-granted"), []);
  assert.equal(driver.fetches.at(-1)?.job, "p");
});

test("overrides give a domain limits of its own", () => {
  const driver = new DrivenCore({ gitDomainOverrides: [{ host: "big.test", concurrent: 10, startsPerMinute: 60 }] });
  for (let index = 0; index < 20; index++) {
    driver.announce(`r${index}`, `https://big.test/${index}`);
    driver.waiting(`r${index}`, { id: "s", ids: [oid(index)] });
  }
  driver.advance(500);
  assert.equal(driver.running.size, 10);
});

test("ports share their host's throttle", () => {
  const driver = new DrivenCore();
  for (let index = 0; index < 9; index++) {
    driver.announce(`r${index}`, `https://a.test:${8000 + index}/x`);
    driver.waiting(`r${index}`, { id: "s", ids: [oid(index)] });
  }
  driver.advance(500);
  assert.equal(driver.running.size, 5);
});

test("ids a server refused are asked last the next time, and first again when all were refused", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  driver.waiting("r", { id: "s", ids: [1, 2, 3].map(oid) });
  driver.advance(500);
  driver.finish(1, { refused: [oid(1), oid(2)] });
  driver.advance(20 * second);
  assert.deepEqual(driver.fetches[1]?.ids, [3, 1, 2].map(oid));
  driver.finish(2, { refused: [oid(3)] });
  driver.advance(40 * second);
  driver.finish(3, {});
  driver.advance(80 * second);
  assert.deepEqual(driver.fetches[3]?.ids, [1, 2, 3].map(oid));
});

test("a host whose name does not exist is left alone for twelve hours; the list survives a restart", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://gone.test/1");
  driver.onFetch = (fetch) => driver.finish(fetch.fetch, { failure: "dns-missing" });
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(30 * minute);
  const [naughty] = driver.of("naughty");
  assert.deepEqual([naughty?.place, naughty?.kind, naughty?.forMs], ["gone.test", "dns-missing", 720 * minute]);
  driver.taken();
  driver.advance(700 * minute);
  assert.deepEqual(driver.taken(), []);
  driver.advance(20 * minute);
  assert.ok(driver.taken().length > 0);

  const restarted = new DrivenCore();
  restarted.send({ type: "naughty-restored", place: "gone.test", kind: "dns-missing", remainingMs: 5 * minute });
  restarted.announce("r", "https://gone.test/1");
  restarted.waiting("r", { id: "s", ids: [oid(1)] });
  restarted.advance(4 * minute);
  assert.deepEqual(restarted.taken(), []);
  restarted.advance(3 * minute);
  assert.deepEqual(restarted.taken(), ["gone.test/1"]);
});

test("the time in which this server stood still is held against nobody, and is told in the log", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://gone.test/1");
  driver.onFetch = (fetch) => driver.finish(fetch.fetch, { failure: "dns-missing" });
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(25 * second);
  assert.equal(driver.taken().length, 2);
  // The machine slept, and its alarm goes off when it wakes up: ten minutes lie between three failures.
  driver.nowMs += 15 * minute;
  driver.send({ type: "tick" });
  assert.equal(driver.taken().length, 1);
  assert.deepEqual(driver.of("naughty"), []);
  const told = driver.of("log").filter(({ message }) => message === "stood still");
  assert.deepEqual(
    told.map(({ level, fields }) => [level, Math.round(Number(fields.forMs) / minute)]),
    [["warn", 15]],
  );
  driver.advance(30 * minute);
  assert.equal(driver.of("naughty").length, 1, "ten minutes in which it could have answered are held against it");
});

test("a bad certificate condemns one port of a host, not the host", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test:8443/1", "https://a.test/1");
  driver.onFetch = (fetch) =>
    driver.finish(fetch.fetch, { failure: fetch.url.includes("8443") ? "certificate" : "not-git" });
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(30 * minute);
  // Answers from the host's other port prove nothing about this one.
  assert.deepEqual(
    driver.of("naughty").map((naughty) => naughty.place),
    ["a.test:8443"],
  );
});

for (const failure of ["timeout", "dns-temporary", "http-status", "not-git", "fetch-failed", "refused"] as const) {
  test(`${failure} never makes a host naughty`, () => {
    const driver = new DrivenCore();
    driver.announce("r", "https://a.test/1");
    driver.onFetch = (fetch) => driver.finish(fetch.fetch, { failure });
    driver.waiting("r", { id: "s", ids: [oid(1)] });
    driver.advance(60 * minute);
    assert.deepEqual(driver.of("naughty"), []);
    assert.ok(driver.fetches.length > 20);
  });
}

test("the first round ends when everything that waited at the start was hunted once, domain queues included", () => {
  const driver = new DrivenCore({ gitDomainConcurrent: 1, gitDomainRate: 30 });
  driver.announce("r", "https://a.test/1");
  driver.announce("q", "https://a.test/2");
  driver.announce("soft", "https://b.test/1");
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.waiting("q", { id: "s", ids: [oid(1)] });
  driver.waiting("soft", { id: "s", ids: [oid(1)], soft: true });
  driver.send({ type: "start-round" });
  driver.advance(500);
  driver.finish(2, { failure: "not-git" });
  driver.finish(1, { failure: "not-git" });
  assert.deepEqual(driver.of("round-ended"), []);
  driver.finish(3, { failure: "not-git" });
  assert.equal(driver.of("round-ended").length, 1);
});

test("a first round with nothing to do ends at once", () => {
  const driver = new DrivenCore();
  driver.send({ type: "start-round" });
  assert.equal(driver.of("round-ended").length, 1);
});

test("gauges go up and come down again, and domains beyond the hundredth share a label", () => {
  const driver = new DrivenCore({ metricsMaxDomainLabels: 2 });
  for (let index = 0; index < 4; index++) {
    driver.announce(`r${index}`, `https://h${index}.test/x`);
    driver.waiting(`r${index}`, { id: "s", ids: [oid(1)] });
  }
  driver.advance(500);
  const inFlight = () =>
    Object.fromEntries(
      driver
        .of("gauge")
        .filter((gauge) => gauge.metric === "purgatory_domain_in_flight")
        .map((gauge) => [gauge.labels.domain, gauge.value]),
    );
  assert.deepEqual(inFlight(), { "h0.test": 1, "h1.test": 1, other: 2 });
  for (let fetch = 1; fetch <= 4; fetch++) driver.finish(fetch, { arrived: [oid(1)] });
  assert.deepEqual(inFlight(), { "h0.test": 0, "h1.test": 0, other: 0 });
  const sizes = driver.of("gauge").filter((gauge) => gauge.metric === "purgatory_sync_queue_size");
  assert.deepEqual(
    sizes.map((gauge) => gauge.value),
    [1, 2, 3, 4, 3, 2, 1, 0],
  );
});

test("attempts are counted by their result", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  driver.finish(1, { failure: "not-git" });
  driver.advance(20 * second);
  driver.finish(2, { arrived: [oid(1)] });
  const results = driver.of("count").filter((count) => count.metric === "purgatory_sync_attempts_total");
  assert.deepEqual(
    results.map((count) => count.labels.result),
    ["incomplete", "complete"],
  );
});

test("a tick that comes too early is answered with the same wish to be woken", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.nowMs = 499;
  assert.deepEqual(driver.send({ type: "tick" }), [{ type: "wake-at", atMs: 500 }]);
});

test("servers that drip bytes take at most the slow places; a fresh fetch still starts", () => {
  const driver = new DrivenCore();
  for (let index = 0; index < 40; index++) {
    driver.announce(`evil${index}`, `https://evil${index}.test/x`);
    driver.waiting(`evil${index}`, { id: "s", ids: [oid(1)] });
  }
  driver.advance(500);
  assert.equal(driver.running.size, huntConstants.lanes.repository.fresh);
  driver.advance(90 * second);
  assert.equal(driver.running.size, 40);
  driver.announce("r", "https://a.test/1");
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(31 * second);
  assert.equal(driver.fetches.at(-1)?.job, "r");
});

test("the operator does not wait for the next attempt; a job that lacks nothing is not asked for", () => {
  const driver = new DrivenCore();
  deadServers(driver);
  driver.announce("r", "https://a.test/1");
  driver.waiting("r", { id: "s", ids: [oid(1)] });
  driver.advance(500);
  const [first = 0] = startsOf(driver, "r");
  driver.advance(second);
  driver.send({ type: "ask-now", job: "r" });
  driver.send({ type: "ask-now", job: "unknown" });
  assert.deepEqual(startsOf(driver, "r"), [first, first + second]);
  driver.send({ type: "removed", repository: "r", id: "s" });
  driver.send({ type: "ask-now", job: "r" });
  driver.advance(10 * minute);
  assert.equal(startsOf(driver, "r").length, 2);
});
