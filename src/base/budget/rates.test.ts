import assert from "node:assert/strict";
import { test } from "node:test";
import { hourlyCounter, ipGroup, perDay, perMinute, perSecond, Rates, TokenBucket } from "./rates.js";

test("as much at once as a period allows, then as it grows back; what is too much takes nothing", () => {
  const rate = perMinute(60);
  const bucket = new TokenBucket(rate, 0);
  const steps: [atMs: number, amount: number, isTaken: boolean][] = [
    [0, 50, true],
    [0, 11, false],
    [0, 10, true],
    [0, 1, false],
    [999, 1, false],
    [1_000, 1, true],
    // A clock that goes back gives nothing.
    [500, 1, false],
    [61_000, 60, true],
    [61_000, 1, false],
  ];
  for (const [atMs, amount, isTaken] of steps) assert.equal(bucket.take(rate, atMs, amount), isTaken, `${atMs}`);
  assert.equal(bucket.waitMs(rate, 61_000, 3), 3_000);
  assert.equal(bucket.waitMs(rate, 64_000, 3), 0);
  bucket.give(50);
  assert.ok(bucket.take(rate, 64_000, 53), "what was not used can be taken again");
  bucket.give(1_000);
  assert.ok(!bucket.take(rate, 64_000, 60) || !bucket.take(rate, 64_000, 1), "never more than a period allows");
});

test("more than a whole period's worth passes once, from a full bucket, and is paid back", () => {
  const rate = perDay(100);
  const bucket = new TokenBucket(rate, 0);
  assert.ok(bucket.take(rate, 0, 200));
  assert.ok(!bucket.take(rate, 86_400_000, 1));
  assert.ok(bucket.take(rate, 2 * 86_400_000, 100));
});

test("keys have buckets of their own, and at most so many are remembered: full ones are forgotten first", () => {
  const rates = new Rates(() => perMinute(1), 10);
  assert.ok(rates.take("a", 0));
  assert.ok(!rates.take("a", 0));
  assert.ok(rates.take("b", 0));
  // A minute later both are full again and make room; what came since is remembered.
  assert.ok(rates.take("c", 60_000));
  for (let at = 0; at < 7; at++) rates.take(`x${at}`, 60_000);
  rates.take("one more", 60_000);
  assert.ok(!rates.take("c", 60_000));
  for (let at = 0; at < 1_000; at++) rates.take(`y${at}`, 60_000);
  assert.equal(rates.waitMs("c", 60_000), 0, "who came first is forgotten when all are busy");
});

test("what comes is spent in any case, and the wait for the next grows with it", () => {
  const rate = perSecond(100);
  const bucket = new TokenBucket(rate, 0);
  const steps: readonly (readonly [atMs: number, amount: number, waitMs: number])[] = [
    [0, 400, 0],
    [0, 50, 500],
    [0, 50, 1_000],
    [1_000, 0, 0],
    [1_500, 60, 100],
    [60_000, 400, 0],
    [60_000, 1, 10],
  ];
  for (const [atMs, amount, waitMs] of steps) assert.equal(bucket.spend(rate, atMs, amount), waitMs, `${atMs}`);
});

const id = (text: string): string => text.padEnd(64, "0");

test("addresses of one household share an hour", () => {
  const counter = hourlyCounter();
  assert.ok(counter.allows("2001:db8:0:1::5", id("a"), 100, 1));
  assert.ok(!counter.allows("2001:DB8:0:1:ffff:1:2:3", id("b"), 100, 1));
  assert.ok(counter.allows("2001:db8:0:2::5", id("b"), 100, 1));
});

test("the same event counts once, also when its transaction is run again", () => {
  const counter = hourlyCounter();
  for (let run = 0; run < 5; run++) assert.ok(counter.allows("192.0.2.1", id("a"), 100, 1));
  assert.ok(!counter.allows("192.0.2.1", id("b"), 100, 1));
  assert.ok(counter.allows("192.0.2.1", id("b"), 3_701, 1));
});

test("the number of addresses remembered is bounded; the quietest is forgotten", () => {
  const counter = hourlyCounter(2);
  counter.allows("192.0.2.1", id("a"), 1, 1);
  counter.allows("192.0.2.2", id("b"), 2, 1);
  counter.allows("192.0.2.1", id("a"), 3, 1);
  counter.allows("192.0.2.3", id("c"), 4, 1);
  assert.ok(!counter.allows("192.0.2.1", id("x"), 5, 1));
  assert.ok(counter.allows("192.0.2.2", id("y"), 5, 1));
});

test("an IPv4 address is its own visitor, an IPv6 address belongs to its /64, a mapped address is IPv4", () => {
  const cases: [string, string][] = [
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::ffff:c000:201", "192.0.2.1"],
    ["2001:db8:0:1::5", "2001:db8:0:1::/64"],
    ["2001:0DB8::1:ffff:0:0:9", "2001:db8:0:1::/64"],
    ["2001:db8:0:1:ffff:ffff:ffff:ffff", "2001:db8:0:1::/64"],
    ["2001:db8:0:2::5", "2001:db8:0:2::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["unknown", "unknown"],
  ];
  for (const [ip, group] of cases) assert.equal(ipGroup(ip), group, ip);
});
