import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultConfig } from "../config/testing/default-config.js";
import { NaughtyPlaces } from "./naughty.js";

const minute = 60_000;

test("three lasting failures of one kind over ten minutes are naughty for twelve hours, then re-armed", () => {
  const places = new NaughtyPlaces(defaultConfig());
  assert.equal(places.failed("a", "certificate", false, 0), undefined);
  assert.equal(places.failed("a", "certificate", false, 5 * minute), undefined);
  assert.deepEqual(places.failed("a", "certificate", false, 10 * minute), {
    place: "a",
    kind: "certificate",
    untilMs: 10 * minute + 12 * 60 * minute,
  });
  assert.equal(places.isNaughty("a", 10 * minute + 12 * 60 * minute - 1), true);
  assert.equal(places.isNaughty("a", 10 * minute + 12 * 60 * minute), false);
  assert.equal(places.failed("a", "certificate", false, 800 * minute), undefined);
});

test("many failures within ten minutes are not naughty yet", () => {
  const places = new NaughtyPlaces(defaultConfig());
  for (let second = 0; second < 599; second++) assert.equal(places.failed("a", "x", false, second * 1_000), undefined);
  assert.notEqual(places.failed("a", "x", false, 600_000), undefined);
});

test("another kind of failure, or one success, starts the count again", () => {
  const places = new NaughtyPlaces(defaultConfig());
  places.failed("a", "x", false, 0);
  places.failed("a", "x", false, 5 * minute);
  places.failed("a", "y", false, 6 * minute);
  assert.equal(places.failed("a", "x", false, 11 * minute), undefined);
  places.failed("b", "x", false, 0);
  places.failed("b", "x", false, 5 * minute);
  places.worked("b");
  assert.equal(places.failed("b", "x", false, 11 * minute), undefined);
});

test("names that fail in the same minute as another's are our resolver's fault, the first of them too", () => {
  const places = new NaughtyPlaces(defaultConfig());
  for (const at of [0, 5 * minute, 11 * minute, 20 * minute]) {
    assert.equal(places.failed("a", "dns-missing", true, at), undefined);
    assert.equal(places.failed("b", "dns-missing", true, at + 30_000), undefined);
  }
  assert.deepEqual(places.entries(20 * minute), []);
});

test("a temporary failure elsewhere in the same minute protects a name as well", () => {
  const places = new NaughtyPlaces(defaultConfig());
  for (const at of [0, 5 * minute, 11 * minute]) {
    places.dnsTrouble("b", at);
    assert.equal(places.failed("a", "dns-missing", true, at + 1_000), undefined);
  }
});

test("a name that alone does not exist becomes naughty", () => {
  const places = new NaughtyPlaces(defaultConfig());
  places.failed("a", "dns-missing", true, 0);
  places.failed("a", "dns-missing", true, 5 * minute);
  assert.notEqual(places.failed("a", "dns-missing", true, 10 * minute), undefined);
});

test("the list is bounded, survives a restart and can be forgiven", () => {
  const places = new NaughtyPlaces(defaultConfig(), 3);
  for (const place of ["a", "b", "c", "d"]) places.restore({ place, kind: "x", untilMs: 100 });
  assert.deepEqual(
    places.entries(0).map((entry) => entry.place),
    ["b", "c", "d"],
  );
  assert.equal(places.forgive("c"), true);
  assert.equal(places.isNaughty("c", 0), false);
});
