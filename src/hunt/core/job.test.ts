// event-sync.md "Evidence ends the wait": a server that serves an event has its data, so it is asked soon, and once.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { EventId } from "../../nostr/event.js";
import { backoffMs, DueTimes } from "./job.js";
import { huntConfig } from "./testing/config.js";
import { DrivenCore, oid } from "./testing/driven-core.js";

const second = 1_000;
const minute = 60 * second;
const state = "5".repeat(64) as EventId;
const other = "6".repeat(64) as EventId;

const servedBy = (driver: DrivenCore, origin: string, event = state): void =>
  void driver.send({ type: "served", event, origin });

/** A client's state for a repository at two servers, a second after it came. */
function waitingAtTwo(): DrivenCore {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1", "https://b.test/1");
  driver.waiting("r", { id: state, ids: [oid(1)], source: "client" });
  driver.advance(second);
  return driver;
}

test("a client's state that a listed server serves is fetched there half a second later, and nowhere else", () => {
  const driver = waitingAtTwo();
  servedBy(driver, "b.test");
  driver.advance(499);
  assert.deepEqual(driver.taken(), []);
  driver.advance(1);
  assert.deepEqual(driver.taken(), ["b.test/1"]);
});

for (const [what, origin] of [
  ["a server that no announcement names", "c.test"],
  ["another port of a listed server", "b.test:8443"],
  ["a name that only ends like a listed server's", "x.b.test"],
] as const) {
  test(`evidence from ${what} moves nothing`, () => {
    const driver = waitingAtTwo();
    servedBy(driver, origin);
    driver.advance(3 * minute - second - 1);
    assert.deepEqual(driver.taken(), []);
  });
}

test("the same server is asked once for an event, however often it serves it, and once more for the next event", () => {
  const driver = waitingAtTwo();
  driver.onFetch = (fetch) => driver.finish(fetch.fetch, { refused: [oid(1)] });
  servedBy(driver, "b.test");
  driver.advance(second);
  driver.taken();
  servedBy(driver, "b.test");
  driver.announce("r", "https://a.test/1");
  driver.announce("r", "https://a.test/1", "https://b.test/1");
  driver.waiting("r", { id: state, ids: [oid(1)], source: "client", soft: false });
  driver.advance(10 * second);
  assert.deepEqual(driver.taken(), []);
  driver.waiting("r", { id: other, ids: [oid(2)], source: "client" });
  servedBy(driver, "b.test", other);
  driver.advance(second);
  assert.deepEqual(driver.taken(), ["b.test/1"]);
});

test("evidence that comes before the event waits, or before its announcement, counts when it does", () => {
  const driver = new DrivenCore();
  servedBy(driver, "b.test");
  driver.announce("r", "https://a.test/1");
  driver.waiting("r", { id: state, ids: [oid(1)], source: "client" });
  driver.advance(second);
  assert.deepEqual(driver.taken(), []);
  driver.announce("r", "https://a.test/1", "https://b.test/1");
  driver.advance(499);
  assert.deepEqual(driver.taken(), []);
  driver.advance(1);
  assert.deepEqual(driver.taken(), ["b.test/1"]);
});

test("evidence for an event that went is forgotten with it", () => {
  const driver = waitingAtTwo();
  servedBy(driver, "b.test");
  driver.send({ type: "removed", repository: "r", id: state });
  driver.advance(second);
  driver.waiting("r", { id: state, ids: [oid(1)], source: "client" });
  driver.advance(minute);
  assert.deepEqual(driver.taken(), []);
});

test("of evidence for events that never wait the newest thousand is kept", () => {
  const driver = new DrivenCore();
  const event = (number: number) => number.toString(16).padStart(64, "0") as EventId;
  for (let number = 0; number <= 1_000; number++) servedBy(driver, "a.test", event(number));
  driver.announce("r", "https://a.test/1");
  driver.waiting("r", { id: event(0), ids: [oid(1)], source: "client" });
  driver.advance(second);
  assert.deepEqual(driver.taken(), []);
  driver.waiting("r", { id: event(1), ids: [oid(2)], source: "client" });
  driver.advance(second);
  assert.deepEqual(driver.taken(), ["a.test/1"]);
});

test("a promise that is not kept is an incomplete attempt: the next comes after the ordinary back-off", () => {
  const driver = waitingAtTwo();
  driver.onFetch = (fetch) => driver.finish(fetch.fetch, { failure: "not-git" });
  servedBy(driver, "b.test");
  driver.advance(500);
  assert.deepEqual(driver.taken(), ["b.test/1"]);
  driver.advance(20 * second - 1);
  assert.deepEqual(driver.taken(), []);
  driver.advance(1);
  assert.deepEqual(driver.taken(), ["a.test/1", "b.test/1"]);
  driver.advance(40 * second - 1);
  assert.deepEqual(driver.taken(), []);
});

test("evidence resets no back-off and delays no attempt", () => {
  const driver = new DrivenCore();
  driver.onFetch = (fetch) => driver.finish(fetch.fetch, { failure: "timeout" });
  driver.announce("r", "https://a.test/1", "https://b.test/1");
  driver.waiting("r", { id: state, ids: [oid(1)] });
  driver.advance(500 + 20 * second + 40 * second);
  // The third attempt was made; the fourth is due in 80 s, and the one after it in 120 s.
  driver.taken();
  driver.advance(40 * second);
  servedBy(driver, "b.test");
  driver.advance(second);
  assert.deepEqual(driver.taken(), ["b.test/1"]);
  driver.advance(39 * second);
  assert.deepEqual(driver.taken(), ["a.test/1", "b.test/1"]);
  driver.advance(2 * minute - 1);
  assert.deepEqual(driver.taken(), []);
});

test("evidence that comes while that server is being asked is heeded when the answer lacked it", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1", "https://b.test/1");
  driver.waiting("r", { id: state, ids: [oid(1)] });
  driver.advance(500);
  assert.deepEqual(driver.taken(), ["a.test/1"]);
  servedBy(driver, "a.test");
  driver.advance(second);
  driver.finish(1, { refused: [oid(1)] });
  assert.deepEqual(driver.taken(), ["a.test/1"]);
  driver.finish(2, { arrived: [oid(1)] });
  driver.advance(10 * minute);
  assert.deepEqual(driver.taken(), []);
});

test("evidence that comes while that server's fetch has become slow waits for its end", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  driver.waiting("r", { id: state, ids: [oid(1)] });
  driver.advance(500 + 31 * second);
  servedBy(driver, "a.test");
  driver.advance(second);
  driver.taken();
  driver.finish(1, { refused: [oid(1)] });
  assert.deepEqual(driver.taken(), ["a.test/1"]);
});

test("an attempt that reaches the server within the half second has kept the promise", () => {
  const driver = waitingAtTwo();
  driver.onFetch = (fetch) => driver.finish(fetch.fetch, { failure: "timeout" });
  driver.advanceTo(3 * minute - 100);
  servedBy(driver, "b.test");
  driver.advance(second);
  assert.deepEqual(driver.taken(), ["a.test/1", "b.test/1"]);
});

test("what evidence asks for counts in the domain's throttle and waits its turn", () => {
  const driver = new DrivenCore({ gitDomainConcurrent: 1, gitDomainRate: 30 });
  driver.announce("busy", "https://b.test/0");
  driver.announce("r", "https://b.test/1");
  driver.waiting("busy", { id: other, ids: [oid(9)] });
  driver.advance(500);
  driver.waiting("r", { id: state, ids: [oid(1)], source: "client" });
  servedBy(driver, "b.test");
  driver.advance(10 * second);
  assert.deepEqual(driver.taken(), ["b.test/0"]);
  driver.finish(1, { arrived: [oid(9)] });
  assert.deepEqual(driver.taken(), ["b.test/1"]);
});

test("data that came meanwhile is not asked for", () => {
  const driver = waitingAtTwo();
  servedBy(driver, "b.test");
  driver.send({ type: "arrived", repository: "r", ids: [oid(1)] });
  driver.advance(10 * minute);
  assert.deepEqual(driver.taken(), []);
});

test("a soft state that a server serves is fetched there without waiting for the hourly round", () => {
  const driver = new DrivenCore();
  driver.onFetch = (fetch) => driver.finish(fetch.fetch, { failure: "timeout" });
  driver.announce("r", "https://a.test/1", "https://b.test/1");
  driver.waiting("r", { id: state, ids: [oid(1)], soft: true });
  driver.advance(10 * minute);
  driver.taken();
  servedBy(driver, "b.test");
  driver.advance(500);
  assert.deepEqual(driver.taken(), ["b.test/1"]);
  driver.advance(49 * minute);
  assert.deepEqual(driver.taken(), []);
});

test("a pull request is fetched from a server that serves it, listed by the repository or by itself", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test/1");
  driver.waiting("r", { id: state, kind: "pull-request", ids: [oid(1)], source: "client" });
  const clone = ["https://fork.test/1", "https://elsewhere.test/1"];
  driver.send({ type: "pull-request", event: state, tip: oid(1), clone, source: "client", soft: false });
  servedBy(driver, "fork.test");
  driver.advance(500);
  assert.deepEqual(driver.taken(), ["fork.test/1"]);
  servedBy(driver, "a.test");
  driver.advance(500);
  assert.deepEqual(driver.taken(), ["a.test/1"]);
});

test("the relay of a server under a path, and a default port, are the server's", () => {
  const driver = new DrivenCore();
  driver.announce("r", "https://a.test:443/base/1", "http://b.test:8080/base/1");
  driver.waiting("r", { id: state, ids: [oid(1)], source: "client" });
  servedBy(driver, "a.test");
  servedBy(driver, "b.test:8080");
  driver.onFetch = (fetch) => driver.finish(fetch.fetch);
  driver.advance(500);
  assert.deepEqual(driver.taken(), ["a.test/base/1", "b.test:8080/base/1"]);
});

test("moments come out by time, equal ones in the order they went in", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20)), (times) => {
      const due = new DueTimes<number>();
      for (const [index, atMs] of times.entries()) due.add(atMs, index);
      const expected = times
        .map((atMs, index) => ({ atMs, index }))
        .sort((a, b) => a.atMs - b.atMs || a.index - b.index);
      const seen = expected.map(() => due.pop());
      assert.deepEqual(
        seen.map((moment) => moment?.value),
        expected.map((entry) => entry.index),
      );
      assert.equal(due.size, 0);
      assert.equal(due.pop(), undefined);
    }),
  );
});

test("back-off follows the table and stays at its end", () => {
  assert.deepEqual(
    [1, 2, 3, 4, 5, 100].map((attempts) => backoffMs(huntConfig(), attempts)),
    [20_000, 40_000, 80_000, 120_000, 120_000, 120_000],
  );
});
