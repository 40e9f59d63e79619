// What happens to events that arrive (event-sync.md "What happens to an event that arrives", "History" 4).

import assert from "node:assert/strict";
import { test } from "node:test";
import { RelayClient } from "../harness/relay-client.js";
import { keyOf, sign } from "../harness/relay-events.js";
import { owner, startLivePair, startPair, untilLive, visitor } from "../harness/sync-pair.js";
import { PlainRelay } from "../harness/sync-plain-relay.js";
import { pushPlaceholder } from "../harness/sync-push.js";
import {
  announce,
  idsIn,
  issueFor,
  isWaiting,
  nowSeconds,
  type SyncServer,
  serveRepository,
  startSyncServer,
  until,
} from "../harness/sync-server.js";

const late = keyOf("late maintainer");
const has = (server: SyncServer, id: string): Promise<boolean> => server.store.has(id as never);

test("fifteen hundred events come complete from a relay of hundred-event pages, three hundred of them in one second", async (t) => {
  const { relay, server } = await startPair(t, { habits: { pageEvents: 100, negentropy: "notice" } });
  // Distinct repositories, so that one second's events can be told apart by tag values.
  const repositories = Array.from({ length: 30 }, (_, index) =>
    announce(owner, [server.domain], { relays: [relay.url], identifier: `repo-${index}` }),
  );
  const start = nowSeconds() - 1_000_000;
  const events = Array.from({ length: 1_500 }, (_, index) => {
    const repository = repositories[index % repositories.length] as (typeof repositories)[number];
    const created_at = index < 300 ? start : start + Math.floor(index / 3);
    return issueFor(visitor, repository, `issue ${index}`, { created_at });
  });
  relay.add(...events);
  for (const repository of repositories) await serveRepository(server.store, repository);
  const held = async (): Promise<number> => (await idsIn(server.store, { kinds: [1621] })).length;
  await until("all are here", async () => (await held()) === events.length, 180_000);
  assert.equal(await server.metric("ngit_sync_unpageable_total"), 0);
});

test("a second that cannot be divided is reported, never passed over in silence", async (t) => {
  const { relay, server, repository } = await startPair(t, { habits: { pageEvents: 100, negentropy: "notice" } });
  const second = nowSeconds() - 5_000;
  relay.add(
    ...Array.from({ length: 150 }, (_, index) =>
      issueFor(visitor, repository, `same ${index}`, { created_at: second }),
    ),
    issueFor(visitor, repository, "older", { created_at: second - 10 }),
  );
  await serveRepository(server.store, repository);
  await until("it is counted", async () => ((await server.metric("ngit_sync_unpageable_total")) ?? 0) > 0);
  assert.ok(server.log.some((line) => line.code === "unpageable" && line.level === "warn"));
});

test("live events arrive in whatever order and are stored once, with the lag observed", async (t) => {
  const { relay, server, repository } = await startLivePair(t, { habits: { repeats: true } });
  const root = issueFor(visitor, repository, "root", { created_at: nowSeconds() });
  // Each points at the one after it: until that comes they are about nothing known here.
  const comment = sign(visitor, {
    kind: 1111,
    created_at: nowSeconds(),
    tags: [
      ["e", root.id],
      ["a", `30617:${owner.pubkey}:repo`],
    ],
  });
  const reply = sign(owner, {
    kind: 1111,
    created_at: nowSeconds(),
    tags: [
      ["e", comment.id],
      ["E", root.id],
    ],
  });
  relay.publish(reply);
  relay.publish(comment);
  relay.publish(root);
  await until("comment and root are here", async () => (await has(server, root.id)) && has(server, comment.id));
  await until("so is the reply", () => has(server, reply.id));
  assert.ok(((await server.metric("ngit_sync_live_lag_seconds_count")) ?? 0) >= 2);
  assert.ok(server.log.some((line) => line.message === "a live event" && line.level === "debug"));
  assert.deepEqual(server.faults, []);
});

test("a late maintainer makes what was refused before valid: at once, and after the event itself was forgotten", async (t) => {
  for (const hotSeconds of ["120", "0"]) {
    const { relay, server, repository } = await startPair(t, {
      settings: { NGIT_REJECTED_HOT_CACHE_DURATION_SECS: hotSeconds },
    });
    const theirs = announce(late, ["git.example.com"], { created_at: nowSeconds() - 100 });
    relay.add(theirs);
    await serveRepository(server.store, repository);
    await until(
      "the stranger's announcement was refused",
      async () => (await server.metric("ngit_sync_remembered", { tier: "cold" })) === 1,
    );
    assert.equal(await has(server, theirs.id), false);
    const client = await RelayClient.connect(server.url);
    const tags = [["maintainers", late.pubkey]];
    const { raw: _raw, ...newer } = announce(owner, [server.domain], {
      relays: [relay.url],
      created_at: nowSeconds(),
      tags,
    });
    assert.equal((await client.publish(newer))[2], true);
    await client.close();
    await until(`it is accepted (hot for ${hotSeconds} s)`, () => has(server, theirs.id));
    assert.equal(await server.metric("ngit_sync_remembered", { tier: "cold" }), 0);
    await server.close();
  }
});

test("what was refused is not fetched again after a restart", async (t) => {
  const relay = await PlainRelay.start();
  t.after(() => relay.stop());
  const first = await startSyncServer({ bootstrap: [relay.url] });
  const strange = announce(visitor, ["git.example.com"]);
  relay.publish(strange);
  relay.drop();
  await until("it was refused", async () => (await first.metric("ngit_sync_remembered", { tier: "cold" })) === 1);
  await first.close();
  const second = await startSyncServer({ bootstrap: [relay.url], port: first.port, store: first.store });
  t.after(() => second.close());
  await untilLive(second);
  assert.equal(await second.metric("ngit_sync_remembered", { tier: "cold" }), 1);
  assert.equal(await second.metric("ngit_events_received_total"), undefined);
});

test("a repository's budget of new events holds, and the log says so", async (t) => {
  const { relay, server, repository } = await startLivePair(t, {
    settings: { NGIT_SYNC_MAX_EVENTS_PER_REPOSITORY_PER_DAY: "20" },
  });
  const flood = (from: number): void => {
    for (let index = from; index < from + 30; index++) {
      relay.publish(issueFor(visitor, repository, `flood ${index}`, { created_at: nowSeconds() }));
    }
  };
  flood(0);
  await until("the budget is hit", () =>
    server.log.some((line) => line.code === "repository-budget-hit" && line.level === "warn"),
  );
  flood(30);
  await until("more is dropped", async () => ((await server.metric("ngit_sync_dropped_events_total")) ?? 0) > 0);
  assert.equal((await idsIn(server.store, { kinds: [1621] })).length, 20);
});

test("events nobody asked for are dropped and counted", async (t) => {
  const { relay, server } = await startPair(t, { asBootstrap: true });
  await untilLive(server);
  const before = relay.events.length;
  relay.pushUnasked(sign(visitor, { kind: 1, created_at: nowSeconds(), content: "buy" }));
  assert.equal(relay.events.length, before);
  await until(
    "it is counted",
    async () => (await server.metric("ngit_sync_dropped_events_total", { reason: "not-asked" })) === 1,
  );
});

test("the event of data pushed before it is asked for by its id", async (t) => {
  const { relay, server } = await startPair(t);
  const client = await RelayClient.connect(server.url);
  const { raw: _raw, ...announcement } = announce(owner, [server.domain], { relays: [relay.url] });
  assert.equal((await client.publish(announcement))[2], true);
  await client.close();
  await untilLive(server);
  const address = ["a", `30617:${owner.pubkey}:repo`];
  const pull = sign(visitor, { kind: 1618, created_at: 1_600_000_000, tags: [address, ["c", "3".repeat(40)]] });
  relay.add(pull);
  await pushPlaceholder(server, owner, "repo", pull.id);
  await until("it waits here", () => isWaiting(server.store, pull.id));
  const asked = relay.requests().flatMap(({ rest }) => rest.slice(1) as { ids?: string[] }[]);
  assert.ok(asked.some((filter) => filter.ids?.includes(pull.id)));
});
