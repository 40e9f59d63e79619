import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import { ManualClock } from "../base/testing/manual-clock.js";
import type { Pubkey, VerifiedEvent } from "../nostr/event.js";
import { DailyBytes, refusedForDisk, refusedFromClient, refusedFromElsewhere } from "./at-the-door.js";

describe("an event while the disk fills up", () => {
  const cases: readonly [string, number, { git: number; relay: number }, boolean][] = [
    ["an issue below the mark", 1_621, { git: 0.94, relay: 0.94 }, true],
    ["an issue at the mark", 1_621, { git: 0, relay: 0.95 }, false],
    ["an issue while only git's disk is full", 1_621, { git: 0.99, relay: 0.5 }, true],
    ["an announcement while only git's disk is full", 30_617, { git: 0.99, relay: 0.5 }, false],
    ["a state while only git's disk is full", 30_618, { git: 0.95, relay: 0.5 }, false],
    ["a pull request while only git's disk is full", 1_618, { git: 0.95, relay: 0.5 }, false],
    ["a deletion on a full disk", 5, { git: 1, relay: 1 }, true],
    ["a request to vanish on a full disk", 62, { git: 1, relay: 1 }, true],
  ];
  for (const [name, kind, used, isTaken] of cases) {
    it(`${name} is ${isTaken ? "taken" : "refused"}`, () => {
      const refusal = refusedForDisk({ kind }, used, 95);
      assert.equal(refusal === undefined, isTaken);
      if (refusal) assert.equal(refusal.code, "disk-full");
    });
  }
});

const kilobyte = (author: string, ...repositories: string[]): VerifiedEvent =>
  ({
    pubkey: author,
    kind: 1621,
    tags: repositories.map((address) => ["a", address]),
    raw: "x".repeat(1024),
  }) as unknown as VerifiedEvent;

const limits = {
  eventsPerDayPerAuthorBytes: 3 * 1024,
  eventsPerDayPerRepositoryBytes: 5 * 1024,
  eventsPerDayPerIpBytes: 8 * 1024,
};
const repository = "30617:owner:repo";

test("bytes a day are counted for the author, the repository and the address, and the refusal says which and when", () => {
  const clock = new ManualClock();
  const daily = new DailyBytes(clock, { current: limits });
  const codes = (count: number, event: VerifiedEvent, ip: string): string[] =>
    Array.from({ length: count }, () => {
      const taken = daily.take(event, ip);
      return taken.ok ? "ok" : taken.code;
    });
  const a = "192.0.2.1";
  assert.deepEqual(codes(4, kilobyte("alice", repository), a), ["ok", "ok", "ok", "author-bytes"]);
  assert.deepEqual(codes(3, kilobyte("bob", repository), "192.0.2.2"), ["ok", "ok", "repository-bytes"]);
  // What one account refused was not taken from the others.
  assert.deepEqual(codes(2, kilobyte("bob"), "192.0.2.2"), ["ok", "author-bytes"]);
  // The owner is not kept out by what others send.
  assert.deepEqual(codes(2, kilobyte("owner", repository), "192.0.2.3"), ["ok", "ok"]);
  // One household.
  for (let at = 0; at < 8; at++) assert.deepEqual(codes(1, kilobyte(`key ${at}`), `2001:db8::${at}`), ["ok"]);
  assert.deepEqual(codes(1, kilobyte("key 9"), "2001:db8::9"), ["address-bytes"]);
  const refused = daily.take(kilobyte("alice"), a);
  assert.match(
    refused.ok ? "" : refused.message,
    /at most 3 KiB of events by one author .* in a day: try again in 8 h/,
  );
  clock.advance(8 * 3_600_000);
  assert.deepEqual(codes(2, kilobyte("alice"), a), ["ok", "author-bytes"]);
});

test("what was not kept after all is given back", () => {
  const daily = new DailyBytes(new ManualClock(), { current: limits });
  for (let round = 0; round < 100; round++) {
    const taken = daily.take(kilobyte("alice", repository), "192.0.2.1");
    assert.ok(taken.ok);
    taken.giveBack();
  }
});

test("NIP-70: a repost that embeds a protected event is refused from clients, relays and imports", () => {
  const embedded = (tags: unknown): string => JSON.stringify({ kind: 1, tags, content: "for friends" });
  const cases: readonly [string, number, string, boolean][] = [
    ["a repost of a protected event", 6, embedded([["p", "x"], ["-"]]), false],
    ["a generic repost of one", 16, embedded([["-"]]), false],
    ["a repost of an open event", 6, embedded([["p", "-"]]), true],
    ["a repost without content", 6, "", true],
    ["a repost with other text", 6, "look at this: [-]", true],
    ["a repost of what is no event", 6, JSON.stringify([["-"]]), true],
    ["tags that are none", 16, embedded("-"), true],
    ["another kind with the same content", 1, embedded([["-"]]), true],
    ["a hundred thousand brackets", 6, "[".repeat(100_000), true],
  ];
  for (const [name, kind, content, isTaken] of cases) {
    const event = { pubkey: "alice", kind, tags: [], content } as unknown as VerifiedEvent;
    const answers = [
      refusedFromClient(event, { authenticated: new Set([event.pubkey]) }),
      refusedFromElsewhere(event, { type: "import" }, "server" as Pubkey),
    ];
    assert.deepEqual(
      answers.map((refusal) => refusal?.code),
      isTaken ? [undefined, undefined] : ["not-allowed", "not-allowed"],
      name,
    );
  }
});
