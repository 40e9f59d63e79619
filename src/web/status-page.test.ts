import assert from "node:assert/strict";
import { test } from "node:test";
import { busySection } from "./charts.js";
import { RelayHistory, samplesKept } from "./relay-history.js";
import { type RelayStatus, type StatusFacts, sparkline, statusPage } from "./status-page.js";

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

test("repositories whose refs are behind are counted while there are some", () => {
  const site = {
    name: "x",
    basePath: "",
    httpUrl: "https://x.example",
    relayUrl: "wss://x.example",
    version: "1",
    isPrivate: false,
  };
  const facts: StatusFacts = {
    relays: [],
    huntingQueue: undefined,
    outbox: undefined,
    machines: undefined,
    waiting: { entries: 0, waitingAnnouncements: 0, softAnnouncements: 0 },
    repositories: 7,
    refsBehind: 0,
    events: 9,
    busy: busySection([], 0),
    startedSeconds: 0,
    versions: { holdfast: "1", git: "2", node: "20" },
  };
  const shown = (refsBehind: number): string => statusPage(site, { ...facts, refsBehind }, () => []).body;
  assert.doesNotMatch(shown(0), /behind/);
  assert.match(shown(1), /<b>1<\/b> repository behind on refs/);
  assert.match(shown(1_200), /<b>1,200<\/b> repositories behind on refs/);
  const among = (behind: number): string =>
    statusPage(site, { ...facts, machines: { all: 3, alive: 2, behind } }, () => []).body;
  assert.match(among(0), /<b>2 of 3<\/b> machines answer<\/li>/);
  assert.match(among(1), /machines answer, this one is 1 change behind/);
});
