// What is shown of a relay is so: in step, compared clean, healthy (spec "Truth about oneself").

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { announcing, coordinate, Driver, event, issue, only, subscribed } from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const repo = announcing("ann", "tool", ["wss://a.example"]);
const minute = 60_000;

const copyOf = (driver: Driver, identifier = "tool") =>
  driver.core.copiesOf(coordinate("ann", identifier), { wallMs: driver.wallMs, monotonicMs: driver.nowMs })[0];

/** Answers live subscriptions and refuses every request for history. */
function refuseHistory(driver: Driver, from: number): void {
  for (let at = from; at < driver.said.length; at++) {
    const command = driver.said[at]!;
    if (command.type === "reconcile")
      driver.from(relay, "reconcileFailed", { session: command.session, kind: "failed" });
    if (command.type !== "subscribe") continue;
    const { subscription } = command;
    if (subscription.startsWith("l")) driver.from(relay, "eose", { subscription });
    else driver.from(relay, "subscriptionClosed", { subscription, message: "error: no history here" });
  }
}

describe("in step", () => {
  it("is not said of a relay that refuses all history", () => {
    const driver = new Driver();
    driver.tell({ type: "accepted", event: repo, hosted: true });
    driver.tell({ type: "replayEnded" });
    driver.advance(5000);
    const from = driver.said.length;
    driver.connect(relay);
    for (let n = 0, at = from; n < 200; n++) {
      refuseHistory(driver, at);
      assert.equal(driver.relay(relay)?.inStep, false);
      at = driver.said.length;
      driver.advance(1000);
      assert.equal(driver.relay(relay)?.inStep, false);
    }
    assert.ok((driver.relay(relay)?.outOfStepMs ?? 0) >= 200_000);
    assert.equal(copyOf(driver)?.compared, undefined);
  });

  it("is said when every item is confirmed, and not while a new one is asked for", () => {
    const driver = new Driver();
    driver.makeLive(relay, repo);
    assert.equal(driver.relay(relay)?.inStep, true);
    assert.equal(driver.relay(relay)?.outOfStepMs, 0);
    driver.tell({ type: "accepted", event: issue("bug", "ann", "tool") });
    const from = driver.said.length;
    driver.advance(5000);
    assert.equal(driver.relay(relay)?.inStep, false);
    driver.settle(relay, from);
    assert.equal(driver.relay(relay)?.inStep, true);
  });

  it("waits for the verdicts on what history brought", () => {
    const driver = new Driver();
    driver.makeLive(relay, repo);
    const [live] = subscribed(driver.said, "l");
    const comment = event("note", 1111, [["a", coordinate("ann", "tool")]]);
    driver.from(relay, "event", { subscription: live!.subscription, event: comment });
    assert.equal(driver.relay(relay)?.inStep, false);
    assert.equal(driver.relay(relay)?.inStepUntilMs, driver.wallMs);
    const offer = only(driver.said, "offerToIntake")[0]!;
    driver.tell({ ...offer, type: "verdict", outcome: { type: "stored" } });
    assert.equal(driver.relay(relay)?.inStep, true);
  });

  it("ends with the link, and its age is told from then on", () => {
    const driver = new Driver();
    driver.makeLive(relay, repo);
    driver.advance(10 * minute);
    const until = driver.wallMs;
    driver.from(relay, "closed");
    driver.from(relay, "connectFailed", { kind: "refused" });
    driver.advance(3 * minute);
    assert.equal(driver.relay(relay)?.inStep, false);
    assert.equal(driver.relay(relay)?.inStepUntilMs, until);
    assert.equal(driver.relay(relay)?.outOfStepMs, 3 * minute);
  });
});

describe("compared clean", () => {
  it("keeps when each repository was last whole, with both sides where negentropy compared it alone", () => {
    const driver = new Driver();
    driver.tell({ type: "accepted", event: repo, hosted: true });
    driver.tell({ type: "replayEnded" });
    driver.advance(5000);
    const from = driver.said.length;
    driver.connect(relay);
    for (let at = from; at < driver.said.length; at++) {
      const command = driver.said[at]!;
      if (command.type === "subscribe") driver.from(relay, "eose", { subscription: command.subscription });
      if (command.type !== "reconcile") continue;
      const sides = { ours: { count: 3, fingerprint: "0f" }, theirs: { count: 2, fingerprint: "f0" }, theyLack: 1 };
      driver.from(relay, "reconciled", { session: command.session, missing: [], peerMissing: 1, sides });
    }
    const cleanWallMs = driver.wallMs;
    driver.advance(10 * minute);
    // States, and three tags of the repository: four sessions of its own.
    const sides = { ours: { count: 12, fingerprint: "00" }, theirs: { count: 8, fingerprint: "00" }, theyLack: 4 };
    assert.deepEqual(copyOf(driver)?.compared, { cleanWallMs, sides });
    assert.equal(driver.relay(relay)?.comparedRepositories, 1);
    assert.equal(driver.relay(relay)?.oldestComparedWallMs, cleanWallMs);
  });

  it("is not said of a repository one of whose roots the relay refuses, and is of the others", () => {
    const driver = new Driver();
    driver.tell({ type: "accepted", event: repo, hosted: true });
    driver.tell({ type: "accepted", event: announcing("ann", "other", ["wss://a.example"]), hosted: true });
    driver.tell({ type: "accepted", event: issue("bug", "ann", "tool") });
    driver.tell({ type: "replayEnded" });
    driver.advance(5000);
    const from = driver.said.length;
    driver.connect(relay);
    for (let at = from; at < driver.said.length && at < from + 1000; at++) {
      const command = driver.said[at]!;
      if (command.type === "reconcile") {
        const isRoots = ["e", "E"].some((tag) => command.filter.tags?.has(tag));
        if (isRoots) driver.from(relay, "reconcileFailed", { session: command.session, kind: "failed" });
        else driver.from(relay, "reconciled", { session: command.session, missing: [], peerMissing: 0 });
      }
      if (command.type !== "subscribe") continue;
      const { subscription } = command;
      if (subscription.startsWith("l")) driver.from(relay, "eose", { subscription });
      else driver.from(relay, "subscriptionClosed", { subscription, message: "error: no" });
    }
    assert.equal(copyOf(driver)?.compared, undefined);
    assert.equal(copyOf(driver)?.inStep, false);
    assert.equal(copyOf(driver, "other")?.compared?.cleanWallMs, driver.wallMs);
    assert.equal(copyOf(driver, "other")?.inStep, true);
  });

  it("goes when the repository leaves the relay", () => {
    const driver = new Driver();
    driver.makeLive(relay, repo);
    driver.tell({ type: "accepted", event: announcing("ann", "tool", []), hosted: true });
    driver.advance(5000);
    assert.equal(driver.relay(relay)?.comparedRepositories ?? 0, 0);
  });
});

describe("health", () => {
  /** Fails until the relay is dead, then lets the next dial succeed. */
  function deadThenBack(): Driver {
    const driver = new Driver();
    driver.tell({ type: "accepted", event: repo, hosted: true });
    driver.tell({ type: "replayEnded" });
    driver.advance(5000);
    while (driver.relay(relay)?.status !== 3) {
      driver.from(relay, "connectFailed", { kind: "timeout" });
      while (driver.relay(relay)?.state !== "connecting") driver.advance(minute / 4);
    }
    return driver;
  }

  it("is good from the moment a relay is live with its catch-up done, whatever its past", () => {
    const driver = deadThenBack();
    const from = driver.said.length;
    driver.connect(relay);
    assert.notEqual(driver.relay(relay)?.status, 3, "connected is not dead");
    driver.settle(relay, from);
    assert.equal(driver.relay(relay)?.status, 1);
    assert.equal(driver.relay(relay)?.failures, 0);
    assert.equal(driver.snapshot().dead, 0);
  });

  it("a relay that drops after each catch-up is still dialled ever more seldom", () => {
    const driver = new Driver();
    driver.makeLive(relay, repo);
    const waits: number[] = [];
    for (let n = 0; n < 6; n++) {
      driver.from(relay, "closed");
      assert.equal(driver.relay(relay)?.failures, 1);
      assert.equal(driver.relay(relay)?.status, 2);
      const lostMs = driver.nowMs;
      while (driver.relay(relay)?.state !== "connecting") driver.advance(1000);
      waits.push((driver.nowMs - lostMs) / 1000);
      const from = driver.said.length;
      driver.connect(relay);
      driver.settle(relay, from);
      assert.equal(driver.relay(relay)?.status, 1);
    }
    assert.deepEqual(waits, [5, 10, 20, 40, 80, 160]);
  });

  it("a dead relay that came back and is lost again is not dead at once", () => {
    const driver = deadThenBack();
    const from = driver.said.length;
    driver.connect(relay);
    driver.settle(relay, from);
    driver.from(relay, "closed");
    assert.equal(driver.relay(relay)?.status, 2);
    assert.ok((driver.relay(relay)?.nextDialMs ?? 0) - driver.nowMs <= 60 * minute);
  });
});
