import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../base/testing/manual-clock.js";
import { VisitorRates } from "./page-limits.js";

test("one address may ask so often, others are not affected, and it grows back", () => {
  const clock = new ManualClock();
  const rates = new VisitorRates(clock, { pagesPerMinute: 4, gitPagesPerMinute: 2, archivesPerMinute: 1 });
  const taken = (ip: string): boolean[] => Array.from({ length: 5 }, () => rates.takePage(ip));
  assert.deepEqual(taken("192.0.2.1"), [true, true, true, true, false]);
  assert.deepEqual(taken("192.0.2.2"), [true, true, true, true, false]);
  assert.equal(rates.takeGitPage("192.0.2.1"), true);
  clock.advance(15_000);
  assert.deepEqual([rates.takePage("192.0.2.1"), rates.takePage("192.0.2.1")], [true, false]);
});

test("an IPv6 network is one visitor", () => {
  const rates = new VisitorRates(new ManualClock(), { pagesPerMinute: 1, gitPagesPerMinute: 1, archivesPerMinute: 1 });
  assert.equal(rates.takeGitPage("2001:db8::1"), true);
  assert.equal(rates.takeGitPage("2001:db8::2"), false);
});
