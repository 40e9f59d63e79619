import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyHour } from "../catalogue/hours.js";
import { barPath, busySection, daysUpTo } from "./charts.js";

const now = 480_000;

test("a bar for each number; zero is a line, and what was not counted is left out", () => {
  assert.equal(barPath([0, 5, undefined, 10], 10), "M0 40v-1h6v1zM8 40v-20h6v20zM24 40v-40h6v40z");
  assert.equal(barPath([0, 0], 0), "M0 40v-1h6v1zM8 40v-1h6v1z");
});

test("days end with the running hour and are added up; a disk is as full as at the day's end", () => {
  const rows = [
    { ...emptyHour(now - 24), events: 1, diskPercent: 5 },
    { ...emptyHour(now - 23), events: 2, diskPercent: 10, arrivals: 1, lagSeconds: 2 },
    { ...emptyHour(now), events: 3, diskPercent: 20, arrivals: 3, lagSeconds: 2 },
  ];
  const [before, today] = daysUpTo(rows, now).slice(-2);
  assert.equal(before?.events, 1);
  assert.deepEqual(today, { ...emptyHour(now), events: 5, diskPercent: 20, arrivals: 4, lagSeconds: 4 });
  assert.equal(daysUpTo(rows, now).filter((day) => day === undefined).length, 29);
});

test("every picture says in words what it shows", () => {
  const rows = [
    { ...emptyHour(now - 1), events: 1_200, diskPercent: 41.25 },
    { ...emptyHour(now), events: 3, diskPercent: 41.3, arrivals: 2, lagSeconds: 3 },
  ];
  const { text } = { text: String(busySection(rows, now)) };
  const said = [...text.matchAll(/aria-label="([^"]+)"/g)].map(([, label]) => label);
  assert.equal(said.length, 10);
  assert.equal(said[0], "Events stored, last day: 1,203 in all, at most 1,200 at 23:00 UTC");
  assert.match(said[1] ?? "", /^Events stored, last month: 1,203 in all, at most 1,203 at \d{4}-\d\d-\d\d$/);
  assert.equal(said[6], "Disk in use, last day: 41.3 % now, at most 41.3 % at 00:00 UTC");
  assert.equal(said[8], "Delay from other relays, last day: 1.5 s on average, at most 1.5 s at 00:00 UTC");
  assert.match(String(busySection([], now)), /Pushes, last day: nothing counted yet/);
  assert.doesNotMatch(text, /<script|style=|NaN|Infinity/);
});
