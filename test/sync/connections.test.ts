// How links come and go (event-sync.md "Connections", "Health"; seed 4, scenarios 2 to 5).

import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { NostrEvent } from "../../src/nostr/event.js";
import { sign } from "../harness/relay-events.js";
import { PushedClock } from "../harness/sync-clock.js";
import { hasAll, owner, startLivePair, startPair, untilLive, visitor } from "../harness/sync-pair.js";
import type { PlainRelay } from "../harness/sync-plain-relay.js";
import { announce, coordinateOf, issueFor, nowSeconds, put, serveRepository, until } from "../harness/sync-server.js";

/** From when on the past of a repository was asked for. Lists of people, and what only just came, are asked for from the start. */
const sincesIn = (relay: PlainRelay, from: number, repository: NostrEvent): unknown[] =>
  relay
    .requests()
    .slice(from)
    .flatMap(({ rest }) => rest.slice(1) as Readonly<Record<string, unknown>>[])
    .filter((filter) => filter.limit !== 0)
    .filter(
      ({ kinds, "#a": a, "#A": A, "#q": q }) =>
        [[30617], [30618]].some((one) => isDeepStrictEqual(kinds, one)) ||
        [a, A, q].some((values) => isDeepStrictEqual(values, [coordinateOf(repository)])),
    )
    .map((filter) => filter.since);

test("after a short absence only the recent past is asked for, and what live missed counts as a gap", async (t) => {
  const { relay, server, repository } = await startLivePair(t);
  const asked = relay.requests().length;
  relay.drop();
  const missed = issueFor(visitor, repository, "while away", { created_at: nowSeconds() });
  relay.add(missed);
  await until("the missed event is here", () => hasAll(server, [missed.id]));
  await untilLive(server);
  const sinces = sincesIn(relay, asked, repository);
  assert.ok(
    sinces.length >= 5 && sinces.every((since) => since !== undefined),
    `each request of a quick reconnect looks back only so far: ${JSON.stringify(sinces)}`,
  );
  assert.equal(await server.metric("ngit_sync_gap_events_total", { relay: relay.key }), 1);
  assert.equal(await server.metric("ngit_sync_events_total", { source: "reconnect" }), 1);
  await until("a warning sums it up", () =>
    server.log.some((line) => line.code === "reconnect-summary" && line.level === "warn"),
  );
});

test("after a long absence everything is compared anew", async (t) => {
  const { relay, server, repository } = await startLivePair(t, { settings: { NGIT_SYNC_STALE_AFTER_SECS: "1" } });
  await relay.stop();
  const old = issueFor(visitor, repository, "very old", { created_at: 1_600_000_000 });
  relay.add(old);
  await until("two dials failed", async () => ((await server.status()).relays[0]?.failures ?? 0) >= 2);
  await relay.listen();
  await until("the old event is here", () => hasAll(server, [old.id]));
  assert.ok(server.log.some((line) => line.code === "stale-reset" && line.level === "info"));
});

test("the daily comparison finds what live never brought, and says so as an error", async (t) => {
  const clock = new PushedClock();
  // A pushed clock on a busy machine leaves little time for answers to pings.
  const patience = { NGIT_SYNC_SILENT_LINK_SECS: "2h" };
  const settings = { NGIT_SYNC_DAILY_MIN_HOURS: "1", NGIT_SYNC_DAILY_MAX_HOURS: "1", ...patience };
  const { relay, server, repository } = await startPair(t, { clock, settings });
  const root = issueFor(visitor, repository, "root");
  const comment = sign(visitor, { kind: 1111, created_at: nowSeconds() - 60, tags: [["e", root.id]], content: "one" });
  await serveRepository(server.store, repository);
  const regretted = sign(visitor, {
    kind: 1111,
    created_at: nowSeconds() - 50,
    tags: [["e", root.id]],
    content: "two",
  });
  await put(server.store, root, comment, regretted);
  await untilLive(server);
  const silent = issueFor(visitor, repository, "never sent live", { created_at: 1_600_000_000 });
  const reply = sign(owner, {
    kind: 1111,
    created_at: nowSeconds(),
    tags: [["e", comment.id]],
    content: "to a comment",
  });
  const deletion = sign(visitor, { kind: 5, created_at: nowSeconds(), tags: [["e", regretted.id]] });
  relay.add(silent, reply, deletion);
  await clock.push(61 * 60_000);
  await until("all three are here", () => hasAll(server, [silent.id, reply.id, deletion.id]));
  assert.equal(await server.store.has(regretted.id), false);
  await until("the round is summed up", () => server.log.some((line) => line.code === "daily-summary"));
  assert.equal(server.log.find((line) => line.code === "daily-summary")?.level, "error");
  assert.equal(relay.connections, 1, "live stayed open");
});

test("more live filters than allowed are made fewer and larger, and nothing is lost", async (t) => {
  const settings = { NGIT_SYNC_MAX_FILTERS: "12", NGIT_SYNC_MAX_TAGS_PER_FILTER: "2" };
  const { relay, server } = await startPair(t, { settings });
  const repositories = Array.from({ length: 20 }, (_, index) =>
    announce(owner, [server.domain], { relays: [relay.url], identifier: `repo-${index}` }),
  );
  for (const repository of repositories) await serveRepository(server.store, repository);
  await untilLive(server);
  await until("few filters", async () => ((await server.metric("ngit_sync_live_filters")) ?? 99) <= 12);
  assert.ok(server.log.some((line) => line.code === "live-consolidated" && line.level === "info"));
  const issues = repositories.map((repository) => issueFor(visitor, repository, "live", { created_at: nowSeconds() }));
  for (const issue of issues) relay.publish(issue);
  await until("each repository's live event is here", () =>
    hasAll(
      server,
      issues.map((issue) => issue.id),
    ),
  );
});

test("a relay that dies at first contact is tried again and then followed", async (t) => {
  const { relay, server, repository } = await startPair(t, { habits: { dieFirst: 2 } });
  const root = issueFor(visitor, repository, "patience");
  relay.add(root);
  await serveRepository(server.store, repository);
  await until("its events are here", () => hasAll(server, [root.id]));
  assert.ok(relay.connections >= 3);
});

test("a relay that limits our rate is left alone for the pause and loses nothing", async (t) => {
  const { relay, server, repository } = await startPair(t, {
    habits: { rateLimitFirst: 2 },
    settings: { NGIT_SYNC_RATE_LIMIT_PAUSE_SECS: "2" },
  });
  const root = issueFor(visitor, repository, "slowly");
  relay.add(root);
  await serveRepository(server.store, repository);
  await until("it is called rate-limited", async () => (await server.metric("ngit_sync_relay_status")) === 4);
  await until("its events are here", () => hasAll(server, [root.id]));
  const times = relay.requests().map(({ atMs }) => atMs);
  const longest = Math.max(...times.map((at, index) => at - (times[index - 1] ?? at)));
  assert.ok(longest >= 1_900, `the longest silence was ${Math.round(longest)} ms`);
  assert.equal(await server.metric("ngit_sync_relay_status"), 1);
});

test("a relay that asks who we are is told, with the server's key", async (t) => {
  const { relay, server, repository } = await startPair(t, { habits: { wantsAuth: true } });
  const root = issueFor(visitor, repository, "for friends");
  relay.add(root);
  await serveRepository(server.store, repository);
  await until("its events are here", () => hasAll(server, [root.id]));
  const information = (await (
    await fetch(`http://${server.domain}/`, { headers: { accept: "application/nostr+json" } })
  ).json()) as { self: string; supported_grasps: string[] };
  assert.equal(relay.authenticatedAs[0], information.self);
  assert.ok(information.supported_grasps.includes("GRASP-02"));
});

test("a relay that no announcement lists any more is closed and forgotten", async (t) => {
  const { relay, server } = await startLivePair(t);
  assert.equal(await server.metric("ngit_sync_relays_connected_total"), 1);
  await serveRepository(server.store, announce(owner, [server.domain], { created_at: nowSeconds() }));
  await until("the link is closed", () => relay.openConnections === 0);
  await until("the relay is forgotten", async () => (await server.status()).relays.length === 0);
  assert.equal(await server.metric("ngit_sync_relays_connected_total"), 0);
  assert.equal(await server.metric("ngit_sync_relays_tracked_total"), 0);
});

test("an address inside our own network is not dialled when strangers name it", async (t) => {
  const { relay, server } = await startPair(t, { settings: { NGIT_TEST: "0" } });
  await serveRepository(server.store, announce(owner, [server.domain], { relays: [relay.url] }));
  await until("the dial failed", async () => ((await server.status()).relays[0]?.failures ?? 0) >= 1);
  assert.equal(relay.connections, 0);
  assert.equal(server.log.find((line) => line.code === "connect-failed")?.kind, "blocked-address");
});
