// Who has a place under the caps on relays (spec "Truth about oneself": places go to the useful).

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { announcing, Driver, event, only, subscribed } from "../../src/sync/core/testing/driver.js";

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

const listing = (driver: Driver, owner: string, identifier: string, names: readonly string[]) =>
  driver.tell({
    type: "accepted",
    event: announcing(
      owner,
      identifier,
      names.map((name) => `wss://${name}`),
    ),
    hosted: true,
  });

/** Moves time; dials fail, except those of `alive`, which answer everything. */
function live(driver: Driver, forMs: number, alive: readonly string[] = [], stepMs = 10_000): void {
  const endMs = driver.nowMs + forMs;
  while (driver.nowMs < endMs) {
    const from = driver.said.length;
    driver.advance(stepMs);
    for (const { relay, state } of driver.snapshot().relays) {
      if (state !== "connecting") continue;
      if (alive.includes(relay)) driver.connect(relay);
      else driver.from(relay, "connectFailed", { kind: "timeout" });
    }
    for (const relay of alive) driver.settle(relay, from);
  }
}

const followed = (driver: Driver): Set<string> => new Set(driver.snapshot().relays.map(({ relay }) => relay));
const dead = Array.from({ length: 20 }, (_, n) => `dead${n}.example`);

describe("places", () => {
  it("held by names that nobody can reach go to a relay that found none", () => {
    const driver = new Driver({ syncMaxRelays: 20 });
    listing(driver, "mallory", "junk", dead);
    driver.tell({ type: "replayEnded" });
    driver.advance(5000);
    listing(driver, "ann", "tool", ["good.example"]);
    driver.advance(5000);
    assert.equal(driver.relay("good.example"), undefined);
    assert.equal(driver.snapshot().unplaced, 1);
    live(driver, 30 * hour, ["good.example"]);
    assert.equal(driver.relay("good.example")?.inStep, true);
    assert.ok(followed(driver).size <= 20);
    assert.equal(driver.snapshot().unplaced, 1, "the one that gave way is without a place now");
  });

  it("are not taken back and forth", () => {
    const driver = new Driver({ syncMaxRelays: 20 });
    listing(driver, "mallory", "junk", dead);
    listing(
      driver,
      "trudy",
      "junk",
      Array.from({ length: 20 }, (_, n) => `gone${n}.example`),
    );
    driver.tell({ type: "replayEnded" });
    live(driver, 10 * day, [], 15 * minute);
    const gaveWay = only(driver.said, "log").filter((log) => log.code === "relay-gave-way");
    assert.ok(gaveWay.length >= 20, "each of the names is tried");
    assert.ok(gaveWay.length <= 10 * 20, "and none more often than daily");
  });

  it("of relays that brought nothing new for a month go as well, those of others do not", () => {
    const driver = new Driver({ syncMaxRelays: 2 });
    listing(driver, "bob", "thing", ["busy.example", "quiet.example"]);
    driver.tell({ type: "replayEnded" });
    const alive = ["busy.example", "quiet.example", "new.example"];
    live(driver, 20 * day, alive, 15 * minute);
    const [subscription] = subscribed(driver.said, "l").filter(({ relay }) => relay === "busy.example");
    const announcement = event("something", 30617, [["d", "x"]]);
    driver.from("busy.example", "event", { subscription: subscription!.subscription, event: announcement });
    const offer = only(driver.said, "offerToIntake").at(-1)!;
    driver.tell({ ...offer, type: "verdict", outcome: { type: "stored" } });
    listing(driver, "bob", "other", ["new.example"]);
    live(driver, 9 * day, alive, 15 * minute);
    assert.equal(driver.relay("new.example"), undefined);
    live(driver, 2 * day, alive, 15 * minute);
    assert.deepEqual(followed(driver), new Set(["busy.example", "new.example"]));
  });

  it("are shared between owners: one who has none gets one from the owner who has most", () => {
    const driver = new Driver({ syncMaxRelays: 10 });
    const greedy = Array.from({ length: 10 }, (_, n) => `r${n}.example`);
    listing(driver, "bob", "thing", greedy);
    driver.tell({ type: "replayEnded" });
    live(driver, hour, greedy);
    listing(driver, "ann", "tool", ["ann.example"]);
    live(driver, hour, [...greedy, "ann.example"]);
    assert.equal(driver.relay("ann.example")?.inStep, true);
    assert.equal(followed(driver).size, 10);
    // Five each would be fair; more than that ann does not get.
    listing(
      driver,
      "ann",
      "more",
      Array.from({ length: 9 }, (_, n) => `ann${n}.example`),
    );
    live(driver, hour, greedy);
    const ofAnn = [...followed(driver)].filter((name) => name.startsWith("ann"));
    assert.equal(ofAnn.length, 5);
  });

  it("of bootstrap relays are theirs", () => {
    const driver = new Driver({ syncMaxRelays: 1, bootstrap: ["wss://boot.example" as never] });
    listing(driver, "ann", "tool", ["good.example"]);
    driver.tell({ type: "replayEnded" });
    live(driver, 40 * day, [], 15 * minute);
    assert.deepEqual(followed(driver), new Set(["boot.example"]));
    assert.equal(driver.snapshot().unplaced, 1);
  });

  it("at one host, and of one owner, go to the useful too", () => {
    const driver = new Driver({ syncMaxRelaysPerHost: 1, syncMaxRelaysPerOwner: 2 });
    listing(driver, "ann", "tool", ["host.example/old", "gone.example"]);
    driver.tell({ type: "replayEnded" });
    driver.advance(5000);
    listing(driver, "ann", "other", ["host.example/new"]);
    live(driver, 30 * hour, ["host.example/new"]);
    assert.equal(driver.relay("host.example/new")?.inStep, true);
  });
});
