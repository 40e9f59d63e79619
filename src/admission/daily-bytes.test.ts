import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../base/testing/manual-clock.js";
import type { VerifiedEvent } from "../nostr/event.js";
import { DailyBytes } from "./daily-bytes.js";

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
  const daily = new DailyBytes(clock, () => limits);
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
  const daily = new DailyBytes(new ManualClock(), () => limits);
  for (let round = 0; round < 100; round++) {
    const taken = daily.take(kilobyte("alice", repository), "192.0.2.1");
    assert.ok(taken.ok);
    taken.giveBack();
  }
});
