// What was refused and may be welcome now is judged again promptly: when lists or announcements change. Bounded and paced.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NostrEvent } from "../../src/nostr/event.js";
import type { Command, Outcome } from "../../src/sync/core/messages.js";
import { announcing, coordinate, Driver, event, fetched, id, key, only } from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const minute = 60_000;

function live(config: ConstructorParameters<typeof Driver>[0] = {}): Driver {
  const driver = new Driver({ syncDailyMinHours: 1e6, syncDailyMaxHours: 1e6, ...config });
  driver.makeLive(relay, announcing("ann", "tool", ["wss://a.example"]));
  return driver;
}

const judge = (driver: Driver, judged: NostrEvent, outcome: Outcome) =>
  driver.tell({ type: "verdict", relay, source: "startup", layerFour: false, event: judged, outcome });
const refused = (code: Extract<Outcome, { type: "refused" }>["code"]): Outcome => ({ type: "refused", code });
const announcementOf = (name: string): NostrEvent => event(name, 30617, [["d", name]], { pubkey: key("banned") });
const state = (name: string): NostrEvent => event(name, 30618, [["d", "tool"]], { pubkey: key("ann") });

/** How often the announcements of each relay were compared while `ms` pass; everything is answered. */
function compared(driver: Driver, ms: number): Map<string, number> {
  const counts = new Map<string, number>();
  const endMs = driver.nowMs + ms;
  while (driver.nowMs < endMs) {
    const from = driver.said.length;
    driver.advance(10_000);
    const asked = only(driver.said.slice(from), "reconcile").filter(({ filter }) => filter.kinds?.[0] === 30617);
    for (const one of asked) {
      counts.set(one.relay, (counts.get(one.relay) ?? 0) + 1);
      driver.settle(one.relay, from);
    }
  }
  return counts;
}

describe("what may be welcome now", () => {
  for (const code of ["author-blocked", "repository-blocked", "event-blocked", "not-whitelisted"] as const) {
    it(`what was refused for ${code} is fetched from its relay when the lists change`, () => {
      const driver = live();
      judge(driver, announcementOf("theirs"), refused(code));
      judge(driver, event("other", 30617, [["d", "other"]]), refused("service-not-listed"));
      const said = driver.tell({ type: "listsChanged" });
      assert.deepEqual(fetched(said), [[id("theirs")]]);
      assert.equal(driver.snapshot().cold, 1);
    });
  }

  it("is asked for a few more times where its relay answers without it, which is not in step until then", () => {
    const driver = live();
    judge(driver, announcementOf("theirs"), refused("author-blocked"));
    const isInStep = (): boolean | undefined => driver.snapshot().relays.find((one) => one.relay === relay)?.inStep;
    let from = driver.said.length;
    driver.tell({ type: "listsChanged" });
    const asked: number[] = [];
    for (let seconds = 0; seconds < 200; seconds += 5) {
      const now = driver.said.slice(from);
      from = driver.said.length;
      if (fetched(now).length > 0) {
        assert.deepEqual(fetched(now), [[id("theirs")]]);
        asked.push(seconds);
        assert.equal(isInStep(), false);
      }
      for (const { subscription, link } of only(now, "subscribe"))
        driver.tell({ type: "eose", relay, link, subscription });
      driver.advance(5000);
    }
    assert.deepEqual(asked, [0, 10, 70]);
    assert.equal(isInStep(), true, "it may have been removed there");
  });

  it("waits for a relay that is away", () => {
    const driver = live();
    judge(driver, announcementOf("theirs"), refused("author-blocked"));
    driver.from(relay, "closed");
    assert.deepEqual(fetched(driver.tell({ type: "listsChanged" })), []);
    driver.advance(10_000);
    const from = driver.said.length;
    driver.connect(relay);
    driver.settle(relay, from);
    assert.deepEqual(fetched(driver.said.slice(from)), [[id("theirs")]]);
  });

  for (const [name, become] of [
    [
      "an announcement that makes it valid",
      (driver: Driver) =>
        driver.tell({ type: "accepted", event: announcing("bob", "later", ["wss://b.example"]), hosted: true }),
    ],
    [
      "the end of what superseded it",
      (driver: Driver) =>
        driver.tell({ type: "removed", id: id("x"), address: `30618:${key("bob")}:later`, cause: "ban" }),
    ],
  ] as const) {
    it(`is fetched after ${name} from the relays that are there, where its own is away`, () => {
      const driver = live();
      const from = driver.said.length;
      driver.tell({ type: "accepted", event: announcing("cid", "other", ["wss://b.example"]), hosted: true });
      driver.advance(5000);
      driver.connect("b.example");
      driver.settle("b.example", from);
      judge(driver, event("older", 30618, [["d", "later"]], { pubkey: key("bob") }), { type: "superseded" });
      driver.from(relay, "closed");
      const asked = (said: readonly Command[]): string[] =>
        only(said, "subscribe").flatMap(({ relay: at, filters }) => (filters[0]?.ids?.[0] === id("older") ? [at] : []));
      assert.deepEqual(asked(become(driver)), ["b.example"]);
      driver.advance(10_000);
      assert.deepEqual(asked(driver.connect(relay)), [relay], "its own is asked when it is back");
    });
  }

  it("is compared as a whole when there is too much of it to ask one by one", () => {
    const driver = live({ maxDirectIds: 3 });
    for (let n = 0; n < 9; n++) judge(driver, announcementOf(`n${n}`), refused("not-whitelisted"));
    const from = driver.said.length;
    driver.tell({ type: "listsChanged" });
    driver.settle(relay, from);
    assert.equal(fetched(driver.said.slice(from)).flat().length, 3);
    driver.advance(3 * minute);
    driver.settle(relay, from);
    const layers = only(driver.said.slice(from), "reconcile").map(({ filter }) => filter.kinds?.[0]);
    assert.ok(layers.includes(30618), "a full sync");
  });

  it("announcements that a ban removed come back soon after its end", () => {
    const driver = live();
    assert.deepEqual(only(driver.tell({ type: "listsChanged" }), "reconcile"), []);
    assert.deepEqual([...compared(driver, minute)], [[relay, 1]]);
    assert.deepEqual([...compared(driver, 30 * minute)], []);
  });

  it("a relay whose full sync began after the lists changed is not compared once more", () => {
    const driver = live({ syncDailyMinHours: 30 / 3_600, syncDailyMaxHours: 30 / 3_600 });
    Object.assign(driver.config, { syncDailyMinHours: 1e6, syncDailyMaxHours: 1e6 });
    driver.tell({ type: "listsChanged" });
    assert.deepEqual([...compared(driver, 30 * minute)], [[relay, 1]]);
    driver.tell({ type: "listsChanged" });
    assert.deepEqual([...compared(driver, 30 * minute)], [[relay, 1]], "the next change is one after it");
  });

  it("a hundred changes of lists are no hundred comparisons", () => {
    const driver = live();
    let count = 0;
    for (let n = 0; n < 120; n++) {
      driver.tell({ type: "listsChanged" });
      count += compared(driver, 10_000).get(relay) ?? 0;
    }
    assert.ok(count >= 1 && count <= 3, `${count} in 20 minutes`);
    assert.equal(compared(driver, 20 * minute).get(relay), 1, "the last change takes effect as well");
  });

  it("not all relays are asked at once", () => {
    const driver = new Driver({
      syncDailyMinHours: 1e6,
      syncDailyMaxHours: 1e6,
      syncMaxRelaysPerOwner: 1_000,
      syncConcurrentDials: 1_000,
    });
    const names = Array.from({ length: 120 }, (_, n) => `r${n}.example`);
    for (const [n, name] of names.entries()) {
      driver.tell({ type: "accepted", event: announcing("ann", `tool${n}`, [`wss://${name}`]), hosted: true });
    }
    driver.tell({ type: "replayEnded" });
    driver.advance(5_000);
    for (const name of names) {
      const from = driver.said.length;
      driver.connect(name);
      driver.settle(name, from);
    }
    driver.tell({ type: "listsChanged" });
    const sizes = [1, 2, 3, 4].map(() => compared(driver, minute).size);
    assert.deepEqual(sizes, [50, 50, 20, 0]);
  });

  it("older versions are fetched when the one that was newer is gone, what it did not supersede is not", () => {
    const driver = live();
    judge(driver, state("older"), { type: "superseded" });
    judge(driver, event("stranger's", 30618, [["d", "tool"]]), refused("not-a-maintainer"));
    const removed = (cause: string) =>
      driver.tell({ type: "removed", id: id("newest"), address: `30618:${key("ann")}:tool`, cause });
    assert.deepEqual(fetched(removed("replaced")), []);
    assert.deepEqual(fetched(removed("deletion")), [[id("older")]]);
  });

  it("an announcement that superseded others and is gone makes them worth a look", () => {
    const driver = live();
    judge(driver, event("older", 30617, [["d", "tool"]], { pubkey: key("ann") }), { type: "superseded" });
    judge(driver, event("stranger's", 30618, [["d", "tool"]]), refused("not-a-maintainer"));
    const said = driver.tell({ type: "removed", id: id("ann/tool"), address: coordinate("ann", "tool"), cause: "ban" });
    assert.deepEqual(fetched(said), [[id("older")]]);
    assert.equal(driver.snapshot().cold, 0);
  });

  it("what is asked for again and again at a relay that is away is asked for once", () => {
    const driver = live();
    driver.from(relay, "closed");
    for (let n = 0; n < 20; n++)
      driver.tell({ type: "wantIds", ids: [id("one")], coordinate: coordinate("ann", "tool") });
    driver.advance(10_000);
    const from = driver.said.length;
    driver.connect(relay);
    driver.settle(relay, from);
    assert.deepEqual(fetched(driver.said.slice(from)), [[id("one")]]);
  });
});
