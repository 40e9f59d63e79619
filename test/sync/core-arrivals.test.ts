// What happens to an event that arrives: matching, budgets, memory of what was rejected.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NostrEvent } from "../../src/nostr/event.js";
import type { Outcome } from "../../src/sync/core/messages.js";
import {
  announcing,
  type CommandOf,
  coordinate,
  Driver,
  event,
  fetched,
  key,
  only,
  subscribed,
} from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const repo = announcing("ann", "tool", ["wss://a.example"]);

function live(config: ConstructorParameters<typeof Driver>[0] = {}): Driver {
  const driver = new Driver(config);
  driver.makeLive(relay, repo);
  return driver;
}

const arrive = (driver: Driver, arrived: NostrEvent) =>
  driver.from(relay, "event", { subscription: subscribed(driver.said, "l")[0]!.subscription, event: arrived });
const judge = (driver: Driver, judged: NostrEvent, outcome: Outcome) =>
  driver.tell({ type: "verdict", relay, source: "live", layerFour: false, event: judged, outcome });
const refused = (code: Extract<Outcome, { type: "refused" }>["code"]): Outcome => ({ type: "refused", code });
const comment = (name: string): NostrEvent => event(name, 1111, [["A", coordinate("ann", "tool")]]);
const state = (name: string, identifier: string, author = "ann"): NostrEvent =>
  event(name, 30618, [["d", identifier]], { pubkey: key(author) });

describe("events that arrive", () => {
  for (const [name, arrived, offered] of [
    ["an announcement", event("x", 30617, [["d", "x"]]), true],
    ["a state of a wanted identifier", state("x", "tool"), true],
    ["a state nobody asked for", state("x", "other"), false],
    ["a comment on the repository", comment("x"), true],
    ["a quote of the repository", event("x", 1, [["q", coordinate("ann", "tool")]]), true],
    ["a note about nothing of ours", event("x", 1, [["a", coordinate("eve", "tool")]]), false],
  ] as const) {
    it(`${name} is ${offered ? "offered to intake" : "dropped and counted"}`, () => {
      const said = arrive(live(), arrived);
      assert.equal(only(said, "offerToIntake").length, offered ? 1 : 0);
      assert.equal(only(said, "count").filter((count) => count.counter === "dropped_events").length, offered ? 0 : 1);
    });
  }

  for (const [name, judged, outcome, tells] of [
    ["a state that begins to wait", state("x", "tool"), { type: "held" }, true],
    ["a state that waits already", state("x", "tool"), { type: "waiting" }, true],
    ["a pull request that waits", event("x", 1618, [["a", coordinate("ann", "tool")]]), { type: "waiting" }, true],
    ["an update that waits", event("x", 1619, [["a", coordinate("ann", "tool")]]), { type: "waiting" }, true],
    ["a state that is served here too", state("x", "tool"), { type: "duplicate" }, false],
    ["a state that is refused", state("x", "tool"), { type: "refused", code: "unrelated" }, false],
    ["an announcement that waits", repo, { type: "waiting" }, false],
    ["a comment that waits", comment("x"), { type: "held" }, false],
  ] as const) {
    it(`that a relay serves ${name} is ${tells ? "told to the hunt" : "no evidence of git data"}`, () => {
      const told = only(judge(live(), judged, outcome), "servedThere");
      assert.deepEqual(told, tells ? [{ type: "servedThere", relay, id: judged.id }] : []);
    });
  }

  it("counts new events by source, and what live should have brought as a gap", () => {
    const driver = live();
    const labels = (said: ReturnType<Driver["tell"]>): string[] =>
      only(said, "count").map((count) => count.label ?? count.counter);
    assert.deepEqual(labels(judge(driver, comment("one"), { type: "stored" })), ["live"]);
    assert.deepEqual(labels(judge(driver, comment("one"), { type: "duplicate" })), []);
    const daily = driver.tell({
      type: "verdict",
      relay,
      source: "daily",
      layerFour: false,
      event: comment("two"),
      outcome: { type: "stored" },
    });
    assert.deepEqual(labels(daily), ["daily", "gap_events"]);
    const four = driver.tell({
      type: "verdict",
      relay,
      source: "daily",
      layerFour: true,
      event: comment("three"),
      outcome: { type: "stored" },
    });
    assert.deepEqual(labels(four), ["daily"]);
  });

  it("sums up in the log what a first sync, a reconnect and a daily sync brought", () => {
    const driver = live();
    const levels = (source: "startup" | "reconnect" | "daily"): string[] => {
      const said = driver.tell({
        type: "verdict",
        relay,
        source,
        layerFour: false,
        event: comment(source),
        outcome: { type: "stored" },
      });
      return only(said, "log").map((log) => `${log.level} ${log.code} ${log.fields?.newEvents}`);
    };
    assert.deepEqual(levels("startup"), ["info startup-summary 1"]);
    assert.deepEqual(levels("reconnect"), ["warn reconnect-summary 1"]);
    assert.deepEqual(levels("daily"), ["error daily-summary 1"]);
  });

  describe("the lag of live events", () => {
    const lags = (driver: Driver, createdMs: number, outcome: Outcome = { type: "stored" }): number[] => {
      const arrived = { ...comment(`at ${createdMs}`), created_at: Math.floor(createdMs / 1000) };
      const offers = only(arrive(driver, arrived), "offerToIntake");
      driver.advance(2_000);
      const said = offers.flatMap((offer) => driver.tell({ ...offer, type: "verdict", outcome }));
      return only(said, "observeLag").map(({ seconds }) => Math.round(seconds));
    };

    it("is from their creation to their being stored", () => {
      const driver = live();
      driver.advance(60 * 60_000);
      assert.deepEqual(lags(driver, driver.wallMs), [2]);
      assert.deepEqual(lags(driver, driver.wallMs - 20 * 60_000), [20 * 60 + 2], "released late over there");
      assert.deepEqual(lags(driver, driver.wallMs + 60_000), [0], "by a clock that is ahead");
    });

    it("is not that of history which a live subscription brings", () => {
      const driver = live();
      driver.advance(60_000);
      assert.deepEqual(lags(driver, 1_500_000_000_000), [], "sent to that relay only now");
      assert.deepEqual(lags(driver, driver.wallMs - 5 * 60_000), [], "of a relay that is asked from an hour ago on");
      assert.deepEqual(lags(driver, driver.wallMs, { type: "duplicate" }), []);
      assert.deepEqual(lags(driver, driver.wallMs, { type: "held" }), []);
    });

    it("begins anew with each link", () => {
      const driver = live();
      driver.advance(60 * 60_000);
      const createdMs = driver.wallMs;
      driver.from(relay, "closed");
      driver.advance(10_000);
      const from = driver.said.length;
      driver.connect(relay);
      driver.settle(relay, from);
      const { subscription } = subscribed(driver.said.slice(from), "l")[0]!;
      const arrived = { ...comment("missed"), created_at: Math.floor(createdMs / 1000) };
      const [offer] = only(driver.from(relay, "event", { subscription, event: arrived }), "offerToIntake");
      const said = driver.tell({ ...offer!, type: "verdict", outcome: { type: "stored" } });
      assert.deepEqual(only(said, "observeLag"), []);
    });
  });

  it("a repository's budget for the day ends its events, with one warning, and its history is fetched again the next day", () => {
    const driver = live({ syncMaxEventsPerRepositoryPerDay: 3, syncDailyMinHours: 1e6, syncDailyMaxHours: 1e6 });
    const offered = (name: string): CommandOf<"offerToIntake"> =>
      only(arrive(driver, comment(name)), "offerToIntake")[0]!;
    const answer = (offer: CommandOf<"offerToIntake">, type: "stored" | "duplicate") =>
      driver.tell({ ...offer, type: "verdict", outcome: { type } });
    const [one, two, known] = ["one", "two", "known"].map(offered);
    for (const name of ["three", "too many", "far too many"]) assert.equal(offered(name), undefined, "it has to wait");
    assert.equal(driver.relay(relay)?.offersInFlight, 6);
    const [three] = only(answer(known!, "duplicate"), "offerToIntake");
    assert.equal(three?.event.id, comment("three").id, "a known event has left its place");
    for (const offer of [one!, two!, three]) assert.deepEqual(only(answer(offer, "stored"), "offerToIntake"), []);
    assert.equal(only(driver.said, "log").filter((log) => log.code === "repository-budget-hit").length, 1);
    assert.equal(driver.relay(relay)?.offersInFlight, 0);
    assert.deepEqual(only(arrive(driver, comment("four")), "offerToIntake"), []);
    assert.equal(only(arrive(driver, event("x", 30617, [["d", "x"]])), "offerToIntake").length, 1, "others go on");
    const said = driver.advance(25 * 60 * 60 * 1000);
    assert.ok(only(said, "reconcile").length > 0);
    assert.equal(only(arrive(driver, comment("five")), "offerToIntake").length, 1);
  });

  describe("a flood on one repository", () => {
    const flooded = (): { driver: Driver; offers: (arrived: NostrEvent) => number } => {
      const driver = live({
        syncMaxEventsPerRepositoryPerDay: 2,
        maxOwnPerAuthorPerDay: 3,
        syncDailyMinHours: 1e6,
        syncDailyMaxHours: 1e6,
      });
      const offers = (arrived: NostrEvent): number => {
        const offered = only(arrive(driver, arrived), "offerToIntake");
        for (const offer of offered) driver.tell({ ...offer, type: "verdict", outcome: { type: "stored" } });
        return offered.length;
      };
      for (const name of ["one", "two", "three"]) offers(comment(name));
      assert.equal(offers(comment("four")), 0, "its day is over");
      return { driver, offers };
    };

    it("does not freeze the states and announcements of those who decide in it", () => {
      const { offers } = flooded();
      assert.equal(offers(state("by its owner", "tool")), 1);
      assert.equal(offers(state("by a maintainer", "tool", "bob")), 1);
      assert.equal(offers(announcing("ann", "tool", ["wss://a.example"], { raw: "again" })), 1);
    });

    it("does not keep out what is about another repository too", () => {
      const { driver, offers } = flooded();
      const from = driver.said.length;
      driver.tell({ type: "accepted", event: announcing("bob", "other", ["wss://a.example"]), hosted: true });
      driver.advance(5000);
      driver.settle(relay, from);
      const aboutBoth = (name: string): NostrEvent =>
        event(name, 1621, [
          ["a", coordinate("ann", "tool")],
          ["a", coordinate("bob", "other")],
        ]);
      assert.equal(offers(aboutBoth("both 1")), 1);
      assert.equal(offers(aboutBoth("both 2")), 1);
      assert.equal(offers(aboutBoth("both 3")), 0, "now both are over");
      assert.equal(driver.relay(relay)?.inStep, false);
    });

    it("lets what waited for the last places of its day go to another repository it is about", () => {
      const driver = live({ syncMaxEventsPerRepositoryPerDay: 1, syncDailyMinHours: 1e6, syncDailyMaxHours: 1e6 });
      const from = driver.said.length;
      driver.tell({ type: "accepted", event: announcing("bob", "other", ["wss://a.example"]), hosted: true });
      driver.advance(5000);
      driver.settle(relay, from);
      const [first] = only(arrive(driver, comment("one")), "offerToIntake");
      const both = event("both", 1111, [...comment("both").tags, ["A", coordinate("bob", "other")]]);
      assert.deepEqual(only(arrive(driver, both), "offerToIntake"), [], "it has to wait");
      const said = driver.tell({ ...first!, type: "verdict", outcome: { type: "stored" } });
      assert.deepEqual(
        only(said, "offerToIntake").map(({ event: { id } }) => id),
        [both.id],
      );
      assert.equal(driver.relay(relay)?.offersInFlight, 1);
    });

    it("by states alone ends at a budget of their own, for that author and identifier, until the next day", () => {
      const { driver, offers } = flooded();
      for (const name of ["s1", "s2", "s3"]) assert.equal(offers(state(name, "tool")), 1);
      assert.equal(offers(state("s4", "tool")), 0);
      assert.deepEqual(
        only(driver.said, "log").flatMap(({ code, fields }) => (code === "author-budget-hit" ? [fields] : [])),
        [{ author: key("ann"), identifier: "tool" }],
      );
      assert.equal(offers(state("another's", "tool", "bob")), 1);
      const from = driver.said.length;
      driver.advance(25 * 60 * 60 * 1000);
      driver.settle(relay, from);
      const kinds = only(driver.said.slice(from), "reconcile").map(({ filter }) => filter.kinds?.[0]);
      assert.ok(kinds.includes(30618), "what was not taken is asked for again");
      assert.equal(offers(state("s4", "tool")), 1);
    });
  });

  it("a relay's budget for the day disconnects it until the day is over", () => {
    const driver = live({ syncMaxEventsPerRelayPerDay: 2 });
    judge(driver, comment("one"), { type: "stored" });
    judge(driver, comment("two"), { type: "stored" });
    assert.equal(only(driver.said, "disconnect").length, 1);
    const dials = only(driver.said, "connect").length;
    driver.advance(23 * 60 * 60 * 1000);
    assert.equal(only(driver.said, "connect").length, dials);
    driver.advance(2 * 60 * 60 * 1000);
    assert.ok(only(driver.said, "connect").length > dials);
  });

  it("a relay never brings one event more than its budget, however many are on their way", () => {
    const driver = live({ syncMaxEventsPerRelayPerDay: 2 });
    const names = ["one", "two", "three", "four", "five"];
    const offered = (): string[] => only(driver.said, "offerToIntake").map(({ event: { raw } }) => raw);
    for (const name of names) arrive(driver, comment(name));
    assert.deepEqual(offered(), ["one", "two"]);
    assert.equal(only(driver.said, "pauseReading").length, 1);
    judge(driver, comment("one"), { type: "duplicate" });
    assert.deepEqual(offered(), ["one", "two", "three"], "a known event has left its place");
    for (const name of ["two", "three"]) judge(driver, comment(name), { type: "stored" });
    assert.deepEqual(offered(), ["one", "two", "three"]);
    assert.equal(driver.relay(relay)?.offersInFlight, 0);
    assert.equal(only(driver.said, "disconnect").length, 1);
  });

  it("a relay that only had to wait for verdicts is read again", () => {
    const driver = live({ syncMaxEventsPerRelayPerDay: 2 });
    for (const name of ["one", "two", "three"]) arrive(driver, comment(name));
    for (const name of ["one", "two", "three"]) judge(driver, comment(name), { type: "duplicate" });
    assert.equal(only(driver.said, "offerToIntake").length, 3);
    assert.equal(only(driver.said, "pauseReading").length, only(driver.said, "resumeReading").length);
  });

  it("a relay whose events are mostly refused is paused for an hour; strangers' announcements do not count", () => {
    const driver = live({ syncRefusedSampleEvents: 10 });
    for (let n = 0; n < 20; n++) judge(driver, event(`a${n}`, 30617, [["d", `${n}`]]), refused("service-not-listed"));
    assert.deepEqual(only(driver.said, "disconnect"), []);
    for (let n = 0; n < 10; n++) judge(driver, comment(`c${n}`), refused("bad-signature"));
    assert.equal(only(driver.said, "disconnect").length, 1);
    const dials = only(driver.said, "connect").length;
    driver.advance(59 * 60_000);
    assert.equal(only(driver.said, "connect").length, dials);
    driver.advance(60_000);
    assert.equal(only(driver.said, "connect").length, dials + 1);
  });

  it("reading stops while a thousand offers have no verdict", () => {
    const driver = live({ maxOffersInFlight: 3 });
    for (const name of ["one", "two", "three"]) arrive(driver, comment(name));
    assert.equal(only(driver.said, "pauseReading").length, 1);
    judge(driver, comment("one"), { type: "duplicate" });
    judge(driver, comment("two"), { type: "duplicate" });
    assert.equal(only(driver.said, "resumeReading").length, 1);
  });

  it("a rejected state is judged again at once when its announcement starts to wait", () => {
    const driver = live();
    const rejected = state("state", "later", "bob");
    judge(driver, rejected, refused("no-announcement"));
    assert.equal(driver.snapshot().hot, 1);
    assert.equal(driver.snapshot().cold, 1);
    const said = driver.tell({ type: "waiting", event: announcing("bob", "later", []) });
    assert.deepEqual(
      only(said, "offerToIntake").map((offer) => offer.event.id),
      [rejected.id],
    );
    assert.deepEqual([driver.snapshot().hot, driver.snapshot().cold], [0, 0]);
  });

  it("after two minutes it is fetched by id from its relay instead", () => {
    const driver = live();
    const rejected = state("state", "later", "bob");
    judge(driver, rejected, refused("no-announcement"));
    driver.advance(4 * 60_000);
    assert.equal(driver.snapshot().hot, 0);
    const said = driver.tell({ type: "accepted", event: announcing("bob", "later", []), hosted: true });
    assert.deepEqual(fetched(said), [[rejected.id]]);
    assert.deepEqual(
      only(said, "forget").map((forgotten) => forgotten.id),
      [rejected.id],
    );
  });

  it("a reply that came before what it replies to is judged again when that is stored", () => {
    const driver = live();
    const parent = comment("parent");
    const reply = event("reply", 1111, [["e", parent.id]]);
    judge(driver, reply, refused("unrelated"));
    assert.deepEqual([driver.snapshot().hot, driver.snapshot().cold], [1, 0]);
    const said = judge(driver, parent, { type: "stored" });
    assert.deepEqual(
      only(said, "offerToIntake").map((offer) => offer.event.id),
      [reply.id],
    );
  });

  for (const code of ["bad-signature", "from-the-future", "disk-full"] as const) {
    it(`nothing is remembered for ${code}`, () => {
      const driver = live();
      judge(driver, state("state", "tool"), refused(code));
      assert.deepEqual([driver.snapshot().hot, driver.snapshot().cold], [0, 0]);
    });
  }

  it("a remembered id is not offered again, for a week, or until the lists that refused it change", () => {
    const driver = live();
    const banned = event("banned", 30617, [["d", "x"]]);
    judge(driver, banned, refused("author-blocked"));
    assert.deepEqual(only(arrive(driver, banned), "offerToIntake"), []);
    driver.tell({ type: "listsChanged" });
    assert.equal(only(arrive(driver, banned), "offerToIntake").length, 1);
    judge(driver, banned, refused("author-blocked"));
    const loaded = only(driver.said, "remember").at(-1)!.entry;
    const restarted = live();
    restarted.tell({ type: "rememberedLoaded", entries: [loaded] });
    assert.deepEqual(only(arrive(restarted, banned), "offerToIntake"), []);
    restarted.advance(8 * 24 * 60 * 60 * 1000);
    assert.equal(only(arrive(restarted, banned), "offerToIntake").length, 1);
  });

  it("what our own trouble lost is fetched again two minutes later", () => {
    const driver = live();
    judge(driver, comment("lost"), refused("disk-full"));
    assert.deepEqual(only(driver.advance(60_000), "reconcile"), []);
    assert.ok(only(driver.advance(60_000), "reconcile").length > 0);
  });

  it("events of a link that is gone change nothing", () => {
    const driver = live();
    const link = driver.link(relay);
    driver.from(relay, "closed");
    assert.deepEqual(
      only(driver.tell({ type: "event", relay, link, subscription: "l1", event: comment("late") }), "offerToIntake"),
      [],
    );
  });
});
