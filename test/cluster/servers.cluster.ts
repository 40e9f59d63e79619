// Whole servers on one cluster, each request sent to another of them: what one acknowledges the others serve, rules set on
// one bind the others, and one of them does the work of the leader. Git data is not shared here.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { systemClock } from "../../src/base/clock.js";
import { Leadership } from "../../src/cluster/leadership.js";
import { npubOf } from "../../src/nostr/nip19.js";
import type { ClusterStore } from "../../src/store/postgres/open.js";
import { AdminVisitor, authorization } from "../harness/admin-visitor.js";
import { newKey } from "../harness/operator-server.js";
import { keyOf, sign } from "../harness/relay-events.js";
import { acceptAll } from "../harness/relay-server.js";
import { startInProcess, type TestServer, untilSo } from "../harness/server.js";
import { TestPostgres } from "./postgres.js";
import { newFolders, newSchema, openNode } from "./three-nodes.js";

interface Machine {
  readonly node: ClusterStore;
  readonly server: TestServer;
  readonly leadership: Leadership;
}

let postgres: TestPostgres;
const folders = newFolders();
const machines: Machine[] = [];

before(async () => {
  postgres = await TestPostgres.start();
});
after(async () => {
  for (const { server, node } of machines) {
    await server.end();
    await node.close();
  }
  await postgres.dispose();
  folders.dispose();
});

const admin = newKey();

async function start(schema: string, name: string, hasRules: boolean): Promise<Machine> {
  const leadership = new Leadership(systemClock);
  const node = await openNode(postgres, {
    ...{ schema, name, folder: folders.folder(`${schema} ${name}`) },
    leads: (epoch) => leadership.begin(epoch),
    leadsNoMore: () => leadership.end(),
  });
  const settings = {
    NGIT_DOMAIN: "cluster.example.com",
    NGIT_METRICS_ENABLED: "true",
    NGIT_ADMIN_NPUBS: npubOf(admin.pubkey),
  };
  const server = await startInProcess({
    ...{ store: node.store, clock: node.clock, leadership, settings },
    ...(hasRules ? {} : { policy: acceptAll }),
  });
  const machine = { node, server, leadership };
  machines.push(machine);
  return machine;
}

test("what one server acknowledges the next one answers, counts, and sends to those who listen", async () => {
  const schema = newSchema();
  const servers = await Promise.all(["a", "b", "c"].map((name) => start(schema, name, false)));
  const clients = await Promise.all(servers.map(({ server }) => server.connect()));
  const [, listener] = clients;
  assert.ok(listener);
  await listener.ask("live", { kinds: [1, 20_001] });
  const author = keyOf("author");
  for (let round = 0; round < 30; round++) {
    const [one, next] = [clients[round % 3], clients[(round + 1) % 3]];
    const event = sign(author, { content: `${round}` });
    assert.equal((await one?.publish(event))?.[2], true);
    const { events } = (await next?.ask(`q${round}`, { ids: [event.id] })) ?? { events: [] };
    assert.deepEqual(
      events.map(({ id }) => id),
      [event.id],
    );
    const counted = next?.next(([verb]) => verb === "COUNT");
    next?.send("COUNT", "c", { kinds: [1] });
    assert.deepEqual((await counted)?.[2], { count: round + 1 });
  }
  const ephemeral = sign(author, { kind: 20_001, content: "gone" });
  const heard = listener.next(([verb, , event]) => verb === "EVENT" && (event as { id: string }).id === ephemeral.id);
  await clients[2]?.publish(ephemeral);
  await heard;
  await untilSo("all are heard", () => listener.eventsOf("live").length === 31);
  assert.equal(new Set(listener.eventsOf("live").map(({ id }) => id)).size, 31);
  for (const client of clients) await client.close();
});

test("who logs in on one server is logged in on the others until the session ends, and a signature that one took is taken for all", async () => {
  const schema = newSchema();
  const servers = await Promise.all(["a", "b"].map((name) => start(schema, name, false)));
  const publicOrigin = "https://cluster.example.com";
  const [a, b] = servers.map(({ server }) => new AdminVisitor(server.origin));
  assert.ok(a && b);
  const header = authorization(admin, { url: `${publicOrigin}/admin/login` });
  const signedIn = await a.signIn(header, publicOrigin);
  assert.equal(signedIn.status, 200, await signedIn.text());
  a.keepCookie(signedIn);
  b.cookie = a.cookie;
  const again = await b.signIn(header, publicOrigin);
  assert.deepEqual([again.status, await again.text()], [401, "the token was used before\n"]);
  assert.equal((await b.fetch("/admin")).status, 200);
  // What the action came to is told by whichever server shows the next page.
  const form = await b.formToken();
  const done = await a.post("ban", { target: "kind:1", reason: "", form, back: "/admin" }, publicOrigin);
  assert.equal(done.status, 303, await done.text());
  assert.match(await b.page("/admin"), /<p class="said (good|bad)"/);
  assert.doesNotMatch(await a.page("/admin"), /<p class="said/);
  assert.equal((await a.post("/admin/logout", { form }, publicOrigin)).status, 303);
  assert.equal((await b.fetch("/admin")).status, 401);
});

test("a rule that is set on one server binds the next event on another, and one server syncs and hunts", async () => {
  const schema = newSchema();
  const a = await start(schema, "a", true);
  const b = await start(schema, "b", true);
  await untilSo("one leads", () => a.leadership.leads !== b.leadership.leads);
  const metricsOf = async ({ server }: Machine): Promise<string> => (await fetch(`${server.origin}/metrics`)).text();
  const works = async (machine: Machine): Promise<boolean> => {
    const text = await metricsOf(machine);
    return text.includes("purgatory_sync_queue_size") && text.includes("ngit_sync_");
  };
  await untilSo(
    "the leader works",
    async () => (await works(a)) === a.leadership.leads && (await works(b)) === b.leadership.leads,
  );
  const [leads, follows] = a.leadership.leads ? [a, b] : [b, a];
  const owner = keyOf("owner");
  const npub = npubOf(owner.pubkey);
  const announcement = sign(owner, {
    kind: 30_617,
    created_at: Math.floor(Date.now() / 1_000),
    tags: [
      ["d", "x"],
      ["clone", `https://cluster.example.com/${npub}/x.git`, `https://elsewhere.example.com/${npub}/x.git`],
      ["relays", "wss://cluster.example.com"],
    ],
  });
  const visitor = await follows.server.connect();
  assert.match(String((await visitor.publish(announcement))[3]), /^purgatory/);
  const state = sign(owner, {
    kind: 30_618,
    created_at: Math.floor(Date.now() / 1_000),
    tags: [
      ["d", "x"],
      ["refs/heads/main", "ab".repeat(20)],
      ["HEAD", "ref: refs/heads/main"],
    ],
  });
  assert.match(String((await visitor.publish(state))[3]), /^purgatory/);
  await visitor.close();
  await untilSo(
    "the leader hunts for what waits on another",
    async () => /^purgatory_sync_queue_size [1-9]/m.test(await metricsOf(leads)),
    30_000,
  );
  const client = await b.server.connect();
  const issue = (content: string) =>
    sign(keyOf("somebody"), { kind: 1_621, content, created_at: Math.floor(Date.now() / 1_000) });
  const before = (await client.publish(issue("before")))[3];
  await a.node.store.transact(async (tx) => tx.setRow("bans", "kind:1621", { since: 0, reason: "" }));
  const afterwards = (await client.publish(issue("after")))[3];
  assert.notEqual(afterwards, before);
  assert.match(String(afterwards), /kind/);
  await client.close();
  const [leader, other] = a.leadership.leads ? [a, b] : [b, a];
  await leader.server.stop();
  await leader.node.close();
  await untilSo("the other leads", () => other.leadership.leads, 15_000);
  await untilSo("and works", () => works(other));
});
