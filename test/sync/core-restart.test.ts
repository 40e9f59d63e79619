// A restart is a reconnect (spec "Truth about oneself"): what one core kept, the next one begins with.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Command, KeptRelay } from "../../src/sync/core/messages.js";
import { announcing, bootstrap, Driver, id, issue, only, subscribed } from "../../src/sync/core/testing/driver.js";

const relay = "a.example";
const minute = 60_000;
const hour = 60 * minute;
const repo = announcing("ann", "tool", ["wss://a.example"]);
const bug = issue("bug", "ann", "tool");

interface Stopped {
  readonly kept: Map<string, KeptRelay>;
  readonly wallMs: number;
}

function keptBy(driver: Driver): Map<string, KeptRelay> {
  const kept = new Map<string, KeptRelay>();
  for (const command of driver.said) {
    if (command.type === "keepRelay") kept.set(command.relay, command.entry);
    if (command.type === "dropKept") kept.delete(command.relay);
  }
  return kept;
}

function stopped(before: (driver: Driver) => void = () => undefined): Stopped {
  const driver = new Driver();
  driver.tell({ type: "accepted", event: bug });
  driver.makeLive(relay, repo);
  before(driver);
  driver.tell({ type: "stopping" });
  return { kept: keptBy(driver), wallMs: driver.wallMs };
}

interface Start {
  readonly afterMs?: number;
  readonly events?: Parameters<Driver["tell"]>[0][];
  readonly config?: ConstructorParameters<typeof Driver>[0];
}

/** A new process, a while later, with what was kept; everything that its first link asks for. */
function restarted({ kept, wallMs }: Stopped, { afterMs = 2 * minute, events, config }: Start = {}) {
  const driver = new Driver(config);
  driver.wallMs = wallMs + afterMs;
  driver.tell({ type: "relaysLoaded", entries: [...kept].map(([key, entry]) => ({ relay: key, entry })) });
  for (const input of events ?? [
    { type: "accepted" as const, event: bug },
    { type: "accepted" as const, event: repo, hosted: true },
  ])
    driver.tell(input);
  driver.tell({ type: "replayEnded" });
  driver.advance(5000);
  const from = driver.said.length;
  driver.connect(relay);
  driver.settle(relay, from);
  return { driver, said: driver.said.slice(from) };
}

const isQuick = (said: readonly Command[]): boolean =>
  only(said, "reconcile").length === 0 && subscribed(said, "h").every(({ filters }) => filters[0]!.since !== undefined);
const isFull = (said: readonly Command[]): boolean =>
  only(said, "reconcile").filter(({ filter }) => filter.since === undefined).length >= 1 + 1 + 3 + 3;

describe("a restart", () => {
  it("of two minutes asks for the last hour, in every layer, and not for everything", () => {
    const before = stopped();
    const { driver, said } = restarted(before);
    assert.ok(isQuick(said));
    const since = Math.floor(before.wallMs / 1000) - 3600;
    const catchUp = subscribed(said, "h").filter(({ filters }) => !filters[0]!.authors);
    assert.deepEqual(
      catchUp.map(({ filters }) => filters[0]!.since),
      Array.from({ length: 1 + 1 + 3 + 3 }, () => since),
    );
    assert.equal(driver.relay(relay)?.inStep, true);
  });

  it("while the relay owes what it said it has asks for everything", () => {
    const before = stopped((driver) => {
      const from = driver.said.length;
      const another = issue("another", "ann", "tool");
      driver.tell({ type: "accepted", event: another });
      driver.advance(5000);
      for (const { subscription } of subscribed(driver.said.slice(from), "l"))
        driver.from(relay, "eose", { subscription });
      const { session } = only(driver.said.slice(from), "reconcile")[0]!;
      driver.from(relay, "reconciled", { session, missing: [id("promised")], peerMissing: 0 });
      driver.settle(relay, from);
      assert.equal(driver.relay(relay)?.inStep, false);
      driver.tell({ type: "removed", id: another.id, cause: "deletion" });
      driver.advance(5000);
      driver.settle(relay, from);
    });
    assert.ok(isFull(restarted(before).said));
  });

  it("by a kill right after a full sync asks for the last hour too", () => {
    const driver = new Driver();
    driver.tell({ type: "accepted", event: bug });
    driver.makeLive(relay, repo);
    assert.ok(isQuick(restarted({ kept: keptBy(driver), wallMs: driver.wallMs }).said));
  });

  for (const [name, start] of Object.entries({
    "of more than 15 min": { afterMs: 16 * minute },
    "after which the clock stands before the last good moment": { afterMs: -10 * minute },
    "after which an issue more is here": {
      events: [
        { type: "accepted", event: bug },
        { type: "accepted", event: issue("another", "ann", "tool") },
        { type: "accepted", event: repo, hosted: true },
      ],
    },
    "after which an issue less is here": { events: [{ type: "accepted", event: repo, hosted: true }] },
    "with other rules": { config: { rules: "other" } },
  } satisfies Record<string, Start>)) {
    it(`${name} is a first connect`, () => {
      const { said } = restarted(stopped(), start);
      assert.equal(isQuick(said), false);
      assert.ok(only(said, "reconcile").length >= 5);
    });
  }

  it("without anything kept is a first connect", () => {
    assert.ok(isFull(restarted({ ...stopped(), kept: new Map() }).said));
  });

  it("of a server that was killed begins where it last wrote, at most some minutes before", () => {
    const driver = new Driver();
    driver.tell({ type: "accepted", event: bug });
    driver.makeLive(relay, repo);
    driver.advance(20 * minute);
    const kept = keptBy(driver);
    const { wallMs } = kept.get(relay)!.inStep!;
    assert.ok(driver.wallMs - wallMs <= 5 * minute);
    const { said } = restarted({ kept, wallMs: driver.wallMs });
    assert.ok(isQuick(said));
  });

  it("while what our own trouble lost is not here is a first connect", () => {
    const before = stopped((driver) => {
      const lost = issue("lost", "ann", "tool");
      const outcome = { type: "refused", code: "disk-full" } as const;
      driver.tell({ type: "verdict", relay, source: "live", layerFour: false, event: lost, outcome });
    });
    assert.ok(isFull(restarted(before).said));
  });

  it("in the middle of a full sync that had begun more than 15 min ago is a first connect", () => {
    const before = stopped((driver) => {
      driver.advance(24 * hour);
      driver.advance(16 * minute);
    });
    assert.ok(isFull(restarted(before).said));
  });

  it("every night leaves the daily sync and layer 4 daily", () => {
    let before = stopped();
    let dailies = 0;
    let fours = 0;
    for (let night = 0; night < 6; night++) {
      const { driver } = restarted(before);
      for (let minutes = 0; minutes < 20 * 60; minutes++) {
        const from = driver.said.length;
        driver.advance(minute);
        driver.settle(relay, from);
      }
      driver.tell({ type: "stopping" });
      dailies += only(driver.said, "log").filter((log) => log.code === "daily-sync").length;
      // The first look of a process, for authors, comes within its first hour; layer 4 is the other.
      fours += only(driver.said, "lookUpRelated").length - 1;
      before = { kept: keptBy(driver), wallMs: driver.wallMs };
    }
    assert.equal(dailies, 5, "five days and two hours");
    assert.equal(fours, 5);
  });

  it("does not dial a relay that it knows before our own history has been told", () => {
    const { kept, wallMs } = stopped();
    const driver = new Driver({ bootstrap: [bootstrap("wss://a.example")] });
    driver.wallMs = wallMs;
    driver.tell({ type: "relaysLoaded", entries: [...kept].map(([key, entry]) => ({ relay: key, entry })) });
    driver.tell({ type: "accepted", event: bug });
    driver.advance(minute);
    assert.deepEqual(only(driver.said, "connect"), []);
    driver.tell({ type: "accepted", event: repo, hosted: true });
    driver.tell({ type: "replayEnded" });
    driver.advance(5000);
    assert.equal(only(driver.said, "connect").length, 1);
  });

  it("gives places back to the relays that had them, whoever is told of first", () => {
    const junk = announcing("mallory", "junk", ["wss://dead.example"]);
    const hosted = [junk, repo].map((event) => ({ type: "accepted" as const, event, hosted: true }));
    const events = [{ type: "accepted" as const, event: bug }, ...hosted];
    const { driver, said } = restarted(stopped(), { events, config: { syncMaxRelays: 1 } });
    assert.ok(isQuick(said));
    assert.equal(driver.relay(relay)?.inStep, true);
    assert.equal(driver.relay("dead.example"), undefined);
    assert.equal(driver.snapshot().unplaced, 1);
  });

  it("forgets what was kept of relays that nothing needs any more", () => {
    const before = stopped();
    const driver = new Driver();
    driver.tell({ type: "relaysLoaded", entries: [...before.kept].map(([key, entry]) => ({ relay: key, entry })) });
    driver.tell({ type: "replayEnded" });
    driver.advance(5000);
    assert.deepEqual(
      only(driver.said, "dropKept").map((command) => command.relay),
      [relay],
    );
  });
});
