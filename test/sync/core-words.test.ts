// What the sync core does with the words of relays: sizes are made smaller, busy ones are asked in another way, and a
// relay that limits us is waited for. Never without end, and never blamed on negentropy.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Filter } from "../../src/nostr/filter.js";
import { meaningOfNegErr } from "../../src/sync/core/closed-reasons.js";
import { announcing, Driver, fetched, id, issue, only, subscribed } from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const listed = ["wss://a.example"];

/** Connected with so many repositories, nothing answered yet. */
function connected(repositories: number, config: ConstructorParameters<typeof Driver>[0] = {}): Driver {
  const driver = new Driver(config);
  for (let n = 0; n < repositories; n++) {
    driver.tell({ type: "accepted", event: announcing("ann", `tool${n}`, listed), hosted: true });
  }
  driver.tell({ type: "replayEnded" });
  driver.advance(5000);
  driver.connect(relay);
  return driver;
}

interface Manners {
  /** What a request is refused with; undefined: it is answered with nothing. */
  readonly request?: (filters: readonly Filter[]) => string | undefined;
  readonly session?: (filter: Filter) => string | undefined;
}

/** Answers everything the core asks, until it asks nothing more or has asked absurdly much. */
function answer(driver: Driver, { request, session }: Manners, from = 0): void {
  for (let at = from; at < driver.said.length && at < 5000; at++) {
    const command = driver.said[at]!;
    if (command.type === "subscribe") {
      const { subscription } = command;
      const message = request?.(command.filters);
      if (message === undefined) driver.from(relay, "eose", { subscription });
      else driver.from(relay, "subscriptionClosed", { subscription, message });
    } else if (command.type === "reconcile") {
      const message = session?.(command.filter);
      const of = { session: command.session };
      if (message === undefined) driver.from(relay, "reconciled", { ...of, missing: [], peerMissing: 0 });
      else driver.from(relay, "reconcileFailed", { ...of, kind: meaningOfNegErr(message) });
    }
  }
}

const valuesIn = (filter: Filter): number =>
  Math.max(filter.ids?.length ?? 0, ...[...(filter.tags?.values() ?? [])].map((list) => list.length));
const sessions = (driver: Driver, from = 0): number => only(driver.said.slice(from), "reconcile").length;
const isConfirmed = (driver: Driver): boolean => {
  const { confirmedItems, items } = driver.relay(relay)!;
  return confirmedItems === items;
};

describe("a relay that ends negentropy sessions", () => {
  it("as too large at every size is asked by REQ after six halvings", () => {
    const driver = connected(1);
    answer(driver, { session: () => "blocked: too many query results" });
    // The first session is halved six times; the others of the five (states, three tags of the repository) not at all.
    assert.ok(sessions(driver) <= 13 + 4, `${sessions(driver)} sessions`);
    assert.ok(isConfirmed(driver));
  });

  it("as too large except for the shortest times is asked in a bounded number of sessions", () => {
    const driver = connected(1);
    const isShort = ({ since = 0, until = 2e9 }: Filter): boolean => until - since < 3600;
    let times = 0;
    const session = (filter: Filter): string | undefined =>
      isShort(filter) || times++ % 5 === 4 ? undefined : "blocked: too many results";
    answer(driver, { session });
    const whole = only(driver.said, "reconcile").filter(({ filter }) => filter.kinds?.[0] === 30617).length;
    assert.ok(whole <= 2100, `${whole} sessions`);
  });

  it("as too large above a size is compared in pieces, down to that size", () => {
    const driver = connected(1);
    const ranges: [number, number][] = [];
    answer(driver, {
      session: ({ kinds, since = 0, until = Number.POSITIVE_INFINITY }) => {
        if (kinds?.[0] !== 30617) return undefined;
        // Half a million events in the last year, none before, and never more than forty thousand at once.
        const ofYear = Math.max(0, Math.min(until, 1_700_000_000) - Math.max(since, 1_668_464_000)) / 31_536_000;
        if (ofYear * 500_000 > 40_000) return "blocked: this filter matches more than 40000 records: narrow it";
        ranges.push([since, until]);
        return undefined;
      },
    });
    assert.equal(subscribed(driver.said, "h").length, 0, "nothing was asked by REQ");
    ranges.sort(([a], [b]) => a - b);
    assert.equal(ranges[0]![0], 0);
    for (let n = 1; n < ranges.length; n++) assert.equal(ranges[n]![0], ranges[n - 1]![1] + 1, "no second is left out");
    assert.ok(isConfirmed(driver));
  });

  for (const message of [
    "blocked: too many reconciliations are under way: try again later",
    "blocked: at most 4 reconciliations may be open",
    "blocked: too many sessions",
    "restricted: not for you",
  ]) {
    it(`with "${message}" is asked by REQ at once, and by negentropy again in the next batch`, () => {
      const driver = connected(1);
      answer(driver, { session: () => message });
      assert.ok(isConfirmed(driver));
      assert.equal(sessions(driver), 3, "one for each layer");
      const from = driver.said.length;
      for (let n = 0; n < 3; n++) {
        driver.tell({ type: "accepted", event: issue(`bug ${n}`, "ann", "tool0") });
        driver.advance(5000);
      }
      answer(driver, { session: () => message }, from);
      assert.ok(sessions(driver, from) > 0, "it is not said to be without negentropy");
      assert.ok(isConfirmed(driver));
    });
  }

  it("because a filter names too much is asked with fewer values", () => {
    const driver = connected(20);
    const session = (filter: Filter): string | undefined =>
      valuesIn(filter) > 6 ? "invalid: a filter may have at most 6 values" : undefined;
    answer(driver, { session });
    assert.ok(isConfirmed(driver));
    assert.equal(subscribed(driver.said, "h").length, 0, "nothing was asked by REQ");
    const from = driver.said.length;
    for (let n = 0; n < 20; n++) driver.tell({ type: "accepted", event: issue(`bug ${n}`, "ann", "tool0") });
    driver.advance(5000);
    answer(driver, { session }, from);
    const asked = only(driver.said.slice(from), "reconcile").map(({ filter }) => valuesIn(filter));
    assert.ok(Math.max(...asked) <= 6, "it is not asked for more again");
  });

  it("because it wants to know who asks is asked again when it knows", () => {
    const driver = connected(1);
    driver.from(relay, "authChallenge");
    const { session } = only(driver.said, "reconcile").at(-1)!;
    const kind = meaningOfNegErr("auth-required: who are you");
    driver.from(relay, "reconcileFailed", { session, kind });
    const from = driver.said.length;
    driver.from(relay, "authenticated");
    assert.equal(sessions(driver, from), 1);
    assert.equal(subscribed(driver.said.slice(from), "h").length, 0);
  });
});

describe("a relay that limits us", () => {
  it("with a NOTICE after NEG-OPEN has not failed at negentropy, however often", () => {
    const driver = connected(1);
    for (let n = 0; n < 5; n++) {
      const { session } = only(driver.said, "reconcile").at(-1)!;
      driver.from(relay, "reconcileProgress", { session });
      driver.advance(1000);
      driver.from(relay, "notice", { message: "rate-limited: slow down" });
      driver.advance(70_000);
    }
    assert.equal(subscribed(driver.said, "h").length, 0);
    assert.equal(sessions(driver), 6);
    answer(driver, {});
    assert.ok(isConfirmed(driver));
  });

  it("with a NOTICE in the middle of a session that then dies has not failed at negentropy", () => {
    const driver = connected(1);
    const { session } = only(driver.said, "reconcile").at(-1)!;
    for (let n = 0; n < 3; n++) {
      driver.advance(1000);
      driver.from(relay, "reconcileProgress", { session });
    }
    driver.from(relay, "notice", { message: "Too many requests" });
    driver.advance(70_000);
    assert.equal(subscribed(driver.said, "h").length, 0);
    assert.equal(sessions(driver), 2);
  });

  it("with a NOTICE in the middle of a page that then stops is asked for that page again, and no item has failed", () => {
    const driver = connected(1, { syncDisableNegentropy: true });
    answer(driver, { request: ([filter]) => (filter!.limit === 0 ? undefined : "rate-limited: later") });
    driver.advance(65_000);
    const { subscription } = subscribed(driver.said, "h").at(-1)!;
    driver.from(relay, "event", { subscription, event: announcing("ben", "other", listed) });
    driver.from(relay, "notice", { message: "slow down" });
    const from = driver.said.length;
    driver.advance(70_000);
    assert.equal(subscribed(driver.said.slice(from), "h").length, 1);
    assert.deepEqual(
      only(driver.said, "log").filter(({ code }) => code === "batch-failed"),
      [],
    );
  });
});

describe("a relay that takes few values at once", () => {
  for (const message of ["invalid: too many values in filter", "blocked: too many tags"]) {
    it(`and says "${message}" is asked with fewer, live and history, and is not paused`, () => {
      const driver = connected(20, { syncDisableNegentropy: true });
      answer(driver, { request: (filters) => (filters.some((filter) => valuesIn(filter) > 6) ? message : undefined) });
      assert.ok(isConfirmed(driver));
      assert.equal(driver.relay(relay)!.status, 1);
      assert.equal(driver.relay(relay)!.rotatingRepos, 0);
      const live = subscribed(driver.said, "l").at(-1)!;
      assert.equal(live.filters[0]!.limit, 0, "limit 0 was not what it refused");
    });
  }

  it("is asked for fewer ids at once, and all of them arrive", () => {
    const driver = connected(1);
    const missing = Array.from({ length: 100 }, (_, n) => id(`missing ${n}`));
    const { session } = only(driver.said, "reconcile").at(-1)!;
    driver.from(relay, "reconciled", { session, missing, peerMissing: 0 });
    const served = new Set<string>();
    for (let at = 0; at < driver.said.length && at < 1000; at++) {
      const command = driver.said[at]!;
      if (command.type !== "subscribe") continue;
      const { subscription } = command;
      const ids = command.filters[0]?.ids ?? [];
      if (ids.length > 30) driver.from(relay, "subscriptionClosed", { subscription, message: "invalid: too many ids" });
      else {
        for (const one of ids) {
          served.add(one);
          driver.from(relay, "event", { subscription, event: { ...announcing("ben", one, listed), id: one } });
        }
        driver.from(relay, "eose", { subscription });
      }
    }
    assert.equal(served.size, 100);
    assert.ok(fetched(driver.said).length < 10);
  });

  it("and says so of filters gets one filter a request", () => {
    const driver = connected(1, { syncDisableNegentropy: true });
    const request = (filters: readonly Filter[]): string | undefined =>
      filters.length > 1 ? "invalid: too many filters" : undefined;
    answer(driver, { request });
    assert.ok(isConfirmed(driver));
    assert.equal(driver.relay(relay)!.rotatingRepos, 0);
    assert.equal(driver.relay(relay)!.liveFilters, 5);
  });

  it("and says so of events gets smaller pages", () => {
    const driver = connected(1, { syncDisableNegentropy: true });
    const request = (filters: readonly Filter[]): string | undefined =>
      filters.some(({ limit = 0 }) => limit > 100) ? "invalid: limit too high" : undefined;
    answer(driver, { request });
    assert.ok(isConfirmed(driver));
  });
});
