import assert from "node:assert/strict";
import { test } from "node:test";
import { Counter, Registry } from "prom-client";
import { ManualClock } from "../base/testing/manual-clock.js";
import { emptyHour, hoursKept, storedHours } from "../catalogue/hours.js";
import { loggerTo } from "../config/logging.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import { BusyHours, grown, hourOf } from "./busy-hours.js";

const hourMs = 3_600_000;
const counts = { events: 0, pushes: 0, refusals: 0, arrivals: 0, lagSeconds: 0 };

test("an hour grows by what was counted since the last look, also when a counter began anew", () => {
  const row = { ...emptyHour(5), events: 10, refusals: 1 };
  const before = { ...counts, events: 100, refusals: 7, arrivals: 4 };
  const now = { ...counts, events: 103, refusals: 7, arrivals: 2, lagSeconds: 1.5 };
  assert.deepEqual(grown(row, before, now, 42), {
    ...row,
    events: 13,
    refusals: 1,
    arrivals: 2,
    lagSeconds: 1.5,
    diskPercent: 42,
  });
});

test("hours are written, go on after a restart, and are forgotten after a month; a store that cannot write ends nothing", async () => {
  const clock = new ManualClock();
  const store = createMemoryStore({ clock });
  const said: string[] = [];
  const logger = loggerTo((line) => void said.push(line), "warn");
  const begin = async () => {
    const registry = new Registry();
    const counter = (name: string, ...labelNames: string[]) =>
      new Counter({ name, help: "x", labelNames, registers: [registry] });
    const stored = counter("ngit_events_stored_total", "kind");
    const decided = counter("ngit_git_push_authorization_total", "result");
    const hours = await BusyHours.open({ clock, store, registry, logger, diskUsed: () => 0.1234 });
    return { stored, decided, hours };
  };
  const first = hourOf(clock.nowMs());
  const one = await begin();
  one.stored.inc({ kind: "1621" }, 3);
  one.stored.inc({ kind: "1" }, 2);
  one.decided.inc({ result: "accepted" });
  one.decided.inc({ result: "not-signed" }, 4);
  // Readers at the same time do not count anything twice.
  await Promise.all([one.hours.upToNow(), one.hours.upToNow(), one.hours.upToNow()]);
  await one.hours.close();
  const expected = { ...emptyHour(first), events: 5, pushes: 1, refusals: 4, diskPercent: 12.3 };
  assert.deepEqual(await storedHours(store), [expected]);

  const two = await begin();
  two.stored.inc({ kind: "1" });
  assert.deepEqual(await two.hours.upToNow(), [{ ...expected, events: 6 }], "the hour goes on");
  clock.advance(hourMs);
  two.stored.inc({ kind: "1" }, 9);
  const later = await two.hours.upToNow();
  assert.deepEqual(
    later.map(({ hour, events }) => [hour - first, events]),
    [
      [0, 6],
      [1, 9],
    ],
  );
  clock.advance((hoursKept - 1) * hourMs);
  await two.hours.close();
  const kept = await storedHours(store);
  assert.ok(kept.length <= hoursKept && kept.every(({ hour }) => hour > first), "the first is forgotten");

  const three = await begin();
  await store.close();
  await three.hours.close();
  assert.match(said.join(""), /could not be written yet/);
});
