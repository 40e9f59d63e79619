// Layer 4 on its own clock: replies to comments every 23–25 h, deletions hourly (spec "Truth about oneself").

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Pubkey } from "../../src/nostr/event.js";
import type { Command } from "../../src/sync/core/messages.js";
import { announcing, Driver, event, key, only, subscribed } from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const minute = 60_000;
const hour = 60 * minute;
const repo = announcing("ann", "tool", ["wss://a.example"]);

/** Moves time by steps and answers everything; the link is lost after each `lostEveryMs`. */
function live(driver: Driver, forMs: number, lostEveryMs = Number.POSITIVE_INFINITY): void {
  const endMs = driver.nowMs + forMs;
  let linkMs = 0;
  while (driver.nowMs < endMs) {
    const from = driver.said.length;
    driver.advance(minute);
    linkMs += minute;
    driver.settle(relay, from);
    if (linkMs >= lostEveryMs && driver.relay(relay)?.connected) {
      driver.from(relay, "closed");
      linkMs = 0;
    }
    if (driver.relay(relay)?.state !== "connecting") continue;
    const at = driver.said.length;
    driver.connect(relay);
    driver.settle(relay, at);
  }
}

const lookUps = (said: readonly Command[]): number => only(said, "lookUpRelated").length;
const deletionsIn = (said: readonly Command[]) =>
  subscribed(said, "h").flatMap(({ filters }) => (filters[0]?.authors && filters[0].since ? [filters[0]] : []));

describe("layer 4", () => {
  it("runs after the first sync, and then once a day, where links break every 20 h", () => {
    const driver = new Driver();
    driver.related = { ids: [event("comment", 1111, []).id], authors: [key("bob")] };
    driver.makeLive(relay, repo);
    assert.equal(lookUps(driver.said), 1);
    live(driver, 10 * 24 * hour, 20 * hour);
    const rounds = lookUps(driver.said);
    assert.ok(rounds >= 10 && rounds <= 11, `${rounds} rounds in ten days`);
  });

  it("goes on with the next link where a link broke, and is not given up by a full sync", () => {
    const driver = new Driver();
    const comment = event("comment", 1111, []);
    driver.tell({ type: "accepted", event: repo, hosted: true });
    driver.tell({ type: "replayEnded" });
    driver.advance(5000);
    driver.connect(relay);
    driver.settle(relay, 0);
    driver.related = { ids: [comment.id], authors: [] };
    driver.advance(24 * hour);
    const from = driver.said.length;
    for (let at = 0; at < driver.said.length && lookUps(driver.said) < 2; at++) driver.settle(relay, at);
    driver.from(relay, "closed");
    live(driver, 30 * minute);
    const asked = only(driver.said.slice(from), "reconcile").filter(({ filter }) =>
      filter.tags?.get("e")?.includes(comment.id),
    );
    assert.ok(asked.length >= 1, "what was not answered is asked again");
    assert.equal(driver.relay(relay)?.inStep, true);
  });
});

describe("deletions", () => {
  it("are asked for every hour, of the authors here, since an hour before the last round", () => {
    const driver = new Driver();
    driver.related = { ids: [], authors: [key("bob")] };
    driver.makeLive(relay, repo);
    const from = driver.said.length;
    live(driver, 5 * hour);
    const asked = deletionsIn(driver.said.slice(from));
    assert.equal(asked.length, 5);
    for (const filter of asked) {
      assert.deepEqual(filter.kinds, [5, 62]);
      assert.deepEqual(new Set(filter.authors), new Set([key("bob"), key("ann")]));
    }
    const gaps = asked.slice(2).map((filter, n) => filter.since! - asked[n + 1]!.since!);
    assert.ok(gaps.every((seconds) => Math.abs(seconds - 3600) <= 120));
    assert.ok(asked[1]!.since! * 1000 <= driver.wallMs - 4 * hour, "each round looks back an hour behind the last");
  });

  it("are asked for of a thousand authors a round, in turn, from where the last pass began", () => {
    const driver = new Driver();
    const authors = Array.from({ length: 2500 }, (_, n) => key(`author ${n}`) as Pubkey);
    driver.related = { ids: [], authors };
    driver.makeLive(relay, repo);
    const from = driver.said.length;
    live(driver, 6 * hour);
    const asked = deletionsIn(driver.said.slice(from));
    assert.equal(new Set(asked.slice(0, 26).flatMap((filter) => filter.authors)).size, 2501);
    const [first] = asked;
    assert.ok(asked.slice(0, 25).every((filter) => filter.since! >= first!.since!));
    assert.ok(asked.length >= 2 * 26);
    // The second pass begins an hour before the first did, not before the last round of it.
    assert.ok(asked[26]!.since! * 1000 < driver.wallMs - 5 * hour);
  });

  it("a round that failed does not move on", () => {
    const driver = new Driver();
    driver.related = { ids: [], authors: [key("bob")] };
    driver.makeLive(relay, repo);
    live(driver, hour);
    const good = deletionsIn(driver.said).at(-1)!;
    const from = driver.said.length;
    while (deletionsIn(driver.said.slice(from)).length === 0) driver.advance(minute);
    for (let at = from; at < driver.said.length; at++) {
      const command = driver.said[at]!;
      if (command.type === "subscribe" && command.filters[0]?.authors)
        driver.from(relay, "subscriptionClosed", { subscription: command.subscription, message: "error: not now" });
    }
    const failed = deletionsIn(driver.said.slice(from));
    assert.equal(failed.length, 4, "once and three times more");
    const again = driver.said.length;
    live(driver, 61 * minute);
    const [retried] = deletionsIn(driver.said.slice(again));
    assert.equal(retried!.since, failed[0]!.since);
    assert.ok(retried!.since! > good.since!);
  });
});
