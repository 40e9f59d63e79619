// A real server that is restarted beside relays that count what they are asked (event-sync.md "Truth about oneself": a
// restart is a reconnect). The store outlives the server, as one on disk does.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { NostrEvent } from "../../src/nostr/event.js";
import type { Store } from "../../src/store/port.js";
import { hasAll, owner, visitor } from "../harness/sync-pair.js";
import { type HeardMessage, PlainRelay } from "../harness/sync-plain-relay.js";
import {
  announce,
  issueFor,
  nowSeconds,
  put,
  type SyncServer,
  type SyncServerWish,
  serveRepository,
  startSyncServer,
  until,
} from "../harness/sync-server.js";

const keptPrefix = "sync-relay:";

async function keptKeys(store: Store): Promise<string[]> {
  const keys: string[] = [];
  for await (const [key] of store.rows("meta", { prefix: keptPrefix })) keys.push(key);
  return keys;
}

async function changeKept(store: Store, change: (row: object) => object | undefined): Promise<void> {
  for (const key of await keptKeys(store)) {
    const row = change((await store.row<object>("meta", key))!);
    await store.transact(async (tx) => (row ? tx.setRow("meta", key, row) : tx.deleteRow("meta", key)));
  }
}

const untilInStep = (server: SyncServer, relays = 1): Promise<void> =>
  until("in step", async () => {
    const status = await server.status();
    return status.relays.length === relays && status.relays.every((relay) => relay.inStep);
  });

/** Requests for history: live ones have the limit 0, deletions name authors. */
const asksHistory = ({ verb, rest }: HeardMessage): boolean => {
  const filter = rest[1] as { limit?: number; authors?: unknown } | undefined;
  return verb === "NEG-OPEN" || (verb === "REQ" && filter?.limit !== 0 && filter?.authors === undefined);
};
const sinceOf = ({ rest }: HeardMessage): number | undefined => (rest[1] as { since?: number }).since;

/** One relay, one repository, a server that was in step and is closed. */
async function closedBeside(t: TestContext, wish: SyncServerWish = {}) {
  const relay = await PlainRelay.start({ negentropy: "error" });
  t.after(() => relay.stop());
  const server = await startSyncServer(wish);
  const repository = announce(owner, [server.domain], { relays: [relay.url] });
  const issue = issueFor(visitor, repository, "known for long", { created_at: 1_600_000_000 });
  relay.add(repository, issue);
  await serveRepository(server.store, repository);
  await put(server.store, issue);
  await untilInStep(server);
  await server.close();
  return { relay, server, repository };
}

async function again(t: TestContext, { port, store }: SyncServer, wish: SyncServerWish = {}): Promise<SyncServer> {
  const server = await startSyncServer({ port, store, ...wish });
  t.after(() => server.close());
  return server;
}

test("a restart asks a relay for the last hour, and finds what came meanwhile", async (t) => {
  const { relay, server, repository } = await closedBeside(t);
  const missed = issueFor(visitor, repository, "while away", { created_at: nowSeconds() });
  relay.add(missed);
  const before = relay.heard.length;
  const after = await again(t, server);
  await until("what came meanwhile is here", () => hasAll(after, [missed.id]));
  await untilInStep(after);
  const asked = relay.heard.slice(before).filter(asksHistory);
  const isNewItem = ({ rest }: HeardMessage): boolean => JSON.stringify(rest).includes(missed.id);
  const sinces = asked.filter((request) => !isNewItem(request)).map(sinceOf);
  assert.ok(sinces.length >= 5);
  for (const since of sinces) assert.ok(since !== undefined && since >= nowSeconds() - 3_700);
});

for (const [name, change] of Object.entries({
  "a store that is behind what was kept": (row: object) => ({ ...row, position: 1_000_000 }),
  "a store in which nothing was kept": () => undefined,
})) {
  test(`with ${name} a restart is a first connect: old history is found`, async (t) => {
    const { relay, server, repository } = await closedBeside(t);
    await changeKept(server.store, change);
    const old = issueFor(visitor, repository, "from long ago", { created_at: 1_500_000_000 });
    relay.add(old);
    const after = await again(t, server);
    await until("the old event is here", () => hasAll(after, [old.id]));
    assert.equal(await after.metric("ngit_sync_events_total", { source: "startup" }), 1);
  });
}

test("with another white list a restart is a first connect: what was refused may be welcome", async (t) => {
  const { relay, server, repository } = await closedBeside(t);
  const old = issueFor(visitor, repository, "from long ago", { created_at: 1_500_000_000 });
  relay.add(old);
  const after = await again(t, server, { settings: { NGIT_EVENT_BLACKLIST: "a".repeat(64) } });
  await until("the old event is here", () => hasAll(after, [old.id]));
});

test("a restart beside 20 relays asks each for the last hour: a fraction of the events of a first connect", async (t) => {
  const relays = await Promise.all(Array.from({ length: 20 }, () => PlainRelay.start({ negentropy: "error" })));
  t.after(() => Promise.all(relays.map((relay) => relay.stop())));
  const settings = { NGIT_SYNC_MAX_RELAYS_PER_HOST: "100", NGIT_SYNC_DISCONNECT_CHECK_INTERVAL_SECS: "60" };
  let server = await startSyncServer({ settings });
  const { port, store } = server;
  for (let n = 0; n < 2; n++) {
    const mine = relays.slice(n * 10, n * 10 + 10);
    const repository = announce(owner, [server.domain], {
      identifier: `repo-${n}`,
      relays: mine.map(({ url }) => url),
    });
    const issues: NostrEvent[] = [];
    for (let at = 0; at < 60; at++)
      issues.push(issueFor(visitor, repository, `issue ${at}`, { created_at: 1_600_000_000 + at }));
    for (const relay of mine) relay.add(repository, ...issues);
    await serveRepository(store, repository);
    for (const issue of issues) await put(store, issue);
  }
  await untilInStep(server, relays.length);
  await server.close();

  async function counted(): Promise<{ requests: number; withoutSince: number; bytesIn: number }> {
    for (const relay of relays) relay.heard.length = 0;
    server = await startSyncServer({ port, store, settings });
    await untilInStep(server, relays.length);
    const asked = relays.flatMap((relay) => relay.heard).filter(asksHistory);
    const bytesIn = (await server.metric("ngit_sync_bytes_total", { direction: "in" })) ?? 0;
    await server.close();
    const withoutSince = asked.filter((request) => sinceOf(request) === undefined).length;
    return { requests: asked.length, withoutSince, bytesIn };
  }
  const known = await counted();
  await changeKept(store, () => undefined);
  const first = await counted();
  t.diagnostic(`as a reconnect: ${JSON.stringify(known)}; as a first connect: ${JSON.stringify(first)}`);
  assert.equal(known.withoutSince, 0);
  assert.ok(first.withoutSince > 0);
  assert.ok(known.requests < first.requests);
  assert.ok(known.bytesIn * 5 < first.bytesIn);
});
