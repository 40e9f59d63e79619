// Edges of the sync core: what relays state, long values, budgets of namesakes, a link that is lost at a bad moment.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NaughtyKind } from "../../src/sync/core/messages.js";
import {
  announcing,
  bootstrap,
  coordinate,
  Driver,
  event,
  fetched,
  only,
  subscribed,
} from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const listed = ["wss://a.example"];

describe("the sync core", () => {
  it("keeps a filter of states, its kind included, within the number of values a relay states", () => {
    const driver = new Driver({ syncMaxFilters: 4, syncDisableNegentropy: true });
    for (let n = 0; n < 30; n++) {
      driver.tell({ type: "accepted", event: announcing("ann", `tool${n}`, listed), hosted: true });
    }
    driver.tell({ type: "replayEnded" });
    driver.advance(5000);
    const from = driver.said.length;
    driver.from(relay, "connected", { limits: { maxFilterValues: 20, maxLimit: 500 } });
    driver.settle(relay, from);
    const filters = only(driver.said, "subscribe").flatMap((command) => command.filters);
    const ofStates = filters.filter((filter) => filter.tags?.has("d"));
    assert.ok(ofStates.length > 0);
    for (const filter of ofStates) {
      assert.ok((filter.kinds?.length ?? 0) + (filter.tags?.get("d")?.length ?? 0) <= 20);
    }
  });

  for (const [stated, asked] of [
    [undefined, 500],
    [100, 100],
    [2_000, 2_000],
    [1_000_000, 5_000],
  ] as const) {
    it(`asks a relay that states ${stated ?? "no limit"} for pages of ${asked}`, () => {
      const driver = new Driver({ syncDisableNegentropy: true });
      driver.tell({ type: "accepted", event: announcing("ann", "tool", listed), hosted: true });
      driver.tell({ type: "replayEnded" });
      driver.advance(5000);
      driver.from(relay, "connected", { limits: stated === undefined ? {} : { maxLimit: stated } });
      assert.equal(subscribed(driver.said, "h")[0]?.filters[0]?.limit, asked);
    });
  }

  it("asks for a long value in a filter of its own also when it catches up", () => {
    const driver = new Driver({ syncDisableNegentropy: true });
    const long = "l".repeat(300);
    for (const name of ["b", "a", long]) {
      driver.tell({ type: "accepted", event: announcing("ann", name, listed), hosted: true });
    }
    driver.makeLive(relay, announcing("ann", "c", listed));
    driver.from(relay, "closed");
    driver.advance(10_000);
    const from = driver.said.length;
    driver.connect(relay);
    driver.settle(relay, from);
    const caughtUp = subscribed(driver.said.slice(from), "h").flatMap(({ filters }) => filters);
    const groups = caughtUp.flatMap((filter) => (filter.tags?.has("d") ? [filter.tags.get("d")!] : []));
    assert.equal(groups.flat().length, 4);
    assert.deepEqual(
      groups.filter((values) => values.includes(long)).map((values) => values.length),
      [1],
    );
  });

  it("dials a bootstrap relay whatever it was in the naughty list for", () => {
    const kind: NaughtyKind = "certificate";
    const naughty = (driver: Driver): void => {
      const untilWallMs = driver.wallMs + 3_600_000;
      driver.tell({ type: "naughtyLoaded", entries: [{ relay, kind, untilWallMs }] });
    };
    const restarted = new Driver({ bootstrap: [bootstrap("wss://a.example")] });
    naughty(restarted);
    restarted.tell({ type: "tick" });
    restarted.advance(10_000);
    assert.equal(only(restarted.said, "connect").length, 1);

    const joined = new Driver();
    naughty(joined);
    joined.tell({ type: "accepted", event: announcing("ann", "tool", listed), hosted: true });
    joined.advance(10_000);
    assert.equal(only(joined.said, "connect").length, 0, "as any relay it is left alone");
    Object.assign(joined.config, { bootstrap: [bootstrap("wss://a.example")] });
    joined.tell({ type: "listsChanged", archive: true });
    joined.advance(10_000);
    assert.equal(only(joined.said, "connect").length, 1);
  });

  it("asks again for single events when the link was lost before they came", () => {
    const driver = new Driver();
    driver.makeLive(relay, announcing("ann", "tool", listed));
    const wanted = event("wanted", 1618, []).id;
    const asked = fetched(driver.tell({ type: "wantIds", ids: [wanted], coordinate: coordinate("ann", "tool") }));
    assert.deepEqual(asked, [[wanted]]);
    driver.from(relay, "closed");
    driver.advance(10_000);
    assert.deepEqual(fetched(driver.connect(relay)), [[wanted]]);
  });
});
