// How fast a relay is asked: no more than 200 requests a minute outside first and daily sync (spec "Simulation" 7).

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { announcing, Driver, event, id, issue } from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const minute = 60_000;

/** So many roots that looking at all of them takes hundreds of requests. */
function live(roots: number): Driver {
  const driver = new Driver({ syncDisableNegentropy: true });
  for (let n = 0; n < roots; n++) driver.tell({ type: "accepted", event: issue(`i${n}`, "ann", "tool") });
  driver.makeLive(relay, announcing("ann", "tool", ["wss://a.example"]));
  return driver;
}

/** Requests of each minute while time passes; `answer` is what the relay does with each. */
function perMinute(
  driver: Driver,
  minutes: number,
  answer: (subscription: string) => void,
  from = driver.said.length,
): number[] {
  const counts: number[] = [];
  let at = from;
  for (let n = 0; n < minutes; n++) {
    const endMs = driver.nowMs + minute;
    let asked = 0;
    while (driver.nowMs < endMs) {
      driver.advance(1000);
      for (; at < driver.said.length; at++) {
        const command = driver.said[at]!;
        if (command.type !== "subscribe") continue;
        asked += 1;
        answer(command.subscription);
      }
    }
    counts.push(asked);
  }
  return counts;
}

describe("requests", () => {
  it("of a first sync come as fast as the relay answers", () => {
    const driver = live(10_000);
    assert.equal(driver.relay(relay)?.inStep, true);
    assert.ok(driver.nowMs <= 5000);
  });

  it("of a quick reconnect are spread, and all of them come", () => {
    const driver = live(10_000);
    driver.from(relay, "closed");
    driver.advance(10_000);
    const from = driver.said.length;
    driver.connect(relay);
    const counts = perMinute(driver, 5, (subscription) => driver.from(relay, "eose", { subscription }), from);
    assert.ok(Math.max(...counts) <= 200, counts.join(" "));
    assert.ok(counts.reduce((sum, count) => sum + count, 0) > 300);
    assert.equal(driver.relay(relay)?.inStep, true);
  });

  it("that are refused again and again are spread", () => {
    const driver = live(10_000);
    driver.advance(30 * 60 * minute);
    let n = 0;
    const counts = perMinute(driver, 10, (subscription) =>
      subscription.startsWith("l") || n++ % 3 > 0
        ? driver.from(relay, "eose", { subscription })
        : driver.from(relay, "subscriptionClosed", { subscription, message: "error: not now" }),
    );
    assert.ok(Math.max(...counts.slice(2)) <= 200, counts.join(" "));
  });

  it("of a full sync that a relay refuses without end are spread from the first retry on", () => {
    const driver = live(10_000);
    driver.advance(26 * 60 * minute);
    const unanswered: string[] = [];
    let at = driver.said.length;
    const counts: number[] = [];
    for (let second = 0; second < 600; second++) {
      driver.advance(1000);
      for (; at < driver.said.length; at++) {
        const command = driver.said[at]!;
        if (command.type !== "subscribe") continue;
        const n = Math.floor(second / 60);
        counts[n] = (counts[n] ?? 0) + 1;
        unanswered.push(command.subscription);
      }
      // Six a second: what failed first is due again before all of it was asked once.
      for (const subscription of unanswered.splice(0, 6)) {
        if (subscription.startsWith("l")) driver.from(relay, "eose", { subscription });
        else
          driver.from(relay, "subscriptionClosed", { subscription, message: "restricted: nothing old is served here" });
      }
    }
    assert.ok(counts.reduce((sum, count) => sum + count, 0) > 300, "everything was asked once");
    assert.ok(Math.max(...counts.slice(2)) <= 200, counts.join(" "));
  });

  it("of what a relay's rules refuse come ever less often, and are answered within minutes once they are not", () => {
    const driver = live(1_000);
    driver.advance(26 * 60 * minute);
    let isRefusing = true;
    const counts = perMinute(driver, 60, (subscription) =>
      subscription.startsWith("l") || !isRefusing
        ? driver.from(relay, "eose", { subscription })
        : driver.from(relay, "subscriptionClosed", { subscription, message: "restricted: for members only" }),
    );
    const asked = counts.slice(30).reduce((sum, count) => sum + count, 0);
    assert.ok(asked > 0 && asked < 200, `${asked} requests in the second half hour: ${counts.join(" ")}`);
    assert.equal(driver.relay(relay)?.inStep, false);
    isRefusing = false;
    perMinute(driver, 12, (subscription) => driver.from(relay, "eose", { subscription }));
    assert.equal(driver.relay(relay)?.inStep, true);
  });

  /** Sends page after page of one older event each, and fails before the end. */
  function failingAfter(driver: Driver, pages: number): (subscription: string) => void {
    let asked = 0;
    return (subscription) => {
      if (subscription.startsWith("l")) return void driver.from(relay, "eose", { subscription });
      asked += 1;
      if (asked % pages === 0) {
        driver.from(relay, "subscriptionClosed", { subscription, message: "error: not now" });
        return;
      }
      const comment = event(`page ${asked}`, 1111, [["e", id("new")]], { created_at: 1_600_000_000 - asked });
      driver.from(relay, "event", { subscription, event: comment });
      driver.from(relay, "eose", { subscription });
    };
  }

  it("of what failed once are spread from the first retry on", () => {
    const driver = live(1);
    const from = driver.said.length;
    driver.tell({ type: "accepted", event: issue("new", "ann", "tool") });
    const counts = perMinute(driver, 3, failingAfter(driver, 70), from);
    assert.ok(counts[0]! > 70, "the first time comes as fast as the relay answers");
    assert.ok(Math.max(...counts) <= 200, counts.join(" "));
  });

  it("of what a lost link cut off are spread when they are asked again", () => {
    const driver = live(1);
    driver.tell({ type: "accepted", event: issue("new", "ann", "tool") });
    const answer = failingAfter(driver, 1000);
    let from = driver.said.length;
    driver.advance(5000);
    let [asked, lastLossMs] = [0, 0];
    const beganMs = driver.nowMs;
    while (driver.nowMs < beganMs + minute) {
      for (let ofLink = 0; from < driver.said.length; from++) {
        const command = driver.said[from]!;
        if (command.type === "connect") driver.connect(relay);
        if (command.type !== "subscribe") continue;
        asked += 1;
        ofLink += 1;
        if (ofLink < 70) answer(command.subscription);
        else if (driver.nowMs > lastLossMs) {
          lastLossMs = driver.nowMs;
          driver.from(relay, "closed");
        }
      }
      driver.advance(1000);
    }
    assert.ok(asked > 70, "the first time comes as fast as the relay answers");
    assert.ok(asked <= 200, `${asked}`);
  });

  it("of a quick reconnect are spread although something new is asked for too", () => {
    const driver = live(10_000);
    driver.from(relay, "closed");
    driver.tell({ type: "accepted", event: issue("new", "ann", "tool") });
    driver.advance(10_000);
    const from = driver.said.length;
    driver.connect(relay);
    const counts = perMinute(driver, 5, (subscription) => driver.from(relay, "eose", { subscription }), from);
    assert.ok(Math.max(...counts) <= 200, counts.join(" "));
    assert.equal(driver.relay(relay)?.confirmedItems, driver.relay(relay)?.items);
  });
});
