// What sync does when the lists of what is mirrored change: refused announcements are asked for again, and the relays of
// mirrored services are followed from then on, and no longer.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SyncConfig } from "../../src/sync/core/config.js";
import { announcing, bootstrap, Driver, event, only, subscribed } from "../../src/sync/core/testing/driver.js";

const relay = "a.example";

function liveDriver(config: Partial<SyncConfig> = {}): Driver {
  const driver = new Driver(config);
  driver.makeLive(relay, announcing("ann", "one", ["wss://a.example"]));
  return driver;
}

/** The relay sends an announcement that does not list us, and it is refused for that. */
function refuseOne(driver: Driver): void {
  const other = event("other", 30617, [["d", "elsewhere"]]);
  const live = subscribed(driver.said, "l")[0];
  driver.from(relay, "event", { subscription: live?.subscription, event: other });
  const outcome = { type: "refused", code: "service-not-listed" } as const;
  driver.tell({ type: "verdict", relay, source: "live", layerFour: false, event: other, outcome });
}

test("announcements refused for not listing us are forgotten and asked for again when the archive lists change", () => {
  const driver = liveDriver();
  refuseOne(driver);
  assert.equal(driver.snapshot().cold, 1);
  let said = driver.tell({ type: "listsChanged" });
  assert.deepEqual([driver.snapshot().cold, only(said, "reconcile").length], [1, 0], "other lists say nothing of it");
  said = driver.tell({ type: "listsChanged", archive: true });
  assert.equal(driver.snapshot().cold, 0);
  assert.equal(only(said, "forget").length, 1);
  assert.deepEqual(
    only(said, "reconcile").map(({ filter }) => filter.kinds),
    [[30617]],
    "layer 1 and nothing else",
  );
});

test("a service that is mirrored from now on is followed whatever it holds, and let go with its entry", () => {
  const config: Partial<SyncConfig> = { bootstrap: [] };
  const driver = liveDriver(config);
  const follow = (...urls: string[]): ReturnType<Driver["tell"]> => {
    Object.assign(driver.config, { bootstrap: urls.map(bootstrap) });
    return driver.tell({ type: "listsChanged", archive: true });
  };
  const said = follow("wss://service.example", "wss://a.example");
  assert.deepEqual(
    only(said, "connect").map((command) => command.relay),
    ["service.example"],
  );
  assert.equal(driver.relay("service.example")?.bootstrap, true);
  assert.equal(driver.relay("service.example")?.items, 2, "announcements, and states of what is wanted");
  assert.equal(driver.relay(relay)?.bootstrap, true, "one that is followed anyway");
  driver.connect("service.example");
  driver.advance(120_000);
  assert.ok(driver.relay("service.example"), "it is not forgotten for holding nothing of ours");

  follow();
  assert.equal(driver.relay(relay)?.bootstrap, false);
  assert.equal(driver.relay(relay)?.items, 3, "announcements, states and events of the repository it is listed for");
  driver.advance(60_000);
  assert.equal(driver.relay("service.example"), undefined);
  assert.ok(driver.relay(relay), "a repository still lists it");
});

test("states of a repository that is announced later are asked for at a service that was added later", () => {
  const driver = liveDriver();
  Object.assign(driver.config, { bootstrap: [bootstrap("wss://service.example")] });
  driver.tell({ type: "listsChanged", archive: true });
  driver.tell({ type: "accepted", event: announcing("bob", "two", ["wss://b.example"]), hosted: true });
  driver.advance(5_000);
  assert.equal(driver.relay("service.example")?.items, 3);
});
