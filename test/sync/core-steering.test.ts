// What the operator says about relays: left alone, followed again, tried now.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { announcing, Driver, only } from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const hour = 3_600_000;

function following(): Driver {
  const driver = new Driver({});
  driver.tell({ type: "accepted", event: announcing("ann", "tool", ["wss://a.example"]), hosted: true });
  driver.advance(5000);
  return driver;
}

const dials = (driver: Driver): number => only(driver.said, "connect").filter((one) => one.relay === relay).length;

describe("steering", () => {
  it("an ignored relay is closed at once, not dialled for a day, and dialled when that is taken back", () => {
    const driver = following();
    driver.connect(relay);
    driver.tell({ type: "ignoredRelays", relays: new Set([relay]) });
    assert.equal(only(driver.said, "disconnect").length, 1);
    assert.deepEqual([driver.relay(relay)?.state, driver.relay(relay)?.ignored], ["disconnected", true]);
    assert.equal(driver.relay(relay)?.failures, 0);
    const before = dials(driver);
    driver.advance(24 * hour);
    assert.equal(dials(driver), before);
    driver.tell({ type: "ignoredRelays", relays: new Set() });
    assert.equal(dials(driver), before + 1);
  });

  it("a relay ignored from the start, or while it is dialled, is left alone", () => {
    const early = new Driver({});
    early.tell({ type: "ignoredRelays", relays: new Set([relay]) });
    early.tell({ type: "accepted", event: announcing("ann", "tool", ["wss://a.example"]), hosted: true });
    early.advance(hour);
    assert.equal(dials(early), 0);
    const dialling = following();
    assert.equal(dials(dialling), 1);
    dialling.tell({ type: "ignoredRelays", relays: new Set([relay]) });
    assert.equal(only(dialling.said, "disconnect").length, 1);
    dialling.advance(hour);
    assert.equal(dials(dialling), 1);
  });

  it("reconnect dials at once whatever the back-off, and counts failures anew", () => {
    const driver = following();
    // Until it is naughty: left alone for half a day.
    while (only(driver.said, "saveNaughty").length === 0) {
      driver.from(relay, "connectFailed", { kind: "certificate" });
      const had = dials(driver);
      for (let second = 0; second < 3_600 && dials(driver) === had; second++) driver.advance(1000);
    }
    const before = dials(driver);
    driver.advance(1);
    assert.equal(dials(driver), before);
    assert.equal(driver.relay(relay)?.lastFailure?.kind, "certificate");
    driver.tell({ type: "reconnect", relay });
    assert.equal(dials(driver), before + 1);
    driver.from(relay, "connectFailed", { kind: "refused" });
    assert.deepEqual([driver.relay(relay)?.failures, driver.relay(relay)?.lastFailure?.kind], [1, "refused"]);
  });

  it("reconnect makes an open link anew; unknown and ignored relays stay as they are", () => {
    const driver = following();
    driver.connect(relay);
    const before = dials(driver);
    driver.tell({ type: "reconnect", relay });
    assert.equal(dials(driver), before + 1);
    assert.equal(driver.relay(relay)?.failures, 0);
    driver.tell({ type: "reconnect", relay: "unknown.example" });
    driver.tell({ type: "ignoredRelays", relays: new Set([relay]) });
    driver.tell({ type: "reconnect", relay });
    assert.equal(dials(driver), before + 1);
  });
});
