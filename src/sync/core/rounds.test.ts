import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nextDailyMs } from "./rounds.js";
import { syncConfig } from "./testing/config.js";
import { announcing, Driver, only } from "./testing/driver.js";

const minute = 60_000;
const hour = 60 * minute;
const names = Array.from({ length: 40 }, (_, n) => `r${n}.example`);

/** Forty relays, linked at the same moment, that have answered nothing yet. */
function connected(config: ConstructorParameters<typeof Driver>[0] = {}): Driver {
  const driver = new Driver({ syncConcurrentDials: 100, ...config });
  for (let n = 0; n < 4; n++) {
    const urls = names.slice(n * 10, n * 10 + 10).map((name) => `wss://${name}`);
    driver.tell({ type: "accepted", event: announcing("ann", `tool ${n}`, urls), hosted: true });
  }
  driver.tell({ type: "replayEnded" });
  driver.advance(5000);
  for (const name of names) driver.connect(name);
  return driver;
}

const asked = (driver: Driver): Set<string> => new Set(only(driver.said, "reconcile").map((command) => command.relay));

describe("full syncs", () => {
  it("are begun a few at a time over all relays, while live is open at each", () => {
    const driver = connected();
    assert.equal(asked(driver).size, 16);
    for (const name of names) assert.ok(driver.relay(name)!.liveFilters > 0);
    const [first] = asked(driver);
    driver.settle(first!);
    assert.equal(asked(driver).size, 17);
    for (let round = 0; round < 3; round++) for (const name of names) driver.settle(name);
    for (const name of names) assert.ok(driver.relay(name)!.inStep, `${name} had its turn`);
  });

  it("of relays that are lost make room for others", () => {
    const driver = connected();
    for (const name of asked(driver)) driver.from(name, "closed");
    assert.equal(asked(driver).size, 32);
  });

  it("that take long do not keep others waiting", () => {
    const driver = connected();
    const slow = [...asked(driver)];
    const from = driver.nowMs;
    while (driver.nowMs - from < 10 * minute) {
      driver.advance(5000);
      // Always just in time, and never at an end.
      for (const command of only(driver.said, "reconcile"))
        if (slow.includes(command.relay)) driver.from(command.relay, "reconcileProgress", { session: command.session });
      for (const name of names) if (!slow.includes(name)) driver.settle(name);
    }
    for (const name of names) if (!slow.includes(name)) assert.ok(driver.relay(name)!.inStep, name);
  });

  it("do not hold up what is new at a relay that has none", () => {
    const driver = connected({ syncMaxFullSyncs: 1 });
    for (let round = 0; round < 40; round++) for (const name of names.slice(0, 39)) driver.settle(name);
    assert.ok(driver.relay(names[0]!)!.inStep);
    const from = driver.said.length;
    driver.tell({ type: "accepted", event: announcing("ann", "more", [`wss://${names[0]}`]), hosted: true });
    driver.advance(5000);
    driver.settle(names[0]!, from);
    assert.ok(only(driver.said.slice(from), "reconcile").some((command) => command.relay === names[0]));
  });
});

describe("the daily sync", () => {
  const at = (clock: string): number => Date.parse(`2026-03-01T${clock}:00Z`);
  for (const [now, quietHours, due, what] of [
    ["14:00", undefined, 24 * hour, "a day later without quiet hours"],
    ["14:00", { from: 2, to: 6 }, 14 * hour, "in the middle of the next night"],
    ["03:00", { from: 2, to: 6 }, 24 * hour, "a day later when that is quiet"],
    ["14:00", { from: 22, to: 4 }, 11 * hour, "in a night that begins before midnight"],
    ["23:00", { from: 22, to: 4 }, 24 * hour, "a day later when that is quiet before midnight"],
    ["07:00", { from: 8, to: 10 }, 24 * hour, "a day later rather than twice in a morning"],
  ] as const) {
    it(`is due ${what}`, () => {
      const config = syncConfig({ ...(quietHours && { syncQuietHours: quietHours }) });
      const step = { now: { wallMs: at(now), monotonicMs: 1000 }, random: () => 0.5 };
      assert.equal(nextDailyMs({ config }, step) - 1000, due);
    });
  }
});
