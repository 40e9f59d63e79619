// Time that does not pass as usual: a process that stood still, a clock that jumps, a loss noticed late (spec "Truth
// about oneself", Time).

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Command } from "../../src/sync/core/messages.js";
import { announcing, Driver, only, subscribed } from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

function live(): Driver {
  const driver = new Driver();
  driver.makeLive(relay, announcing("ann", "tool", ["wss://a.example"]));
  driver.advance(10 * minute);
  return driver;
}

/** The next link, and everything it asks for when every question is answered. */
function reconnected(driver: Driver): Command[] {
  while (driver.relay(relay)?.state !== "connecting") driver.advance(second);
  const from = driver.said.length;
  driver.connect(relay);
  driver.settle(relay, from);
  return driver.said.slice(from);
}

const isFull = (said: readonly Command[]): boolean => only(said, "reconcile").length === 1 + 1 + 3;
const sinceOf = (said: readonly Command[]): Set<number | undefined> =>
  new Set(subscribed(said, "h").map(({ filters }) => filters[0]!.since));

describe("a process that stood still", () => {
  for (const [name, monotonicMs, wallMs] of [
    ["was stopped for 5 h", 5 * hour, 5 * hour],
    ["slept with its machine for 5 h, while the monotonic clock stood still", 0, 5 * hour],
  ] as const) {
    it(`${name}: every link is made anew, with a full sync`, () => {
      const driver = live();
      driver.nowMs += monotonicMs;
      driver.wallMs += wallMs;
      const said = driver.tell({ type: "tick" });
      assert.equal(only(said, "disconnect").length, 1);
      assert.ok(isFull(reconnected(driver)));
      assert.equal(driver.relay(relay)?.failures, 0, "the relay did nothing wrong");
    });
  }

  it("notices before it reads what the old link still says", () => {
    const driver = live();
    driver.nowMs += 5 * hour;
    driver.wallMs += 5 * hour;
    driver.from(relay, "closed");
    assert.ok(isFull(reconnected(driver)));
  });

  it("for a few minutes catches up from an hour before its last step", () => {
    const driver = live();
    driver.tell({ type: "tick" });
    const lastStepMs = driver.wallMs;
    driver.nowMs += 5 * minute;
    driver.wallMs += 5 * minute;
    driver.tell({ type: "tick" });
    const said = reconnected(driver);
    assert.deepEqual(only(said, "reconcile"), []);
    assert.deepEqual(sinceOf(said), new Set([Math.floor(lastStepMs / 1000) - 3600]));
  });

  it("does not make a relay dead by standing still for a day", () => {
    const driver = new Driver();
    driver.tell({ type: "accepted", event: announcing("ann", "tool", ["wss://a.example"]), hosted: true });
    driver.advance(5000);
    driver.from(relay, "connectFailed", { kind: "refused" });
    driver.nowMs += 25 * hour;
    driver.wallMs += 25 * hour;
    driver.tell({ type: "tick" });
    driver.advance(minute);
    driver.from(relay, "connectFailed", { kind: "refused" });
    assert.equal(driver.relay(relay)?.status, 2);
  });

  it("does not count a dial that fell into it as the relay's failure", () => {
    const driver = new Driver();
    driver.tell({ type: "accepted", event: announcing("ann", "tool", ["wss://a.example"]), hosted: true });
    driver.advance(5000);
    assert.equal(driver.relay(relay)?.state, "connecting");
    driver.nowMs += hour;
    driver.wallMs += hour;
    driver.tell({ type: "tick" });
    assert.equal(driver.relay(relay)?.failures, 0);
    assert.ok(isFull(reconnected(driver)));
  });

  it("is not suspected of a core that is woken every minute", () => {
    const driver = live();
    const from = driver.said.length;
    driver.advance(20 * hour);
    assert.deepEqual(only(driver.said.slice(from), "disconnect"), []);
  });

  it("is not suspected where relays are looked for seldom", () => {
    const driver = new Driver({ syncDisconnectCheckIntervalSecs: 600 });
    driver.makeLive(relay, announcing("ann", "tool", ["wss://a.example"]));
    const from = driver.said.length;
    driver.advance(5 * hour);
    assert.deepEqual(only(driver.said.slice(from), "disconnect"), []);
  });
});

describe("a clock that jumps", () => {
  for (const byMs of [-5 * hour, -2 * minute, 20 * minute, 5 * hour]) {
    it(`by ${byMs / minute} min while linked makes the relay stale`, () => {
      const driver = live();
      driver.wallMs += byMs;
      driver.tell({ type: "tick" });
      assert.ok(isFull(reconnected(driver)));
    });

    it(`by ${byMs / minute} min between two links makes the relay stale`, () => {
      const driver = live();
      driver.from(relay, "closed");
      driver.wallMs += byMs;
      assert.ok(isFull(reconnected(driver)));
    });
  }
});

describe("the good moment", () => {
  it("is the last frame before a loss, not the moment at which the loss was noticed", () => {
    const driver = live();
    driver.advance(70 * second);
    const heardMs = driver.wallMs - 70 * second;
    driver.from(relay, "closed", { silentMs: 70 * second });
    const said = reconnected(driver);
    assert.deepEqual(sinceOf(said), new Set([Math.floor(heardMs / 1000) - 3600]));
    assert.equal(subscribed(said, "h").length, 1 + 1 + 3, "announcements, states and what refers to the repository");
  });

  it("lies before the silence: a link that was silent for 20 min is stale", () => {
    const driver = live();
    driver.advance(20 * minute);
    driver.from(relay, "closed", { silentMs: 20 * minute });
    assert.equal(driver.relay(relay)?.inStepUntilMs, driver.wallMs - 20 * minute);
    assert.ok(isFull(reconnected(driver)));
  });
});
