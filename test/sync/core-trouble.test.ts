// Our own trouble is not a relay's, nor a reason to storm: what it lost is fetched with one full sync, and what our own
// rules refuse causes nothing.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NostrEvent } from "../../src/nostr/event.js";
import type { Outcome } from "../../src/sync/core/messages.js";
import { announcing, coordinate, Driver, event, key, only, subscribed } from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const minute = 60_000;
const hour = 60 * minute;
type Code = Extract<Outcome, { type: "refused" }>["code"];

function live(config: ConstructorParameters<typeof Driver>[0] = {}): Driver {
  const driver = new Driver({ syncDailyMinHours: 1e6, syncDailyMaxHours: 1e6, ...config });
  driver.makeLive(relay, announcing("ann", "tool", ["wss://a.example"]));
  return driver;
}

const comment = (name: string): NostrEvent => event(name, 1111, [["A", coordinate("ann", "tool")]]);
const judge = (driver: Driver, judged: NostrEvent, outcome: Outcome) =>
  driver.tell({ type: "verdict", relay, source: "live", layerFour: false, event: judged, outcome });
const refused = (code: Code): Outcome => ({ type: "refused", code });

/** Full syncs while `ms` pass: each begins with the announcements. Everything is answered; `meets` says what that met. */
function fullSyncs(driver: Driver, ms: number, meets: () => void = () => undefined): number[] {
  const atMinutes: number[] = [];
  const startMs = driver.nowMs;
  while (driver.nowMs < startMs + ms) {
    const from = driver.said.length;
    driver.advance(minute / 2);
    const begun = only(driver.said.slice(from), "reconcile").some(({ filter }) => filter.kinds?.[0] === 30617);
    if (begun) {
      atMinutes.push(Math.round((driver.nowMs - startMs) / minute));
      meets();
    }
    driver.settle(relay, from);
  }
  return atMinutes;
}

describe("our own trouble", () => {
  for (const code of ["too-many-waiting", "waiting-room-full", "rate-limited", "internal"] as const) {
    it(`a refusal for ${code} causes no sync and no pause, however many there are`, () => {
      const driver = live({ syncRefusedSampleEvents: 10 });
      const said = driver.said.length;
      for (let n = 0; n < 30; n++) judge(driver, comment(`c${n}`), refused(code));
      assert.deepEqual(fullSyncs(driver, 3 * hour), []);
      assert.deepEqual(only(driver.said.slice(said), "disconnect"), []);
    });
  }

  for (const code of ["disk-full", "store-failed", "shutting-down", "busy"] as const) {
    it(`what ${code} lost is fetched with one full sync two minutes later`, () => {
      const driver = live();
      for (let n = 0; n < 100; n++) judge(driver, comment(`c${n}`), refused(code));
      assert.deepEqual(fullSyncs(driver, 3 * hour), [2]);
    });
  }

  it("trouble that goes on makes the waits longer, up to an hour, and a sync without trouble ends them", () => {
    const driver = live();
    judge(driver, comment("lost"), refused("disk-full"));
    const during = fullSyncs(driver, 5 * hour, () => judge(driver, comment("lost"), refused("disk-full")));
    assert.deepEqual(during, [2, 6, 14, 30, 62, 122, 182, 242]);
    const [after, ...more] = fullSyncs(driver, 5 * hour);
    assert.ok(after !== undefined && after <= 60);
    assert.deepEqual(more, []);
    judge(driver, comment("lost"), refused("disk-full"));
    assert.deepEqual(fullSyncs(driver, 3 * hour), [2], "short again");
  });

  it("events that are stored meanwhile do not make the waits short again", () => {
    const driver = live();
    const meets = (): void => {
      judge(driver, comment("lost"), refused("disk-full"));
      judge(driver, comment("deletion"), { type: "stored" });
    };
    meets();
    assert.deepEqual(fullSyncs(driver, hour, meets), [2, 6, 14, 30]);
  });

  it("while events keep being lost the sync waits for the end of it", () => {
    const driver = live();
    for (let minutes = 0; minutes < 30; minutes++) {
      judge(driver, comment("lost"), refused("disk-full"));
      assert.deepEqual(fullSyncs(driver, minute), []);
    }
    assert.deepEqual(fullSyncs(driver, hour), [1]);
  });

  it("trouble is not forgotten with the link", () => {
    const driver = live();
    judge(driver, comment("lost"), refused("store-failed"));
    driver.from(relay, "closed");
    driver.advance(10_000);
    const from = driver.said.length;
    driver.connect(relay);
    driver.settle(relay, from);
    assert.deepEqual(fullSyncs(driver, hour), [2]);
  });

  it("a sync that is under way is not called off for another", () => {
    const driver = live();
    judge(driver, comment("lost"), refused("disk-full"));
    const from = driver.said.length;
    driver.advance(2 * minute);
    judge(driver, comment("lost"), refused("disk-full"));
    for (let n = 0; n < 20; n++) {
      const session = only(driver.said, "reconcile").at(-1)!.session;
      driver.from(relay, "reconcileProgress", { session });
      const steps = driver.said.length;
      driver.advance(minute / 7.5);
      assert.ok(only(driver.said.slice(steps), "wakeAt").length < 4, "and is not watched in a tight circle");
    }
    assert.equal(only(driver.said.slice(from), "reconcile").length, 1);
    driver.settle(relay, from);
    assert.deepEqual(fullSyncs(driver, hour), [2]);
  });

  it("a relay is not in step while what trouble lost is not here", () => {
    const driver = live();
    assert.equal(driver.relay(relay)?.inStep, true);
    judge(driver, comment("lost"), refused("disk-full"));
    driver.advance(1_000);
    assert.equal(driver.relay(relay)?.inStep, false);
    fullSyncs(driver, 3 * minute);
    assert.equal(driver.relay(relay)?.inStep, true);
  });

  for (const code of ["too-many-waiting", "waiting-room-full"] as const) {
    it(`what was refused for ${code} is welcome when there is room: the next sync brings it`, () => {
      const driver = live({ syncDailyMinHours: 1, syncDailyMaxHours: 1 });
      const state = event("state", 30618, [["d", "tool"]], { pubkey: key("ann") });
      judge(driver, state, refused(code));
      assert.equal(driver.snapshot().cold, 0);
      const from = driver.said.length;
      driver.advance(hour);
      const [session] = only(driver.said.slice(from), "reconcile");
      driver.from(relay, "reconciled", { session: session!.session, missing: [state.id], peerMissing: 0 });
      const asked = subscribed(driver.said, "h").at(-1)!;
      assert.deepEqual(asked.filters, [{ ids: [state.id] }]);
      const said = driver.from(relay, "event", { subscription: asked.subscription, event: state });
      assert.equal(only(said, "offerToIntake").length, 1);
    });
  }
});
