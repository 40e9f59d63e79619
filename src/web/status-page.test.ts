import assert from "node:assert/strict";
import { test } from "node:test";
import { RelayHistory, type RelayStatus, samplesKept, sparkline } from "./status-page.js";

const relay = (url: string, isConnected: boolean, health: RelayStatus["health"] = "healthy"): RelayStatus => ({
  url,
  isConnected,
  health,
  lastEvent: null,
  gapEvents: 0,
  compared: { repositories: 0, clean: 0, oldest: null },
});

test("a day of looks is kept for each relay, oldest first", () => {
  const history = new RelayHistory();
  history.look([relay("a", false)]);
  for (let look = 1; look < samplesKept; look++) history.look([relay("a", true)]);
  assert.equal(history.of("a")[0], "down");
  history.look([relay("a", true, "degraded")]);
  assert.equal(history.of("a").length, samplesKept);
  assert.deepEqual([history.of("a")[0], history.of("a").at(-1)], ["up", "part"]);
});

test("a relay that is followed no longer is forgotten", () => {
  const history = new RelayHistory();
  history.look([relay("a", true)]);
  history.look([relay("b", true)]);
  assert.deepEqual([history.of("a"), history.of("b")], [[], ["up"]]);
});

test("a sparkline is told in words as well", () => {
  assert.match(sparkline([]).toString(), /aria-label="no history yet"/);
  const drawn = sparkline(["up", "down", "part", "up"]).toString();
  assert.match(drawn, /aria-label="healthy at 2 of 4 looks"/);
  assert.equal(drawn.match(/<rect/g)?.length, samplesKept);
});
