// The words of relays over real sockets (event-sync.md "Words of relays"): a busy relay, one that finds everything too
// large, one that takes few values, one that promises what it does not send.

import assert from "node:assert/strict";
import { test } from "node:test";
import { owner, startPair, untilLive, visitor } from "../harness/sync-pair.js";
import { announce, idsIn, issueFor, put, serveRepository, startSyncServer, until } from "../harness/sync-server.js";

for (const [negentropyError, result, most] of [
  ["blocked: too many reconciliations are under way: try again later", "busy", 5],
  ["blocked: not for strangers", "busy", 5],
  ["blocked: too many query results", "too-many", 30],
] as const) {
  test(`a relay that answers every NEG-OPEN with "${negentropyError}" is asked by REQ`, async (t) => {
    const { relay, server, repository } = await startPair(t, { habits: { negentropyError } });
    relay.add(issueFor(visitor, repository, "one"), issueFor(visitor, repository, "two"));
    await serveRepository(server.store, repository);
    await until("both are here", async () => (await idsIn(server.store)).length === 3);
    await untilLive(server);
    const opened = relay.requests("NEG-OPEN").length;
    assert.ok(opened <= most, `${opened} sessions`);
    assert.ok(((await server.metric("ngit_sync_negentropy_total", { relay: relay.key, result })) ?? 0) > 0);
    assert.deepEqual(
      server.log.filter((line) => line.code === "negentropy-fallback"),
      [],
    );
  });
}

test("a Holdfast that has no room for reconciliations is understood by another, and all arrives", async (t) => {
  const first = await startSyncServer({ settings: { NGIT_NEGENTROPY_TOTAL_MAX_RECORDS: "1" } });
  t.after(() => first.close());
  const second = await startSyncServer();
  t.after(() => second.close());
  const repository = announce(owner, [first.domain, second.domain]);
  await serveRepository(first.store, repository);
  await put(first.store, ...["one", "two", "three"].map((name) => issueFor(visitor, repository, name)));
  await serveRepository(second.store, repository);
  await until("all are there", async () => (await idsIn(second.store)).length === 4);
  await untilLive(second);
  assert.ok(((await second.metric("ngit_sync_negentropy_total", { result: "busy" })) ?? 0) > 0);
  assert.equal((await second.metric("ngit_sync_negentropy_total", { result: "failed" })) ?? 0, 0);
});

test("a relay that takes two values in a filter is asked for two, is not called rate-limited, and all arrives", async (t) => {
  const { relay, server } = await startPair(t, { habits: { maxValues: 2, negentropy: "error" } });
  const repositories = ["a", "b", "c", "d", "e"].map((identifier) =>
    announce(owner, [server.domain], { relays: [relay.url], identifier }),
  );
  relay.add(...repositories.map((repository) => issueFor(visitor, repository, "a bug")));
  for (const repository of repositories) await serveRepository(server.store, repository);
  await until("all are here", async () => (await idsIn(server.store)).length === 10);
  await untilLive(server);
  assert.equal(await server.metric("ngit_sync_relay_status", { relay: relay.key }), 1);
});

test("events that a relay claims to have and does not send are counted", async (t) => {
  const claimedIds = ["1", "2", "3"].map((digit) => digit.repeat(64));
  const { relay, server, repository } = await startPair(t, { habits: { claimedIds } });
  await serveRepository(server.store, repository);
  await until(
    "they are counted",
    async () => ((await server.metric("ngit_sync_undelivered_ids_total", { relay: relay.key })) ?? 0) >= 3,
  );
  await untilLive(server);
  assert.equal(await server.metric("ngit_sync_relay_connected", { relay: relay.key }), 1);
});
