// History: negentropy first, REQ as fallback, pages, failures, pauses.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { EventId, Pubkey } from "../../src/nostr/event.js";
import { matcherOf } from "../../src/nostr/filter.js";
import {
  announcing,
  Driver,
  event,
  fetched,
  id,
  issue,
  key,
  only,
  subscribed,
} from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const repo = announcing("ann", "tool", ["wss://a.example"]);

/** Connected, live open, the first history request on its way. */
function atFirstRequest(config: ConstructorParameters<typeof Driver>[0] = {}): Driver {
  const driver = new Driver(config);
  driver.tell({ type: "accepted", event: repo, hosted: true });
  driver.tell({ type: "replayEnded" });
  driver.advance(5000);
  driver.connect(relay);
  return driver;
}

const session = (driver: Driver): string => only(driver.said, "reconcile").at(-1)!.session;
const page = (driver: Driver) => subscribed(driver.said, "h").at(-1)!;
const send = (driver: Driver, name: string, createdAt: number, kind = 30617): void => {
  driver.from(relay, "event", {
    subscription: page(driver).subscription,
    event: event(name, kind, [["d", name]], { created_at: createdAt }),
  });
};
const eose = (driver: Driver): void => void driver.from(relay, "eose", { subscription: page(driver).subscription });

/** Everything but layer 1 is answered. */
function answerOthers(driver: Driver): void {
  for (let at = 0; at < driver.said.length; at++) {
    const command = driver.said[at]!;
    if (command.type !== "subscribe") continue;
    const isLayerOne = command.subscription.startsWith("h") && command.filters[0]!.kinds?.[0] === 30617;
    if (!isLayerOne) driver.from(relay, "eose", { subscription: command.subscription });
  }
}

function silence(driver: Driver): void {
  answerOthers(driver);
  driver.advance(60_000);
}

function sendThree(driver: Driver): void {
  for (const n of [1, 2, 3]) send(driver, `event ${n}`, n);
}

describe("history", () => {
  it("missing ids are fetched a hundred at a time, without those that are remembered", () => {
    const driver = atFirstRequest();
    const known = event("known", 30617, [["d", "known"]]);
    driver.tell({
      type: "verdict",
      relay,
      source: "live",
      layerFour: false,
      event: known,
      outcome: { type: "refused", code: "service-not-listed" },
    });
    const missing = [known.id, ...Array.from({ length: 150 }, (_, n) => id(`missing ${n}`))];
    driver.from(relay, "reconciled", { session: session(driver), missing, peerMissing: 3 });
    assert.equal(fetched(driver.said)[0]?.length, 100);
    assert.ok(!fetched(driver.said)[0]?.includes(known.id));
    assert.equal(fetched(driver.said).length, 1, "the next when the last is done");
    eose(driver);
    assert.equal(fetched(driver.said)[1]?.length, 50);
    assert.equal(driver.relay(relay)?.peerMissing, 3);
  });

  it("what a relay reports by negentropy and what waits here is told to the hunt, and not fetched", () => {
    const driver = atFirstRequest();
    const waiting = [id("one"), id("two")];
    const said = driver.from(relay, "reconciled", { session: session(driver), missing: [], waiting, peerMissing: 0 });
    assert.deepEqual(
      only(said, "servedThere"),
      waiting.map((one) => ({ type: "servedThere", relay, id: one })),
    );
    assert.deepEqual(fetched(said), []);
  });

  for (const [name, fail] of [
    [
      "NEG-ERR",
      (driver: Driver) => driver.from(relay, "reconcileFailed", { session: session(driver), kind: "failed" }),
    ],
    [
      "a NOTICE about an unknown message",
      (driver: Driver) => driver.from(relay, "notice", { message: "unknown command: NEG-OPEN" }),
    ],
    ["ten seconds of silence", (driver: Driver) => driver.advance(10_000)],
  ] as const) {
    it(`${name} makes the batch go on with REQ`, () => {
      const driver = atFirstRequest();
      fail(driver);
      assert.deepEqual(page(driver).filters, [{ kinds: [30617], limit: 500 }]);
      assert.equal(only(driver.said, "log").filter((log) => log.code === "negentropy-fallback").length, 1);
    });
  }

  it("three failures in a row end negentropy for a day, with one warning", () => {
    const driver = atFirstRequest();
    for (let n = 0; n < 3; n++) {
      driver.from(relay, "reconcileFailed", { session: session(driver), kind: "failed" });
      for (let at = 0; at < 3 && driver.relay(relay)!.historySubscriptions > 0 && page(driver); at++) eose(driver);
    }
    const sessions = only(driver.said, "reconcile").length;
    driver.tell({ type: "accepted", event: issue("bug", "ann", "tool") });
    driver.advance(5000);
    driver.settle(relay);
    assert.equal(only(driver.said, "reconcile").length, sessions);
    assert.equal(only(driver.said, "log").filter((log) => log.code === "negentropy-fallback").length, 1);
    assert.equal(driver.relay(relay)?.state, "live");
  });

  it("progress keeps a session alive, but not for ever", () => {
    const driver = atFirstRequest();
    const first = session(driver);
    for (let n = 0; n < 130; n++) {
      driver.advance(5000);
      driver.from(relay, "reconcileProgress", { session: first });
      if (only(driver.said, "stopReconcile").length > 0) break;
    }
    assert.ok(driver.nowMs >= 600_000);
    assert.deepEqual(
      only(driver.said, "stopReconcile").map((command) => command.session),
      [first],
    );
  });

  it("too many for one session: split by time", () => {
    const driver = atFirstRequest();
    driver.from(relay, "reconcileFailed", { session: session(driver), kind: "too-many" });
    const later = only(driver.said, "reconcile").at(-1)!.filter;
    driver.from(relay, "reconciled", { session: session(driver), missing: [], peerMissing: 0 });
    const earlier = only(driver.said, "reconcile").at(-1)!.filter;
    assert.equal(earlier.until, later.since! - 1);
    assert.equal(earlier.since, 0);
  });

  it("a second that a relay cuts off without saying so is asked for in parts, also where negentropy was split down to it", () => {
    const driver = atFirstRequest();
    const second = 1_650_000_000;
    const author = (n: number): Pubkey => (n < 12 ? key("one") : key("two"));
    const crowd = Array.from({ length: 22 }, (_, n) =>
      event(`event ${n}`, 30617, [["d", `${n}`]], { created_at: second, pubkey: author(n) }),
    );
    const held = [...crowd, event("older", 30617, [["d", "older"]], { created_at: second - 500 })];
    const cap = 15;
    for (let at = 0; at < driver.said.length; at++) {
      const command = driver.said[at]!;
      if (command.type === "reconcile") {
        const tooMany = held.filter(matcherOf(command.filter)).length > cap;
        if (tooMany) driver.from(relay, "reconcileFailed", { session: command.session, kind: "too-many" });
        else driver.from(relay, "reconciled", { session: command.session, missing: [], peerMissing: 0 });
      } else if (command.type === "subscribe" && command.subscription.startsWith("h")) {
        const [filter] = command.filters;
        const found = held.filter(matcherOf(filter!)).slice(0, Math.min(cap, filter!.limit!));
        for (const one of found) driver.from(relay, "event", { subscription: command.subscription, event: one });
        driver.from(relay, "eose", { subscription: command.subscription });
      }
    }
    const offered = new Set(only(driver.said, "offerToIntake").map((offer) => offer.event.id));
    assert.deepEqual(
      crowd.filter((one) => !offered.has(one.id)).map((one) => one.raw),
      [],
    );
  });

  it("a second that a relay cuts off without saying so is read to its end also where nothing is older", () => {
    const driver = atFirstRequest({ syncDisableNegentropy: true });
    const tags = [["a", `30617:${repo.pubkey}:tool`]];
    const kinds = [1617, 1618, 1619, 1621, 1111];
    const held = Array.from({ length: 60 }, (_, n) =>
      event(`crowd ${n}`, kinds[n % kinds.length]!, tags, { created_at: 1_650_000_000 }),
    );
    for (let at = 0; at < driver.said.length; at++) {
      const command = driver.said[at]!;
      if (command.type !== "subscribe") continue;
      const { filters, subscription } = command;
      const found = subscription.startsWith("h") ? held.filter(matcherOf(filters[0]!)) : [];
      for (const one of found.slice(0, Math.min(25, filters[0]!.limit!))) {
        driver.from(relay, "event", { subscription, event: one });
      }
      driver.from(relay, "eose", { subscription });
    }
    const offered = new Set(only(driver.said, "offerToIntake").map((offer) => offer.event.id));
    assert.equal(held.filter((one) => !offered.has(one.id)).length, 0);
    assert.ok(subscribed(driver.said, "h").length < 150, "without a flood of requests");
  });

  it("pages go back by the oldest delivered second and end on a page that brings nothing unseen", () => {
    const driver = atFirstRequest({ syncDisableNegentropy: true });
    send(driver, "one", 900);
    send(driver, "two", 800);
    eose(driver);
    assert.equal(page(driver).filters[0]!.until, 800);
    send(driver, "two", 800);
    send(driver, "three", 700);
    eose(driver);
    assert.equal(page(driver).filters[0]!.until, 700);
    send(driver, "three", 700);
    eose(driver);
    assert.equal(page(driver).filters[0]!.kinds?.[0], 30618, "the next layer");
  });

  it("a full page of one second that nothing divides is a warning and a failed batch, never a loop", () => {
    const driver = atFirstRequest({ syncDisableNegentropy: true, syncPageEvents: 2 });
    for (let pages = 0; pages < 10 && page(driver).filters[0]!.kinds?.[0] === 30617; pages++) {
      const { filters } = page(driver);
      const author = filters[0]!.authors?.[0];
      if (filters[0]!.until === undefined || filters[0]!.until >= 500) {
        for (const name of ["one", "two"]) {
          driver.from(relay, "event", {
            subscription: page(driver).subscription,
            event: event(name, 30617, [["d", name]], { created_at: 500, ...(author && { pubkey: author }) }),
          });
        }
      }
      eose(driver);
    }
    assert.equal(only(driver.said, "count").filter((count) => count.counter === "unpageable").length, 1);
    assert.notEqual(page(driver).filters[0]!.kinds?.[0], 30617);
    assert.equal(driver.relay(relay)?.confirmedItems, 0);
    // The same pages would bring the same events: not what a retry after seconds is for.
    const again = (minutes: number): number =>
      subscribed(driver.advance(minutes * 60_000), "h").filter(({ filters }) => filters[0]!.kinds?.[0] === 30617)
        .length;
    assert.equal(again(59), 0);
    assert.ok(again(2) > 0);
  });

  for (const [name, fail] of [
    [
      "CLOSED",
      (driver: Driver) =>
        driver.from(relay, "subscriptionClosed", { subscription: page(driver).subscription, message: "error: no" }),
    ],
    ["a minute without a message", silence],
    ["more events than asked", sendThree],
  ] as const) {
    it(`${name} never confirms: the items are retried after 5, 10, 20, then every 30 s`, () => {
      const driver = atFirstRequest({ syncDisableNegentropy: true, syncPageEvents: 2 });
      const waits: number[] = [];
      for (let n = 0; n < 5; n++) {
        fail(driver);
        assert.ok(driver.relay(relay)!.confirmedItems < driver.relay(relay)!.items);
        const failedMs = driver.nowMs;
        answerOthers(driver);
        const asked = (): number =>
          subscribed(driver.said, "h").filter(({ filters }) => filters[0]!.kinds?.[0] === 30617).length;
        const before = asked();
        while (asked() === before) {
          answerOthers(driver);
          driver.advance(1000);
        }
        waits.push(driver.nowMs - failedMs);
      }
      assert.deepEqual(
        waits.map((wait) => Math.round(wait / 1000)),
        [5, 10, 20, 30, 30],
      );
    });
  }

  it("three failures of an item make the relay live with failures, and a success makes it live", () => {
    const driver = atFirstRequest({ syncDisableNegentropy: true });
    for (let n = 0; n < 3; n++) {
      const first = subscribed(driver.said, "h")
        .filter(({ filters }) => filters[0]!.kinds?.[0] === 30617)
        .at(-1)!;
      const from = driver.said.length;
      driver.from(relay, "subscriptionClosed", { subscription: first.subscription, message: "error: no" });
      driver.settle(relay, from);
      if (n === 2) break;
      driver.advance(10_000);
    }
    assert.equal(driver.relay(relay)?.state, "live-with-failures");
    const from = driver.said.length;
    driver.advance(20_000);
    driver.settle(relay, from);
    assert.equal(driver.relay(relay)?.state, "live");
  });

  it("a rate limit stops all requests for 65 s, keeps live, and is nobody's failure", () => {
    const driver = atFirstRequest({ syncDisableNegentropy: true });
    const asked = page(driver).subscription;
    driver.from(relay, "subscriptionClosed", { subscription: asked, message: "rate-limited: slow down" });
    const from = driver.said.length;
    assert.equal(driver.relay(relay)?.status, 4);
    driver.tell({ type: "accepted", event: issue("bug", "ann", "tool") });
    driver.advance(64_000);
    assert.deepEqual(only(driver.said.slice(from), "subscribe"), []);
    driver.advance(1_000);
    const after = only(driver.said.slice(from), "subscribe");
    assert.ok(after.some(({ filters }) => filters[0]!.kinds?.[0] === 30617 && filters[0]!.limit === 500));
    assert.equal(driver.relay(relay)?.status, 1);
    assert.equal(driver.relay(relay)?.failedItems, 0);
  });

  it("one refused value is found by halves and the others are confirmed", () => {
    const driver = new Driver({ syncDisableNegentropy: true });
    for (const name of ["one", "two", "bad", "four"])
      driver.tell({ type: "accepted", event: announcing("ann", name, ["wss://a.example"]), hosted: true });
    driver.advance(5000);
    driver.connect(relay);
    for (let at = 0; at < driver.said.length; at++) {
      const command = driver.said[at]!;
      if (command.type !== "subscribe" || command.relay !== relay) continue;
      const bad = command.filters.some((filter) =>
        [...(filter.tags?.values() ?? [])].some((list) => list.some((text) => text.includes("bad"))),
      );
      if (bad)
        driver.from(relay, "subscriptionClosed", { subscription: command.subscription, message: "invalid: value" });
      else driver.from(relay, "eose", { subscription: command.subscription });
    }
    const state = driver.relay(relay)!;
    assert.equal(state.items, 9);
    assert.equal(state.confirmedItems, 7);
    assert.equal(state.barredItems, 2);
    assert.equal(state.rotatingRepos, 2, "only the bad value's two items lose their live filter");
  });

  it("at most four history subscriptions run at a time", () => {
    const driver = new Driver({ syncDisableNegentropy: true, syncMaxTagsPerFilter: 1 });
    for (const name of ["one", "two", "three"])
      driver.tell({ type: "accepted", event: announcing("ann", name, ["wss://a.example"]), hosted: true });
    driver.advance(5000);
    driver.connect(relay);
    let most = 0;
    for (let at = 0; at < driver.said.length; at++) {
      const command = driver.said[at]!;
      most = Math.max(most, driver.relay(relay)!.historySubscriptions);
      if (command.type === "subscribe") driver.from(relay, "eose", { subscription: command.subscription });
    }
    assert.equal(most, 4);
    assert.equal(driver.relay(relay)?.state, "live");
  });

  it("auth-required is answered with the server's key and repeated", () => {
    const driver = atFirstRequest({ syncDisableNegentropy: true });
    const asked = page(driver).filters;
    driver.from(relay, "authChallenge");
    assert.equal(only(driver.said, "authenticate").length, 1);
    driver.from(relay, "subscriptionClosed", {
      subscription: page(driver).subscription,
      message: "auth-required: please",
    });
    const from = driver.said.length;
    driver.from(relay, "authenticated", {});
    assert.deepEqual(
      subscribed(driver.said.slice(from), "h").map(({ filters }) => filters),
      [asked],
    );
  });

  it("ids somebody here needs are asked at the repository's relays", () => {
    const driver = new Driver();
    driver.makeLive(relay, repo);
    const needed = id("placeholder") as EventId;
    driver.tell({ type: "wantIds", ids: [needed], coordinate: `30617:${repo.pubkey}:tool` });
    assert.deepEqual(fetched(driver.said), [[needed]]);
  });
});
