// The five scenarios of the final seed, as settled by spec/event-sync.md.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { announcing, coordinate, Driver, event, issue, only, subscribed } from "../../src/sync/core/testing/driver.js";

const minute = 60_000;
const hour = 60 * minute;
const repo = announcing("ann", "tool", ["wss://a.example"]);

describe("scenarios of event sync", () => {
  it("1: a first connect opens live for everything, then fetches the whole history layer by layer", () => {
    const driver = new Driver();
    driver.tell({ type: "accepted", event: issue("bug", "ann", "tool") });
    driver.tell({ type: "accepted", event: repo, hosted: true });
    driver.tell({ type: "replayEnded" });
    const dialled = driver.advance(5000);
    assert.deepEqual(
      only(dialled, "connect").map((command) => command.url),
      ["wss://a.example"],
    );
    const said = driver.connect("a.example");
    const live = subscribed(said, "l");
    assert.equal(live.flatMap((command) => command.filters).length, 1 + 1 + 3 + 3);
    assert.ok(live.every((command) => command.filters.every((filter) => filter.limit === 0)));
    const settled = [...said, ...driver.settle("a.example")];
    const history = only(settled, "reconcile").map(({ filter }) => [
      ...(filter.kinds ?? []),
      ...(filter.tags?.keys() ?? []),
    ]);
    assert.deepEqual(history, [[30617], [30618, "d"], ["a"], ["A"], ["q"], ["e"], ["E"], ["q"]]);
    assert.ok(only(settled, "reconcile").every(({ filter }) => filter.since === undefined));
    assert.equal(driver.relay("a.example")?.state, "live");
    assert.equal(driver.relay("a.example")?.confirmedItems, 4);
  });

  it("2: a quick reconnect catches up from an hour before the good moment and fetches only what is new", () => {
    const driver = new Driver();
    driver.makeLive("a.example", repo);
    driver.advance(10 * minute);
    const goodSeconds = Math.floor(driver.wallMs / 1000);
    driver.from("a.example", "closed");
    driver.tell({ type: "accepted", event: issue("new", "ann", "tool") });
    driver.advance(2 * minute);
    const from = driver.said.length;
    driver.connect("a.example");
    driver.settle("a.example", from);
    const said = driver.said.slice(from);
    const catchUp = subscribed(said, "h");
    assert.equal(catchUp.length, 1 + 1 + 3);
    assert.ok(catchUp.every(({ filters }) => filters[0]!.since === goodSeconds - 3600));
    assert.deepEqual(
      only(said, "reconcile").map(({ filter }) => [...(filter.tags?.keys() ?? [])]),
      [["e"], ["E"], ["q"]],
    );
    assert.equal(driver.relay("a.example")?.state, "live");
  });

  it("3: a reconnect more than 15 minutes after the good moment forgets what was confirmed", () => {
    const driver = new Driver({ deletionsMs: 1000 * hour });
    driver.makeLive("a.example", repo);
    driver.from("a.example", "closed");
    let waitMs = 5000;
    for (let failures = 0; failures < 8; failures++) {
      driver.advance(waitMs);
      driver.from("a.example", "connectFailed", { kind: "refused" });
      waitMs *= 2;
    }
    driver.advance(waitMs);
    const from = driver.said.length;
    driver.connect("a.example");
    assert.equal(driver.relay("a.example")?.confirmedItems, 0);
    driver.settle("a.example", from);
    const said = driver.said.slice(from);
    assert.deepEqual(subscribed(said, "h"), []);
    assert.equal(only(said, "reconcile").length, 1 + 1 + 3);
    assert.ok(only(said, "log").some((log) => log.code === "stale-reset"));
  });

  it("4: above the filter budget chunks grow, one replaced before the next, layer 1 staying open", () => {
    const driver = new Driver({ syncMaxFilters: 11, syncMaxTagsPerFilter: 2, syncConsolidatedTagsPerFilter: 6 });
    driver.makeLive("a.example", repo);
    const layerOne = subscribed(driver.said, "l")[0]!.subscription;
    let open = 0;
    let most = 0;
    for (let n = 0; n < 6; n++) {
      driver.tell({ type: "accepted", event: issue(`bug ${n}`, "ann", "tool") });
      const from = driver.said.length;
      driver.advance(5000);
      driver.settle("a.example", from);
      open = driver.relay("a.example")!.liveFilters;
      most = Math.max(most, open);
    }
    assert.ok(most <= 11);
    assert.ok(only(driver.said, "log").some((log) => log.code === "live-consolidated"));
    assert.ok(!only(driver.said, "unsubscribe").some((command) => command.subscription === layerOne));
    assert.equal(driver.relay("a.example")?.rotatingRoots, 0);
    const replaced = driver.said.filter((command) => command.type === "subscribe" || command.type === "unsubscribe");
    const firstClose = replaced.findIndex(
      (command) => command.type === "unsubscribe" && command.subscription.startsWith("l"),
    );
    assert.equal(
      replaced[firstClose - 1]?.type,
      "subscribe",
      "the new chunk is asked for before the old one is closed",
    );
  });

  it("5: the daily sync fetches everything again, with layer 4, while live stays open", () => {
    const driver = new Driver();
    driver.makeLive("a.example", repo);
    const before = driver.said.length;
    driver.advance(23 * hour);
    assert.equal(only(driver.said.slice(before), "reconcile").length, 0);
    const from = driver.said.length;
    driver.advance(hour);
    const live = subscribed(driver.said.slice(from), "l");
    assert.deepEqual(live, []);
    const comment = event("comment", 1111, []);
    driver.related = { ids: [comment.id], authors: [comment.pubkey] };
    driver.settle("a.example", from);
    const [request] = only(driver.said.slice(from), "lookUpRelated");
    assert.deepEqual(request?.coordinates, [coordinate("ann", "tool")]);
    const four = only(driver.said.slice(from), "reconcile")
      .slice(5)
      .map(({ filter }) => filter);
    assert.deepEqual([...(four[0]?.tags ?? [])], [["e", [comment.id]]]);
    assert.deepEqual([...(four[1]?.tags ?? [])], [["E", [comment.id]]]);
    assert.deepEqual(four[2], { kinds: [5, 62, 10317], authors: [comment.pubkey] });
    assert.equal(driver.relay("a.example")?.state, "live");
  });
});
