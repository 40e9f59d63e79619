// Coming to rest (event-sync.md): everything stored once everywhere, then no traffic but pings.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../harness/free-port.js";
import { sign } from "../harness/relay-events.js";
import { owner, startPair, visitor } from "../harness/sync-pair.js";
import {
  announce,
  coordinateOf,
  idsIn,
  issueFor,
  nowSeconds,
  put,
  type SyncServer,
  serveRepository,
  startSyncServer,
  until,
} from "../harness/sync-server.js";

const bytesOf = async (servers: readonly SyncServer[]): Promise<number> => {
  let sum = 0;
  for (const server of servers) sum += (await server.metric("ngit_sync_bytes_total")) ?? 0;
  return sum;
};

/** Bytes of messages stop growing: pings are no messages. */
async function comesToRest(servers: readonly SyncServer[], quietMs = 1_500): Promise<void> {
  let before = -1;
  let since = performance.now();
  await until("no more traffic", async () => {
    const bytes = await bytesOf(servers);
    if (bytes !== before) since = performance.now();
    before = bytes;
    return performance.now() - since >= quietMs;
  });
}

async function ringOf(count: number, close: (stop: () => Promise<void>) => void): Promise<SyncServer[]> {
  const servers: SyncServer[] = [];
  for (let index = 0; index < count; index++) {
    const server = await startSyncServer();
    close(() => server.close());
    servers.push(server);
  }
  return servers;
}

for (const count of [2, 3]) {
  test(`${count} servers that sync each other hold each event once and come to rest`, async (t) => {
    const servers = await ringOf(count, (stop) => t.after(stop));
    const repository = announce(
      owner,
      servers.map((server) => server.domain),
    );
    const events = servers.flatMap((_, index) => {
      const root = issueFor(visitor, repository, `root at ${index}`);
      const comment = sign(owner, { kind: 1111, created_at: nowSeconds() - 100, tags: [["E", root.id]], content: "c" });
      return [root, comment];
    });
    for (const [index, server] of servers.entries()) {
      await serveRepository(server.store, repository);
      await put(server.store, ...events.slice(index * 2, index * 2 + 2));
    }
    const wanted = [repository, ...events].map((event) => event.id).sort();
    for (const server of servers) {
      await until("all events", async () => JSON.stringify(await idsIn(server.store)) === JSON.stringify(wanted));
    }
    await comesToRest(servers);
    // A live event goes round once and no further.
    const news = sign(visitor, {
      kind: 1111,
      created_at: nowSeconds(),
      tags: [["a", coordinateOf(repository)]],
      content: "n",
    });
    await put((servers[0] as SyncServer).store, news);
    for (const server of servers) await until("the live event", () => server.store.has(news.id));
    await comesToRest(servers);
    for (const server of servers) assert.deepEqual(server.faults, []);
  });
}

test("a relay that echoes everything, and our own server under a second name, change nothing", async (t) => {
  const port = await freePort();
  const { relay, server } = await startPair(t, { habits: { repeats: true }, port });
  const repository = announce(owner, [server.domain], { relays: [relay.url, `ws://localhost:${port}`] });
  const root = issueFor(visitor, repository, "once");
  relay.add(repository, root);
  await serveRepository(server.store, repository);
  await until("the root is here", () => server.store.has(root.id));
  await until("both relays are live", async () => {
    const { relays } = await server.status();
    return relays.length === 2 && relays.every(({ state }) => state === "live");
  });
  relay.publish(sign(visitor, { kind: 1111, created_at: nowSeconds(), tags: [["e", root.id]], content: "echo" }));
  await until("three events", async () => (await idsIn(server.store)).length === 3);
  await comesToRest([server]);
  const heard = relay.heard.length;
  await sleep(300);
  assert.equal(relay.heard.length, heard);
  assert.equal(await server.metric("ngit_sync_events_total"), 2);
});
