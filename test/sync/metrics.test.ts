// Every number of event-sync.md "Metrics" moves, up and, where it can, down. Those of single relays are looked at
// through one relay that is followed, lost and forgotten; what that cannot show is told to the metrics directly.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Registry } from "prom-client";
import type { CoreSnapshot, RelaySnapshot } from "../../src/sync/core/standing.js";
import { announcing, Driver } from "../../src/sync/core/testing/driver.js";
import { createSyncMetrics, noOutbox } from "../../src/sync/metrics.js";
import type { LogLine } from "../harness/server.js";
import { PushedClock } from "../harness/sync-clock.js";
import { owner, startPair } from "../harness/sync-pair.js";
import {
  announce,
  issueFor,
  metricIn,
  nowSeconds,
  put,
  serveRepository,
  startSyncServer,
  until,
} from "../harness/sync-server.js";

test("a relay's numbers rise while it is followed and fall when it is lost and forgotten", async (t) => {
  const { relay, server, repository } = await startPair(t, { habits: { negentropy: "error" } });
  await serveRepository(server.store, repository);
  const of = { relay: relay.key };
  const becomes = (name: string, value: number, labels: Record<string, string> = of) =>
    until(`${name} is ${value}`, async () => (await server.metric(name, labels)) === value);
  await becomes("ngit_sync_relay_connected", 1);
  await becomes("ngit_sync_relay_state", 1, { ...of, state: "live" });
  await becomes("ngit_sync_relays_tracked_total", 1, {});
  await becomes("ngit_sync_relays_connected_total", 1, {});
  await becomes("ngit_sync_relay_status", 1);
  await becomes("ngit_sync_pending_batches", 0);
  assert.equal(await server.metric("ngit_sync_connection_attempts_total", { ...of, result: "success" }), 1);
  assert.ok(((await server.metric("ngit_sync_live_filters", of)) ?? 0) >= 5);
  assert.ok(((await server.metric("ngit_sync_negentropy_total", { ...of, result: "failed" })) ?? 0) >= 1);
  assert.ok(((await server.metric("ngit_sync_bytes_total", { ...of, direction: "in" })) ?? 0) > 0);
  assert.ok(((await server.metric("ngit_sync_bytes_total", { ...of, direction: "out" })) ?? 0) > 0);
  await relay.stop();
  await becomes("ngit_sync_relay_connected", 0);
  await becomes("ngit_sync_relay_state", 0, { ...of, state: "live" });
  await becomes("ngit_sync_live_filters", 0);
  await becomes("ngit_sync_relay_status", 2);
  await until(
    "it is dialled in vain",
    async () => ((await server.metric("ngit_sync_connection_attempts_total", { ...of, result: "failure" })) ?? 0) > 0,
  );
  assert.ok(((await server.metric("ngit_sync_relay_failures", of)) ?? 0) >= 1);
  await serveRepository(server.store, announce(owner, [server.domain], { created_at: nowSeconds() }));
  await becomes("ngit_sync_relays_tracked_total", 0, {});
});

test("what the peer lacks is shown, warned about, and gone when it has it", async (t) => {
  const first = await startSyncServer();
  t.after(() => first.close());
  const clock = new PushedClock();
  // A pushed clock on a busy machine leaves little time for answers to pings.
  const patience = { NGIT_SYNC_SILENT_LINK_SECS: "2h" };
  const settings = { NGIT_SYNC_DAILY_MIN_HOURS: "1", NGIT_SYNC_DAILY_MAX_HOURS: "1", ...patience };
  const second = await startSyncServer({ clock, settings });
  t.after(() => second.close());
  const repository = announce(owner, [second.domain], { relays: [first.url] });
  const issue = issueFor(owner, repository, "only here");
  await put(first.store, repository);
  // Before anything is compared: the next comparison is an hour away.
  await put(second.store, issue);
  await serveRepository(second.store, repository);
  const missing = () => second.metric("ngit_sync_peer_missing_events", { relay: first.domain });
  await until("one is missing there", async () => (await missing()) === 1);
  await clock.push(6_000);
  const isWarning = (line: LogLine): boolean =>
    line.level === "warn" && line.count === 1 && line.message === "the relay lacks events that are stored here";
  await until("a warning says so", () => second.log.some(isWarning));
  await put(first.store, issue);
  await clock.push(61 * 60_000);
  await until("none is missing", async () => (await missing()) === 0);
});

const relayOf = (index: number, more: Partial<RelaySnapshot> = {}): RelaySnapshot => ({
  relay: `relay-${String(index).padStart(3, "0")}.example`,
  url: undefined,
  bootstrap: false,
  waitingOnly: false,
  isUnlisted: false,
  outboxRepositories: 0,
  outboxParticipants: 0,
  isOutboxLive: false,
  state: "live",
  connected: true,
  status: 1,
  failures: 0,
  lastFailure: undefined,
  ignored: false,
  inStep: true,
  inStepUntilMs: undefined,
  outOfStepMs: 0,
  repositories: 0,
  comparedRepositories: 0,
  oldestComparedWallMs: undefined,
  nextDialMs: 0,
  items: 0,
  confirmedItems: 0,
  failedItems: 0,
  retryingItems: 0,
  barredItems: 0,
  pendingBatches: 0,
  oldestBatchMs: undefined,
  liveFilters: 1,
  rotatingRoots: 0,
  rotatingRepos: 0,
  peerMissing: 0,
  lastEventWallMs: undefined,
  offersInFlight: 0,
  historySubscriptions: 0,
  ...more,
});

const snapshotWith = (relays: readonly RelaySnapshot[], more: Partial<CoreSnapshot> = {}): CoreSnapshot => ({
  relays,
  connected: relays.length,
  dead: 0,
  naughty: { "dns-not-found": 0, certificate: 0, "not-websocket": 0 },
  hot: 0,
  cold: 0,
  repos: 0,
  roots: 0,
  tables: { repos: 0, roots: 0, early: 0 },
  unplaced: 0,
  outbox: noOutbox,
  waitingOnlyRelays: 0,
  ...more,
});

test("above the limit the quietest relays share one label", async () => {
  const registry = new Registry();
  const metrics = createSyncMetrics(registry, () => 200);
  const relays = Array.from({ length: 205 }, (_, index) => relayOf(index));
  metrics.watch(() => snapshotWith(relays));
  for (const [index, { relay }] of relays.entries()) metrics.bytes(relay, "in", 1_000 - index);
  const text = await registry.metrics();
  assert.equal(metricIn(text, "ngit_sync_relay_connected", { relay: "other" }), 5);
  assert.equal(metricIn(text, "ngit_sync_relay_connected", { relay: "relay-000.example" }), 1);
  assert.equal(metricIn(text, "ngit_sync_relay_connected", { relay: "relay-204.example" }), undefined);
  assert.equal(
    metricIn(text, "ngit_sync_bytes_total", {}),
    relays.reduce((sum, _, index) => sum + 1_000 - index, 0),
  );
  const labels = new Set(
    [...text.matchAll(/^ngit_sync_relay_connected\{relay="([^"]+)"\}/gm)].map(([, label]) => label),
  );
  assert.equal(labels.size, 201);
});

test("rotation, the dead, the naughty and what is remembered go up and down with the core", async () => {
  const registry = new Registry();
  const metrics = createSyncMetrics(registry, () => 200);
  let now = snapshotWith([relayOf(1, { status: 3, rotatingRoots: 7, rotatingRepos: 2, pendingBatches: 3 })], {
    dead: 1,
    hot: 4,
    cold: 5,
    naughty: { "dns-not-found": 1, certificate: 2, "not-websocket": 0 },
  });
  metrics.watch(() => now);
  const read = async (name: string, labels: Record<string, string> = {}): Promise<number | undefined> => {
    await new Promise<void>((go) => setImmediate(go));
    return metricIn(await registry.metrics(), name, labels);
  };
  assert.equal(await read("ngit_sync_rotating", { kind: "root" }), 7);
  assert.equal(await read("ngit_sync_rotating", { kind: "repository" }), 2);
  assert.equal(await read("ngit_sync_relays_dead_total"), 1);
  assert.equal(await read("ngit_sync_relay_status"), 3);
  assert.equal(await read("ngit_sync_pending_batches"), 3);
  assert.equal(await read("ngit_sync_remembered", { tier: "hot" }), 4);
  assert.equal(await read("ngit_sync_remembered", { tier: "cold" }), 5);
  assert.equal(await read("ngit_sync_naughty_relays_total", { category: "certificate" }), 2);
  now = snapshotWith([relayOf(1)]);
  assert.equal(await read("ngit_sync_rotating"), 0);
  assert.equal(await read("ngit_sync_relays_dead_total"), 0);
  assert.equal(await read("ngit_sync_relay_status"), 1);
  assert.equal(await read("ngit_sync_pending_batches"), 0);
  assert.equal(await read("ngit_sync_remembered"), 0);
  assert.equal(await read("ngit_sync_naughty_relays_total"), 0);
});

/** A core driven by hand, and its numbers as they are scraped. */
function scraped(): { readonly driver: Driver; read(name: string, labels?: Record<string, string>): Promise<number> } {
  const registry = new Registry();
  const metrics = createSyncMetrics(registry, () => 200);
  const driver = new Driver();
  metrics.watch(() => driver.snapshot());
  let told = 0;
  return {
    driver,
    async read(name, labels = {}) {
      for (const command of driver.said.slice(told)) if (command.type === "count") metrics.count(command);
      told = driver.said.length;
      await new Promise<void>((go) => setImmediate(go));
      return metricIn(await registry.metrics(), name, labels) ?? 0;
    },
  };
}

const hour = 3_600_000;

/** Moves on until the relay is dialled: a dial that nobody answers would end by itself. */
function dialled(driver: Driver, relay: string): void {
  for (let steps = 0; driver.relay(relay)?.state !== "connecting"; steps++) {
    assert.ok(steps < 20_000, `${relay} is not dialled`);
    driver.advance(5_000);
  }
}

function recover(driver: Driver, relay: string): void {
  dialled(driver, relay);
  const from = driver.said.length;
  driver.connect(relay);
  driver.settle(relay, from);
}

test("no alert rings for a relay that was dead and has recovered: health, failures and step come down with it", async () => {
  const { driver, read } = scraped();
  const relay = "a.example";
  driver.makeLive(relay, announcing("ann", "tool", ["wss://a.example"]));
  assert.equal(await read("ngit_sync_in_step_seconds"), 0);
  driver.from(relay, "closed");
  for (let tried = 0; tried < 200 && driver.relay(relay)?.status !== 3; tried++) {
    dialled(driver, relay);
    driver.from(relay, "connectFailed", { kind: "refused" });
  }
  // What the alerts HoldfastDeadRelay and HoldfastNotInStep ask.
  assert.equal(await read("ngit_sync_relay_status"), 3);
  assert.ok((await read("ngit_sync_in_step_seconds")) > 6 * 3_600);
  assert.equal(await read("ngit_sync_relay_connected"), 0);
  recover(driver, relay);
  assert.equal(await read("ngit_sync_relay_connected"), 1);
  assert.equal(await read("ngit_sync_relay_status"), 1);
  assert.equal(await read("ngit_sync_in_step_seconds"), 0);
});

test("full syncs are counted by what called for them", async () => {
  const { driver, read } = scraped();
  const relay = "a.example";
  const loseFor = (ms: number): void => {
    driver.from(relay, "closed");
    const backMs = driver.nowMs + ms;
    while (driver.nowMs < backMs) {
      dialled(driver, relay);
      if (driver.nowMs < backMs) driver.from(relay, "connectFailed", { kind: "refused" });
    }
    recover(driver, relay);
  };
  const count = (reason: string): Promise<number> => read("ngit_sync_full_syncs_total", { relay, reason });
  driver.makeLive(relay, announcing("ann", "tool", ["wss://a.example"]));
  assert.equal(await count("first"), 1);
  loseFor(60_000);
  assert.deepEqual([await count("first"), await count("stale")], [1, 0], "a short break asks for no full sync");
  loseFor(20 * 60_000);
  assert.equal(await count("stale"), 1);
  driver.advance(26 * hour);
  assert.equal(await count("daily"), 1);
});

test("repositories without a place, and relays that are left alone, are told as they are", async () => {
  const registry = new Registry();
  const metrics = createSyncMetrics(registry, () => 200);
  let now = snapshotWith([relayOf(1, { outOfStepMs: 7_000 }), relayOf(2, { ignored: true, outOfStepMs: 9_000 })], {
    unplaced: 3,
  });
  metrics.watch(() => now);
  const read = async (name: string): Promise<string[]> => {
    await new Promise<void>((go) => setImmediate(go));
    return (await registry.metrics()).split("\n").filter((line) => line.startsWith(name));
  };
  assert.deepEqual(await read("ngit_sync_unplaced_repositories"), ["ngit_sync_unplaced_repositories 3"]);
  assert.deepEqual(await read("ngit_sync_in_step_seconds"), ['ngit_sync_in_step_seconds{relay="relay-001.example"} 7']);
  now = snapshotWith([relayOf(1)]);
  assert.deepEqual(await read("ngit_sync_unplaced_repositories"), ["ngit_sync_unplaced_repositories 0"]);
  assert.deepEqual(await read("ngit_sync_in_step_seconds"), ['ngit_sync_in_step_seconds{relay="relay-001.example"} 0']);
});

test("what is gathered at participants' own relays goes up and down with the core; a dead one is nobody's trouble", async () => {
  const registry = new Registry();
  const metrics = createSyncMetrics(registry, () => 200);
  const lists = { found: 5, none: 2, asked: 1 };
  let now = snapshotWith([relayOf(1), relayOf(2, { isUnlisted: true, connected: false, status: 3, failures: 9 })], {
    outbox: { ...noOutbox, participants: 8, relays: 4, connected: 3, live: 2, incomplete: 6, unplaced: 7, lists },
  });
  metrics.watch(() => now);
  metrics.count({ type: "count", counter: "outbox_events", relay: "relay-002.example" });
  const expected = (of: typeof now.outbox) =>
    [
      ["ngit_sync_outbox_participants", {}, of.participants],
      ["ngit_sync_outbox_incomplete_repositories", {}, of.incomplete],
      ["ngit_sync_outbox_unplaced_repositories", {}, of.unplaced],
      ["ngit_sync_outbox_relays", { state: "asked" }, of.relays],
      ["ngit_sync_outbox_relays", { state: "connected" }, of.connected],
      ["ngit_sync_outbox_relays", { state: "live" }, of.live],
      ["ngit_sync_outbox_lists", { result: "found" }, of.lists.found],
      ["ngit_sync_outbox_lists", { result: "none" }, of.lists.none],
      ["ngit_sync_outbox_lists", { result: "asked" }, of.lists.asked],
      ["ngit_sync_outbox_events_total", {}, 1],
      ["ngit_sync_relays_tracked_total", {}, 1],
      ["ngit_sync_relay_status", { relay: "relay-001.example" }, 1],
      ["ngit_sync_relay_status", { relay: "relay-002.example" }, undefined],
    ] as const;
  for (const outbox of [now.outbox, noOutbox]) {
    now = { ...now, outbox };
    const text = await registry.metrics();
    for (const [name, labels, value] of expected(outbox)) assert.equal(metricIn(text, name, labels), value, name);
    await new Promise((go) => setImmediate(go));
  }
});

test("the status page is for this machine and names state, health, items and gaps", async (t) => {
  const { relay, server } = await startPair(t, { asBootstrap: true });
  const isInStep = async () => {
    const [first] = (await server.status()).relays;
    return first?.state === "live" && first.inStep;
  };
  await until("live", isInStep);
  const status = await server.status();
  assert.deepEqual(
    { ...status.relays[0], bytesIn: 0, bytesOut: 0, liveFilters: 0 },
    {
      relay: relay.key,
      url: relay.url,
      bootstrap: true,
      waitingOnly: false,
      state: "live",
      health: "healthy",
      failures: 0,
      lastFailure: null,
      ignored: false,
      inStep: true,
      lastInStep: null,
      outOfStepSeconds: 0,
      compared: { repositories: 0, clean: 0, oldest: null },
      nextAttemptSeconds: null,
      wantedItems: 1,
      confirmedItems: 1,
      failedItems: 0,
      pendingBatches: 0,
      liveFilters: 0,
      rotating: { roots: 0, repositories: 0 },
      outbox: { repositories: 0, participants: 0, live: false },
      lastEvent: null,
      peerMissingEvents: 0,
      bytesIn: 0,
      bytesOut: 0,
      gapEvents: 0,
    },
  );
  await relay.stop();
  await until(
    "it waits for the next attempt",
    async () => (await server.status()).relays[0]?.nextAttemptSeconds !== null,
  );
  const outside = await fetch(`http://${server.domain}/api/sync`, { headers: { "x-forwarded-for": "192.0.2.1" } });
  assert.equal(outside.status, 403);
});
