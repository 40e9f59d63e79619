// Live subscriptions: one builder, the fallback for `limit: 0`, the budget, rotation.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { announcing, Driver, event, issue, only, subscribed } from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const repo = announcing("ann", "tool", ["wss://a.example"]);

function addIssues(driver: Driver, from: number, count: number): void {
  for (let n = from; n < from + count; n++)
    driver.tell({ type: "accepted", event: issue(`issue ${n}`, "ann", "tool") });
  const at = driver.said.length;
  driver.advance(5000);
  driver.settle(relay, at);
}

describe("live", () => {
  it("where limit 0 is refused, it asks for the last hour instead, because peers release late", () => {
    const driver = new Driver();
    driver.tell({ type: "accepted", event: repo, hosted: true });
    driver.advance(5000);
    driver.connect(relay);
    const [first] = subscribed(driver.said, "l");
    const from = driver.said.length;
    driver.from(relay, "subscriptionClosed", { subscription: first!.subscription, message: "invalid: limit" });
    const [again] = subscribed(driver.said.slice(from), "l");
    assert.deepEqual(again?.filters, [{ kinds: [30617], since: Math.floor(driver.wallMs / 1000) - 3600 }]);
  });

  it("a new issue replaces one chunk: opened first, the old one closed after EOSE", () => {
    const driver = new Driver();
    driver.makeLive(relay, repo);
    addIssues(driver, 0, 1);
    const [old] = subscribed(driver.said, "l").slice(-1);
    driver.tell({ type: "accepted", event: issue("second", "ann", "tool") });
    const from = driver.said.length;
    driver.advance(5000);
    const opened = subscribed(driver.said.slice(from), "l");
    assert.deepEqual(
      opened.map(({ filters }) => filters.length),
      [3],
    );
    assert.deepEqual(opened[0]?.filters[0]?.tags?.get("e")?.length, 2);
    assert.deepEqual(only(driver.said.slice(from), "unsubscribe"), []);
    driver.from(relay, "eose", { subscription: opened[0]!.subscription });
    assert.ok(
      only(driver.said.slice(from), "unsubscribe").some((command) => command.subscription === old!.subscription),
    );
  });

  it("a new issue touches only its own repository's relays", () => {
    const driver = new Driver();
    driver.makeLive(relay, repo);
    driver.tell({ type: "accepted", event: announcing("bob", "other", ["wss://b.example"]), hosted: true });
    driver.advance(5000);
    driver.connect("b.example");
    driver.settle("b.example");
    driver.tell({ type: "accepted", event: issue("bug", "ann", "tool") });
    const said = driver.advance(5000);
    assert.ok(said.length > 1);
    assert.ok(said.every((command) => !("relay" in command) || command.relay === relay));
  });

  it("chunks hold a hundred values, long values stand alone", () => {
    const driver = new Driver({ syncDisableNegentropy: true });
    driver.tell({ type: "accepted", event: announcing("ann", "x".repeat(300), ["wss://a.example"]), hosted: true });
    for (let n = 0; n < 150; n++)
      driver.tell({ type: "accepted", event: announcing("ann", `repo ${n}`, ["wss://a.example"]), hosted: true });
    driver.advance(5000);
    driver.connect(relay);
    driver.settle(relay);
    const sizes = (prefix: "l" | "h"): number[] =>
      [
        ...new Set(
          subscribed(driver.said, prefix).flatMap(({ filters }) =>
            filters.map((filter) => filter.tags?.get("d")?.length ?? 0),
          ),
        ),
      ].sort((a, b) => a - b);
    assert.deepEqual(sizes("l"), [0, 1, 50, 100]);
    assert.deepEqual(sizes("h"), [0, 1, 50, 100]);
  });

  it("above the budget the least recently active roots rotate, and rotation asks for them every six hours", () => {
    const driver = new Driver({ syncMaxFilters: 8, syncMaxTagsPerFilter: 2, syncConsolidatedTagsPerFilter: 4 });
    driver.makeLive(relay, repo);
    addIssues(driver, 0, 6);
    const state = driver.relay(relay)!;
    assert.ok(state.liveFilters <= 8);
    assert.ok(state.rotatingRoots >= 2);
    const from = driver.said.length;
    driver.advance(6 * 60 * 60 * 1000 + 1000);
    const rotated = subscribed(driver.said.slice(from), "h").filter(({ filters }) => filters[0]!.tags?.has("e"));
    assert.ok(rotated.length > 0);
    assert.ok(rotated.every(({ filters }) => filters[0]!.since !== undefined));
  });

  it("a root that comes alive again is live again", () => {
    const driver = new Driver({ syncMaxFilters: 8, syncMaxTagsPerFilter: 2, syncConsolidatedTagsPerFilter: 4 });
    driver.makeLive(relay, repo);
    addIssues(driver, 0, 6);
    const live = new Set(subscribed(driver.said, "l").at(-1)!.filters[0]!.tags!.get("e"));
    const rotating = [0, 1, 2, 3, 4, 5]
      .map((n) => issue(`issue ${n}`, "ann", "tool").id)
      .find((root) => !live.has(root))!;
    const comment = event("comment", 1111, [["E", rotating]], { created_at: 1_699_999_999 });
    const from = driver.said.length;
    driver.tell({
      type: "verdict",
      relay,
      source: "rotating",
      layerFour: false,
      event: comment,
      outcome: { type: "stored" },
    });
    driver.settle(relay, from);
    assert.ok(
      subscribed(driver.said.slice(from), "l").some(({ filters }) => filters[0]!.tags?.get("e")?.includes(rotating)),
    );
  });

  it("between two Holdfasts fifty thousand roots stay live", () => {
    const driver = new Driver({ syncBatchWindowMs: 1 });
    const limits = {
      maxFilterValues: 5000,
      maxMessageBytes: 5 * 2 ** 20,
      maxFilters: 100,
      maxSubscriptions: 300,
      maxLimit: 5000,
    };
    driver.tell({ type: "accepted", event: repo, hosted: true });
    driver.advance(1);
    driver.connect(relay, limits);
    for (let n = 0; n < 50_000; n++) driver.tell({ type: "accepted", event: issue(`issue ${n}`, "ann", "tool") });
    driver.advance(1);
    for (let at = 0; at < driver.said.length; at++) {
      const command = driver.said[at]!;
      if (command.type === "subscribe") driver.from(relay, "eose", { subscription: command.subscription });
    }
    const state = driver.relay(relay)!;
    assert.equal(state.items, 50_003);
    assert.equal(state.rotatingRoots, 0);
    assert.ok(state.liveFilters <= 70);
  });

  it("a chunk the relay closed is reopened, and what came meanwhile is caught up", () => {
    const driver = new Driver();
    driver.makeLive(relay, repo);
    const chunk = subscribed(driver.said, "l").find(({ filters }) => filters[0]!.tags?.has("a"))!;
    const from = driver.said.length;
    driver.from(relay, "subscriptionClosed", { subscription: chunk.subscription, message: "error: restarting" });
    driver.settle(relay, from);
    const again = driver.said.slice(from);
    assert.equal(subscribed(again, "l")[0]?.filters.length, 3);
    const since = Math.floor(driver.wallMs / 1000) - 3600;
    assert.deepEqual(
      subscribed(again, "h").map(({ filters }) => filters[0]!.since),
      [since, since, since],
    );
  });

  it("a wanted relay that says its limits is not asked beyond them", () => {
    const driver = new Driver();
    driver.tell({ type: "accepted", event: repo, hosted: true });
    for (let n = 0; n < 60; n++) driver.tell({ type: "accepted", event: issue(`issue ${n}`, "ann", "tool") });
    driver.advance(5000);
    const from = driver.said.length;
    driver.connect(relay, { maxFilterValues: 20, maxFilters: 1, maxSubscriptions: 20 });
    driver.settle(relay, from + 1);
    const after = driver.said.slice(from).filter((command) => command.type === "subscribe");
    const late = after.slice(-10);
    assert.ok(late.every(({ filters }) => filters.length === 1));
    assert.ok(late.every(({ filters }) => [...(filters[0]!.tags?.values() ?? [])].every((list) => list.length <= 20)));
  });
});
