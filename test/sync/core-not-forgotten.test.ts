// Nothing asked for is forgotten with a link or a failed job (event-sync.md "Truth about oneself"): rotating rounds, ids
// to fetch, ids that were promised and did not come. And nothing is confirmed that was not asked for.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { EventId } from "../../src/nostr/event.js";
import type { Command } from "../../src/sync/core/messages.js";
import {
  announcing,
  type CommandOf,
  coordinate,
  Driver,
  event,
  fetched,
  id,
  issue,
  only,
  subscribed,
} from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const repo = announcing("ann", "tool", ["wss://a.example"]);
const minute = 60_000;
const hour = 60 * minute;

/** Live, with more roots than there are filters for. */
function withRotatingRoots(config: ConstructorParameters<typeof Driver>[0] = {}): Driver {
  const driver = new Driver({
    syncMaxFilters: 8,
    syncMaxTagsPerFilter: 2,
    syncConsolidatedTagsPerFilter: 4,
    ...config,
  });
  driver.makeLive(relay, repo);
  for (let n = 0; n < 8; n++) driver.tell({ type: "accepted", event: issue(`issue ${n}`, "ann", "tool") });
  const from = driver.said.length;
  driver.advance(5000);
  driver.settle(relay, from);
  assert.ok(driver.relay(relay)!.rotatingRoots >= 4);
  return driver;
}

/** The requests of a round: roots and since. */
const rotated = (commands: readonly Command[]): { roots: readonly string[]; since: number; subscription: string }[] =>
  subscribed(commands, "h").flatMap(({ filters: [filter], subscription }) =>
    filter?.tags?.has("e") && filter.since !== undefined
      ? [{ roots: filter.tags.get("e")!, since: filter.since, subscription }]
      : [],
  );
const rootsIn = (rounds: readonly { roots: readonly string[] }[]): string[] =>
  [...new Set(rounds.flatMap(({ roots }) => roots))].sort();

describe("a rotating round", () => {
  it("that was cut off with its link is asked again on the next, from where it began", () => {
    const driver = withRotatingRoots();
    const first = rotated(driver.advance(6 * hour + 1000));
    assert.ok(first.length > 0);
    const all = driver.relay(relay)!.rotatingRoots;
    driver.from(relay, "closed");
    driver.advance(10_000);
    const from = driver.said.length;
    driver.connect(relay);
    driver.settle(relay, from);
    const again = rotated(driver.said.slice(from)).filter(({ since }) => since === first[0]!.since);
    assert.equal(rootsIn(again).length, all);
  });

  it("of which a part failed asks for that part again after five minutes, and moves on only then", () => {
    const driver = withRotatingRoots();
    let from = driver.said.length;
    const beganSeconds = Math.floor(driver.wallMs / 1000) + 6 * 3600;
    driver.advance(6 * hour + 1000);
    const [bad] = rotated(driver.said.slice(from));
    driver.from(relay, "subscriptionClosed", { subscription: bad!.subscription, message: "error: not now" });
    driver.settle(relay, from);
    from = driver.said.length;
    driver.advance(5 * minute + 1000);
    driver.settle(relay, from);
    const again = rotated(driver.said.slice(from));
    assert.deepEqual(rootsIn(again), rootsIn([bad!]));
    assert.equal(again[0]!.since, bad!.since);
    from = driver.said.length;
    driver.advance(6 * hour);
    const [next] = rotated(driver.said.slice(from));
    assert.ok(Math.abs(next!.since + 3600 - beganSeconds) < 60, "the next round begins where this one did");
  });

  it("that never succeeds keeps asking from where the last success was", () => {
    const driver = withRotatingRoots();
    const since = new Set<number>();
    for (let n = 0; n < 30; n++) {
      const from = driver.said.length;
      driver.advance(hour);
      for (const { since: at, subscription } of rotated(driver.said.slice(from))) {
        since.add(at);
        driver.from(relay, "subscriptionClosed", { subscription, message: "error: not now" });
      }
    }
    assert.equal(since.size, 1);
  });

  it("that is due while the relay limits us wakes nobody in vain", () => {
    const driver = withRotatingRoots({ syncRotateRootsHours: 1 / 60 });
    for (let n = 0; n < 5; n++) {
      const from = driver.said.length;
      driver.advance(minute);
      for (const { subscription } of rotated(driver.said.slice(from))) {
        driver.from(relay, "subscriptionClosed", { subscription, message: "rate-limited: slow down" });
      }
    }
    const woken = only(driver.advance(64_000), "wakeAt").length;
    assert.ok(woken < 40, `woken ${woken} times in 64 s`);
  });
});

describe("ids to fetch at once", () => {
  const wanted = id("wanted");
  const want = (driver: Driver): string => {
    driver.tell({ type: "wantIds", ids: [wanted], coordinate: coordinate("ann", "tool") });
    return subscribed(driver.said, "h").at(-1)!.subscription;
  };
  const isAskedFor = (commands: readonly Command[]): boolean => fetched(commands).flat().includes(wanted);

  for (const [name, fail] of [
    [
      "closed the request",
      (driver: Driver, subscription: string) =>
        driver.from(relay, "subscriptionClosed", { subscription, message: "error: not now" }),
    ],
    ["is silent", (driver: Driver) => driver.advance(60_000)],
  ] as const) {
    it(`are asked for again where the relay ${name}`, () => {
      const driver = new Driver();
      driver.makeLive(relay, repo);
      fail(driver, want(driver));
      const from = driver.said.length;
      driver.advance(2 * minute);
      assert.ok(isAskedFor(driver.said.slice(from)));
      assert.equal(driver.relay(relay)!.state, "live");
    });
  }

  it("are not asked for again where the relay answered without them", () => {
    const driver = new Driver();
    driver.makeLive(relay, repo);
    driver.from(relay, "eose", { subscription: want(driver) });
    const from = driver.said.length;
    driver.advance(6 * hour);
    assert.ok(!isAskedFor(driver.said.slice(from)));
  });

  it("are given up after some tries, with a warning", () => {
    const driver = new Driver();
    driver.makeLive(relay, repo);
    let from = driver.said.length;
    const start = from;
    want(driver);
    for (let n = 0; n < 12 * 60; n++) {
      const commands = driver.said.slice(from);
      from = driver.said.length;
      for (const { subscription, filters } of subscribed(commands, "h")) {
        if (filters[0]?.ids) driver.from(relay, "subscriptionClosed", { subscription, message: "error: never" });
        else driver.from(relay, "eose", { subscription });
      }
      driver.advance(minute);
    }
    assert.equal(fetched(driver.said.slice(start)).length, 5);
    assert.equal(only(driver.said, "log").filter(({ code }) => code === "ids-given-up").length, 1);
  });
});

describe("ids that a relay claimed and did not deliver", () => {
  it("are counted, keep the relay from being in step, and are asked for again until they come", () => {
    const driver = new Driver();
    driver.tell({ type: "accepted", event: repo, hosted: true });
    driver.tell({ type: "replayEnded" });
    driver.advance(5000);
    driver.connect(relay);
    const missing = [id("one"), id("two")];
    const { session } = only(driver.said, "reconcile").at(-1)!;
    driver.from(relay, "reconciled", { session, missing, peerMissing: 0 });
    const deliver = (subscription: string, name: string): void => {
      const arrived = event(name, 30617, [["d", name]]);
      const [offer] = only(driver.from(relay, "event", { subscription, event: arrived }), "offerToIntake");
      driver.tell({ ...offer!, type: "verdict", outcome: { type: "stored" } });
    };
    deliver(subscribed(driver.said, "h").at(-1)!.subscription, "one");
    driver.settle(relay);
    assert.deepEqual(fetched(driver.said), [missing, [id("two")]], "once more at once");
    const counted = (): number =>
      only(driver.said, "count").filter(({ counter }) => counter === "undelivered_ids").length;
    assert.equal(counted(), 1);
    assert.equal(driver.relay(relay)!.inStep, false);
    const from = driver.said.length;
    driver.advance(11_000);
    const again = subscribed(driver.said.slice(from), "h").at(-1)!;
    assert.deepEqual(again.filters, [{ ids: [id("two")] }]);
    deliver(again.subscription, "two");
    driver.settle(relay, from);
    driver.advance(2 * hour);
    assert.equal(fetched(driver.said).length, 3);
    assert.equal(counted(), 1);
    assert.equal(driver.relay(relay)!.inStep, true);
  });

  it("and that were given up keep it from being in step until a full sync has found nothing missing", () => {
    const driver = new Driver();
    driver.tell({ type: "accepted", event: repo, hosted: true });
    driver.tell({ type: "replayEnded" });
    driver.advance(5000);
    let from = driver.said.length;
    driver.connect(relay);
    const { session } = only(driver.said, "reconcile").at(-1)!;
    driver.from(relay, "reconciled", { session, missing: [id("one")], peerMissing: 0 });
    const answered = (ms: number): void => {
      for (const endMs = driver.nowMs + ms; driver.nowMs < endMs; driver.advance(minute)) {
        const start = from;
        from = driver.said.length;
        driver.settle(relay, start);
      }
    };
    answered(2 * hour);
    assert.equal(only(driver.said, "log").filter(({ code }) => code === "ids-given-up").length, 1);
    assert.equal(driver.relay(relay)!.inStep, false);
    answered(20 * hour);
    assert.equal(driver.relay(relay)!.inStep, false, "nobody has asked since");
    answered(6 * hour);
    assert.equal(driver.relay(relay)!.inStep, true, "the daily sync found nothing missing");
  });
});

describe("an item's number that is used again while a job runs", () => {
  const ofRoot = (driver: Driver, root: EventId): CommandOf<"subscribe">[] =>
    subscribed(driver.said, "h").filter(({ filters: [filter] }) =>
      [...(filter?.tags?.values() ?? [])].some((values) => values.includes(root)),
    );

  for (const end of ["eose", "subscriptionClosed"] as const) {
    it(`is not ${end === "eose" ? "confirmed" : "failed"} by the job of the one before`, () => {
      const driver = new Driver({ syncDisableNegentropy: true });
      driver.makeLive(relay, repo);
      const [old, later] = [issue("old", "ann", "tool"), issue("new", "ann", "tool")];
      const live = (): void => {
        for (const { subscription } of subscribed(driver.said, "l")) driver.from(relay, "eose", { subscription });
      };
      driver.tell({ type: "accepted", event: old });
      driver.advance(5000);
      live();
      driver.tell({ type: "removed", id: old.id, cause: "deletion" });
      driver.advance(5000);
      live();
      driver.tell({ type: "accepted", event: later });
      driver.advance(5000);
      live();
      assert.ok(ofRoot(driver, old.id).length > 0 && ofRoot(driver, later.id).length > 0, "both are on their way");
      for (const { subscription } of ofRoot(driver, old.id)) {
        driver.from(relay, end, { subscription, ...(end === "subscriptionClosed" && { message: "error: no" }) });
      }
      const state = driver.relay(relay)!;
      assert.equal(state.items, 4);
      assert.equal(state.confirmedItems, 3);
      assert.equal(state.retryingItems, 0);
      for (let n = 0; n < 3; n++) {
        for (const { subscription } of ofRoot(driver, later.id)) driver.from(relay, "eose", { subscription });
      }
      assert.equal(driver.relay(relay)!.confirmedItems, 4);
    });
  }
});
