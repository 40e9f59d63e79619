// Connections and health: back-off, dead, naughty, forgetting.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { announcing, bootstrap, Driver, only } from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const minute = 60_000;
const hour = 60 * minute;

function dialling(config: ConstructorParameters<typeof Driver>[0] = {}, urls = ["wss://a.example"]): Driver {
  const driver = new Driver(config);
  driver.tell({ type: "accepted", event: announcing("ann", "tool", urls), hosted: true });
  driver.advance(5000);
  return driver;
}

const dials = (driver: Driver, of = relay): number =>
  only(driver.said, "connect").filter((command) => command.relay === of).length;

/** Milliseconds until the next dial. */
function untilDial(driver: Driver, of = relay): number {
  const from = driver.nowMs;
  const before = dials(driver, of);
  while (dials(driver, of) === before) driver.advance(1000);
  return driver.nowMs - from;
}

describe("health", () => {
  it("failure n waits 5 s times two to the n minus one, up to an hour", () => {
    const driver = dialling();
    const waits: number[] = [];
    for (let n = 0; n < 12; n++) {
      driver.from(relay, "connectFailed", { kind: "refused" });
      waits.push(Math.round(untilDial(driver) / 1000));
    }
    assert.deepEqual(waits, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]);
  });

  it("a link of five minutes or more starts the count anew, a shorter one is one more failure", () => {
    const driver = dialling();
    for (let n = 0; n < 4; n++) {
      driver.from(relay, "connectFailed", { kind: "refused" });
      untilDial(driver);
    }
    driver.connect(relay);
    driver.advance(minute);
    driver.from(relay, "closed");
    assert.equal(driver.relay(relay)?.failures, 5);
    assert.equal(untilDial(driver), 80_000);
    driver.connect(relay);
    driver.advance(5 * minute);
    driver.from(relay, "closed");
    assert.equal(driver.relay(relay)?.failures, 1);
    assert.equal(untilDial(driver), 5000);
  });

  it("24 h of failures make a relay dead, dialled once a day, until a link lasts", () => {
    const driver = dialling();
    while (driver.relay(relay)?.status !== 3) {
      driver.from(relay, "connectFailed", { kind: "timeout" });
      if (driver.relay(relay)?.status !== 3) untilDial(driver);
    }
    assert.ok(driver.nowMs >= 24 * hour);
    assert.equal(
      only(driver.said, "log").filter((log) => log.code === "relay-dead" && log.level === "error").length,
      1,
    );
    assert.equal(driver.snapshot().dead, 1);
    assert.equal(untilDial(driver), 24 * hour);
    driver.connect(relay);
    driver.advance(6 * minute);
    driver.from(relay, "closed");
    assert.equal(driver.relay(relay)?.status, 2);
    assert.equal(driver.snapshot().dead, 0);
  });

  it("three lasting failures over ten minutes make a relay naughty for 12 h, kept over a restart", () => {
    const driver = dialling();
    while (only(driver.said, "saveNaughty").length === 0) {
      driver.from(relay, "connectFailed", { kind: "certificate" });
      if (only(driver.said, "saveNaughty").length === 0) untilDial(driver);
    }
    assert.ok(driver.nowMs >= 10 * minute);
    assert.equal(driver.snapshot().naughty.certificate, 1);
    const [saved] = only(driver.said, "saveNaughty");
    assert.equal(untilDial(driver), 12 * hour);
    assert.equal(only(driver.said, "dropNaughty").length, 1);
    assert.equal(driver.snapshot().naughty.certificate, 0);
    const restarted = new Driver();
    restarted.tell({
      type: "naughtyLoaded",
      entries: [{ relay, kind: "certificate", untilWallMs: saved!.untilWallMs }],
    });
    restarted.tell({ type: "accepted", event: announcing("ann", "tool", ["wss://a.example"]), hosted: true });
    restarted.advance(hour);
    assert.equal(dials(restarted), 0);
  });

  for (const kind of ["timeout", "dns-temporary", "too-many-requests", "server-error", "refused"] as const) {
    it(`${kind} never makes a relay naughty`, () => {
      const driver = dialling();
      for (let n = 0; n < 9; n++) {
        driver.from(relay, "connectFailed", { kind });
        untilDial(driver);
      }
      assert.deepEqual(only(driver.said, "saveNaughty"), []);
    });
  }

  it("names that do not exist are our resolver's fault when several hosts fail in the same minute", () => {
    const driver = dialling({}, ["wss://a.example", "wss://b.example"]);
    for (let n = 0; n < 9; n++) {
      driver.from(relay, "connectFailed", { kind: "dns-not-found" });
      driver.from("b.example", "connectFailed", { kind: "dns-not-found" });
      untilDial(driver);
      while (driver.relay("b.example")?.state !== "connecting") driver.advance(1000);
    }
    assert.deepEqual(only(driver.said, "saveNaughty"), []);
  });

  it("bootstrap relays are never naughty and never forgotten", () => {
    const driver = new Driver({ bootstrap: [bootstrap("wss://boot.example")] });
    driver.tell({ type: "replayEnded" });
    driver.advance(1000);
    for (let n = 0; n < 9; n++) {
      driver.from("boot.example", "connectFailed", { kind: "not-websocket" });
      untilDial(driver, "boot.example");
    }
    assert.deepEqual(only(driver.said, "saveNaughty"), []);
    assert.ok(driver.relay("boot.example"));
  });

  it("a relay that leaves targets and comes back does not escape its back-off", () => {
    const driver = dialling();
    for (let n = 0; n < 8; n++) {
      driver.from(relay, "connectFailed", { kind: "refused" });
      if (n < 7) untilDial(driver);
    }
    driver.tell({ type: "accepted", event: announcing("ann", "tool", []), hosted: true });
    driver.advance(2 * minute);
    assert.equal(driver.relay(relay), undefined);
    driver.tell({ type: "accepted", event: announcing("ann", "tool", ["wss://a.example"]), hosted: true });
    driver.advance(6000);
    assert.ok(untilDial(driver) > 8 * minute);
  });

  it("a dial that never answers is given up after 15 s", () => {
    const driver = dialling();
    driver.advance(15_000);
    assert.equal(only(driver.said, "disconnect").length, 1);
    assert.equal(driver.relay(relay)?.failures, 1);
  });

  it("back-off runs on the monotonic clock: a jump of the wall clock changes nothing", () => {
    const driver = dialling();
    driver.from(relay, "connectFailed", { kind: "refused" });
    driver.wallMs += 24 * hour;
    assert.equal(untilDial(driver), 5000);
  });

  it("a failed catch-up leads to a full sync", () => {
    const driver = new Driver();
    driver.makeLive(relay, announcing("ann", "tool", ["wss://a.example"]));
    driver.advance(20 * minute);
    driver.from(relay, "closed");
    driver.advance(5000);
    const from = driver.said.length;
    driver.connect(relay);
    const catchUp = only(driver.said.slice(from), "subscribe").find((command) => command.subscription.startsWith("h"))!;
    driver.from(relay, "subscriptionClosed", { subscription: catchUp.subscription, message: "error: no" });
    driver.settle(relay, from);
    assert.ok(only(driver.said.slice(from), "log").some((log) => log.code === "stale-reset"));
    assert.equal(only(driver.said.slice(from), "reconcile").length, 5);
  });
});
