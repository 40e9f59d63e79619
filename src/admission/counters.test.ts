import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventId } from "../nostr/ids.js";
import { hourlyCounter } from "./counters.js";

const id = (text: string): EventId => text.padEnd(64, "0") as EventId;

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
