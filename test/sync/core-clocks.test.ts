// A relay's time runs only while we listen to it (event-sync.md "Truth about oneself"), and our own pauses between
// requests are nobody's silence.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { announcing, Driver, event, issue, only, subscribed } from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const repo = announcing("ann", "tool", ["wss://a.example"]);
const second = 1000;
const minute = 60 * second;

function connected(config: ConstructorParameters<typeof Driver>[0] = {}): Driver {
  const driver = new Driver(config);
  driver.tell({ type: "accepted", event: repo, hosted: true });
  driver.tell({ type: "replayEnded" });
  driver.advance(5 * second);
  return driver;
}

const live = (driver: Driver): void => {
  for (const { subscription } of subscribed(driver.said, "l")) driver.from(relay, "eose", { subscription });
};
const failed = (driver: Driver): number =>
  only(driver.said, "log").filter(({ code }) => /failed|fallback/.test(code)).length;

describe("while our own store is read for a session", () => {
  it("the relay is not silent, and is from NEG-OPEN on", () => {
    const driver = connected();
    driver.readsQuickly = false;
    driver.connect(relay);
    live(driver);
    const { session } = only(driver.said, "reconcile").at(-1)!;
    driver.advance(5 * minute);
    assert.equal(failed(driver), 0);
    driver.from(relay, "reconcileProgress", { session });
    driver.advance(9 * second);
    assert.equal(failed(driver), 0);
    driver.advance(second);
    assert.equal(failed(driver), 1);
    assert.equal(subscribed(driver.said, "h").length, 1);
  });

  it("to find what of its answer we hold, the relay is not silent either", () => {
    const driver = connected();
    driver.connect(relay);
    live(driver);
    const { session } = only(driver.said, "reconcile").at(-1)!;
    driver.from(relay, "reconcileProgress", { session });
    driver.from(relay, "reconcileProgress", { session, ours: true });
    driver.advance(5 * minute);
    assert.equal(failed(driver), 0);
    driver.from(relay, "reconciled", { session, missing: [], peerMissing: 0 });
    driver.settle(relay);
    assert.equal(driver.relay(relay)!.state, "live");
  });

  it("and cannot be, the batch is tried again and negentropy is not given up", () => {
    const driver = connected();
    driver.readsQuickly = false;
    driver.connect(relay);
    live(driver);
    for (let n = 0; n < 5; n++) {
      const { session } = only(driver.said, "reconcile").at(-1)!;
      const from = driver.said.length;
      driver.from(relay, "reconcileFailed", { session, kind: "ours" });
      driver.settle(relay, from);
      driver.advance(30 * second);
    }
    assert.equal(subscribed(driver.said, "h").length, 0);
    assert.ok(only(driver.said, "reconcile").length >= 6);
  });
});

describe("while we do not read a relay", () => {
  it("because it brought more than intake has judged, its page does not time out", () => {
    const driver = connected({ syncDisableNegentropy: true, maxOffersInFlight: 1 });
    driver.connect(relay);
    live(driver);
    const { subscription } = subscribed(driver.said, "h").at(-1)!;
    driver.advance(50 * second);
    const arrived = event("one", 30617, [["d", "one"]]);
    const said = driver.from(relay, "event", { subscription, event: arrived });
    assert.equal(only(said, "pauseReading").length, 1);
    driver.advance(20 * minute);
    assert.equal(failed(driver), 0);
    const [offer] = only(said, "offerToIntake");
    driver.tell({ ...offer!, type: "verdict", outcome: { type: "stored" } });
    driver.advance(59 * second);
    assert.equal(failed(driver), 0);
    driver.advance(2 * second);
    assert.equal(failed(driver), 1, "its time runs again");
  });

  it("because intake is full, neither history nor live times out", () => {
    const driver = connected();
    driver.connect(relay);
    driver.advance(5 * second);
    driver.tell({ type: "readingHeld", held: true });
    const from = driver.said.length;
    driver.advance(10 * minute);
    assert.equal(failed(driver), 0);
    assert.deepEqual(only(driver.said.slice(from), "unsubscribe"), []);
    driver.tell({ type: "readingHeld", held: false });
    driver.advance(4 * second);
    assert.equal(failed(driver), 0);
    driver.advance(2 * second);
    assert.equal(failed(driver), 1, "ten seconds in all");
  });
});

it("a process that stood still has not heard a relay's answers yet", () => {
  const driver = connected();
  driver.connect(relay);
  live(driver);
  driver.advance(second);
  const { session } = only(driver.said, "reconcile").at(-1)!;
  driver.nowMs += 80 * second;
  driver.wallMs += 80 * second;
  driver.tell({ type: "tick" });
  assert.equal(failed(driver), 0);
  driver.from(relay, "reconciled", { session, missing: [], peerMissing: 0 });
  driver.settle(relay);
  assert.equal(driver.relay(relay)!.state, "live");
  assert.equal(failed(driver), 0);
});

describe("pacing", () => {
  it("leaves a pause between the batches of a relay", () => {
    const driver = connected({ syncBatchDelayMs: 3 * second });
    driver.connect(relay);
    const from = driver.said.length;
    driver.settle(relay);
    const sessions = (): number => only(driver.said, "reconcile").length;
    assert.equal(sessions(), 1);
    const startedMs = driver.nowMs;
    while (driver.relay(relay)!.state !== "live") {
      driver.advance(500);
      driver.settle(relay, from);
      assert.ok(driver.nowMs - startedMs < minute);
    }
    assert.equal(sessions(), 5);
    assert.equal(driver.nowMs - startedMs, 2 * 3 * second, "three batches have two pauses");
  });

  it("asks for the next page when what came is within its share, over all relays, and nobody times out meanwhile", () => {
    const config = { syncDisableNegentropy: true, syncBytesPerSec: 1000 };
    const driver = new Driver(config);
    const both = announcing("ann", "tool", ["wss://a.example", "wss://b.example"]);
    driver.tell({ type: "accepted", event: both, hosted: true });
    driver.tell({ type: "replayEnded" });
    driver.advance(5 * second);
    driver.connect(relay);
    const { subscription } = subscribed(driver.said, "h").at(-1)!;
    const raw = "x".repeat(50_000);
    for (const n of [1, 2]) {
      driver.from(relay, "event", {
        subscription,
        event: event(`${n}`, 30617, [["d", `${n}`]], { created_at: n, raw }),
      });
    }
    const from = driver.said.length;
    driver.from(relay, "eose", { subscription });
    driver.connect("b.example");
    for (const command of only(driver.said, "subscribe")) {
      if (command.subscription.startsWith("l")) {
        const { relay: of, link } = command;
        driver.tell({ type: "eose", relay: of, link, subscription: command.subscription });
      }
    }
    driver.advance(99 * second);
    assert.equal(subscribed(driver.said.slice(from), "h").length, 0);
    driver.advance(2 * second);
    const asked = subscribed(driver.said.slice(from), "h").map((command) => command.relay);
    assert.deepEqual(asked.sort(), ["a.example", "b.example"]);
    assert.equal(failed(driver), 0);
    assert.ok(only(driver.said.slice(from), "wakeAt").length < 50);
  });

  it("does not hold back live", () => {
    const driver = connected({ syncBatchDelayMs: 10 * minute, syncBytesPerSec: 1 });
    driver.connect(relay);
    driver.settle(relay);
    driver.tell({ type: "accepted", event: issue("bug", "ann", "tool") });
    const from = driver.said.length;
    driver.advance(5 * second);
    assert.ok(subscribed(driver.said.slice(from), "l").length > 0);
  });
});
