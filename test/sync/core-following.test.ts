// Following our own relay: windows, levels, removals, caps.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  announcing,
  bootstrap,
  coordinate,
  Driver,
  issue,
  only,
  subscribed,
} from "../../src/sync/core/testing/driver.js";

const relayList = (count: number, from = 0): string[] =>
  Array.from({ length: count }, (_, n) => `wss://h${from + n}.example`);

describe("following our own relay", () => {
  it("later inputs join the window and do not move its end", () => {
    const driver = new Driver();
    driver.tell({ type: "accepted", event: announcing("ann", "one", ["wss://a.example"]), hosted: true });
    driver.advance(4000);
    driver.tell({ type: "accepted", event: announcing("bob", "two", ["wss://b.example"]), hosted: true });
    assert.deepEqual(only(driver.said, "connect"), []);
    driver.advance(1000);
    assert.deepEqual(
      only(driver.said, "connect").map((command) => command.relay),
      ["a.example", "b.example"],
    );
  });

  it("an announcement that begins to wait ends the window within a second, but not those that waited at the start", () => {
    const driver = new Driver();
    const dialled = (): string[] => only(driver.said, "connect").map((command) => command.relay);
    driver.tell({ type: "waiting", event: announcing("ann", "one", ["wss://a.example"]) });
    driver.advance(4999);
    assert.deepEqual(dialled(), []);
    driver.tell({ type: "replayEnded" });
    driver.advance(1);
    assert.deepEqual(dialled(), ["a.example"]);
    driver.tell({ type: "accepted", event: announcing("bob", "two", ["wss://b.example"]), hosted: true });
    driver.advance(1000);
    driver.tell({ type: "waiting", event: announcing("eve", "three", ["wss://c.example"]) });
    driver.advance(500);
    driver.tell({ type: "waiting", event: announcing("eve", "four", ["wss://d.example"]) });
    driver.advance(499);
    assert.deepEqual(dialled(), ["a.example"]);
    driver.advance(1);
    assert.deepEqual(dialled(), ["a.example", "b.example", "c.example", "d.example"]);
  });

  it("a root that precedes its announcement in the replay is wanted, one that never gets an announcement is dropped", () => {
    const driver = new Driver();
    driver.tell({ type: "accepted", event: issue("early", "ann", "one") });
    driver.tell({ type: "accepted", event: issue("orphan", "eve", "none") });
    driver.tell({ type: "accepted", event: announcing("ann", "one", ["wss://a.example"]), hosted: true });
    assert.equal(driver.snapshot().tables.early, 2);
    driver.tell({ type: "replayEnded" });
    assert.equal(driver.snapshot().tables.early, 0);
    assert.equal(driver.snapshot().roots, 1);
  });

  it("a repository that leaves purgatory gets its layer 2 although its states were confirmed", () => {
    const driver = new Driver();
    const event = announcing("ann", "one", ["wss://a.example"]);
    driver.tell({ type: "waiting", event });
    driver.advance(5000);
    let from = driver.said.length;
    driver.connect("a.example");
    driver.settle("a.example", from);
    const waitingFilters = only(driver.said.slice(from), "reconcile").map(({ filter }) => filter.kinds);
    assert.deepEqual(waitingFilters, [[30617], [30618]]);
    from = driver.said.length;
    driver.tell({ type: "accepted", event, hosted: true });
    driver.advance(5000);
    driver.settle("a.example", from);
    const released = only(driver.said.slice(from), "reconcile").map(({ filter }) => [...(filter.tags?.keys() ?? [])]);
    assert.deepEqual(released, [["a"], ["A"], ["q"]]);
    assert.equal(subscribed(driver.said.slice(from), "l").length, 1);
  });

  it("what leaves targets leaves live and confirmed, and the relay is closed within a minute", () => {
    const driver = new Driver();
    const event = announcing("ann", "one", ["wss://a.example"]);
    driver.makeLive("a.example", event);
    driver.tell({ type: "removed", id: event.id, address: coordinate("ann", "one"), cause: "deletion" });
    driver.advance(5000);
    assert.equal(driver.relay("a.example")?.items, 1, "only layer 1 is left");
    driver.advance(60_000);
    assert.equal(only(driver.said, "disconnect").length, 1);
    assert.equal(driver.relay("a.example"), undefined);
    assert.equal(driver.snapshot().repos, 0);
  });

  it("a replaced announcement drops the relays it no longer lists, and keeps the repository", () => {
    const driver = new Driver();
    driver.makeLive("a.example", announcing("ann", "one", ["wss://a.example"]));
    driver.tell({ type: "accepted", event: announcing("ann", "one", ["wss://b.example"]), hosted: true });
    driver.advance(70_000);
    assert.equal(driver.relay("a.example"), undefined);
    assert.ok(driver.relay("b.example"));
  });

  it("an announcement that is served but no longer hosted is not wanted", () => {
    const driver = new Driver();
    driver.makeLive("a.example", announcing("ann", "one", ["wss://a.example"]));
    driver.tell({ type: "accepted", event: announcing("ann", "one", ["wss://a.example"]), hosted: false });
    driver.advance(70_000);
    assert.deepEqual(driver.snapshot().relays, []);
  });

  it("our own service is never dialled", () => {
    const driver = new Driver();
    driver.tell({
      type: "accepted",
      event: announcing("ann", "one", ["wss://US.example:443/", "ws://us.example"]),
      hosted: true,
    });
    driver.advance(70_000);
    assert.deepEqual(only(driver.said, "connect"), []);
  });

  for (const [name, repos, expected] of [
    ["20 a repository", [announcing("ann", "one", relayList(30))], 20],
    [
      "3 a host",
      [announcing("ann", "one", ["wss://h.example/a", "wss://h.example/b", "wss://h.example/c", "wss://h.example/d"])],
      3,
    ],
    ["50 an owner", [0, 20, 40].map((from, n) => announcing("ann", `r${n}`, relayList(20, from))), 50],
  ] as const) {
    it(`relays are capped: ${name}`, () => {
      const driver = new Driver();
      for (const event of repos) driver.tell({ type: "accepted", event, hosted: true });
      driver.advance(5000);
      assert.equal(driver.snapshot().relays.length, expected);
    });
  }

  it("relays are capped: 1,000 in all; one that leaves makes room for one that was refused", () => {
    const driver = new Driver({ syncMaxRelays: 5 });
    const first = announcing("ann", "one", relayList(5));
    driver.tell({ type: "accepted", event: first, hosted: true });
    driver.tell({ type: "accepted", event: announcing("bob", "two", ["wss://late.example"]), hosted: true });
    driver.advance(5000);
    assert.equal(driver.relay("late.example"), undefined);
    driver.tell({ type: "removed", id: first.id, address: coordinate("ann", "one"), cause: "deletion" });
    driver.advance(70_000);
    assert.ok(driver.relay("late.example"));
  });

  it("waiting announcements dial at most 5 relays each and 200 together", () => {
    const driver = new Driver({ syncMaxRelaysForWaiting: 12 });
    for (let n = 0; n < 4; n++)
      driver.tell({ type: "waiting", event: announcing(`eve${n}`, "flood", relayList(10, n * 10)) });
    driver.advance(5000);
    assert.equal(driver.snapshot().relays.length, 12);
    assert.equal(driver.snapshot().waitingOnlyRelays, 12);
  });

  it("at most 32 dials run at once; the next begins when one ends", () => {
    const driver = new Driver({ syncConcurrentDials: 2 });
    driver.tell({ type: "accepted", event: announcing("ann", "one", relayList(4)), hosted: true });
    driver.advance(5000);
    const dialled = only(driver.said, "connect").map((command) => command.relay);
    assert.equal(dialled.length, 2);
    driver.from(dialled[0]!, "connectFailed", { kind: "refused" });
    assert.equal(only(driver.said, "connect").length, 3);
  });

  it("bootstrap relays are dialled without any repository, and asked for the states of all", () => {
    const driver = new Driver({ bootstrap: [bootstrap("wss://boot.example")], syncMaxStateIdentifiers: 2 });
    driver.tell({ type: "accepted", event: announcing("ann", "one", ["wss://a.example"]), hosted: true });
    driver.advance(5000);
    const from = driver.said.length;
    driver.connect("boot.example");
    driver.settle("boot.example", from);
    const named = only(driver.said.slice(from), "reconcile").map(({ filter }) => filter);
    assert.deepEqual([...(named[1]?.tags?.get("d") ?? [])], ["one"]);
    for (const name of ["two", "three"])
      driver.tell({ type: "accepted", event: announcing("ann", name, ["wss://a.example"]), hosted: true });
    const then = driver.said.length;
    driver.advance(5000);
    driver.settle("boot.example", then);
    const all = only(driver.said.slice(then), "reconcile").filter(({ relay }) => relay === "boot.example");
    assert.deepEqual(
      all.map(({ filter }) => filter),
      [{ kinds: [30618] }],
    );
  });
});
