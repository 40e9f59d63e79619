// First contact (event-sync.md "History", "Connections"): Holdfast against Holdfast and against plain relays.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RelayClient } from "../harness/relay-client.js";
import { keyOf, sign } from "../harness/relay-events.js";
import { owner, startPair, visitor } from "../harness/sync-pair.js";
import { PlainRelay } from "../harness/sync-plain-relay.js";
import {
  announce,
  coordinateOf,
  idsIn,
  issueFor,
  isWaiting,
  nowSeconds,
  put,
  serveRepository,
  startSyncServer,
  until,
} from "../harness/sync-server.js";

test("a server fetches by negentropy what another Holdfast has about their common repositories", async (t) => {
  const first = await startSyncServer();
  t.after(() => first.close());
  const second = await startSyncServer();
  t.after(() => second.close());
  const repository = announce(owner, [first.domain, second.domain]);
  const root = issueFor(visitor, repository, "a bug");
  const comment = sign(owner, { kind: 1111, created_at: nowSeconds() - 400, tags: [["E", root.id]], content: "true" });
  await serveRepository(first.store, repository);
  await put(first.store, root, comment);
  await serveRepository(second.store, repository);
  await until("both hold the same events", async () => {
    const wanted = await idsIn(first.store);
    return JSON.stringify(await idsIn(second.store)) === JSON.stringify(wanted) && wanted.length === 3;
  });
  assert.equal(await second.metric("ngit_sync_events_total", { source: "startup" }), 2);
  assert.ok(((await second.metric("ngit_sync_negentropy_total", { result: "ok" })) ?? 0) > 0);
  assert.deepEqual(second.faults, []);
});

for (const [name, habits] of [
  ["says NOTICE to negentropy", { negentropy: "notice" }],
  ["answers NEG-OPEN with an error", { negentropy: "error" }],
] as const) {
  test(`history comes page by page from a relay that ${name}, and the log says so once`, async (t) => {
    const { relay, server, repository } = await startPair(t, { habits: habits });
    const root = issueFor(visitor, repository, "from the relay");
    relay.add(
      root,
      sign(visitor, { kind: 1111, created_at: nowSeconds(), tags: [["e", root.id]], content: "and more" }),
    );
    await serveRepository(server.store, repository);
    await until("both events are here", async () => (await idsIn(server.store)).length === 3);
    await until("the relay is live", async () => (await server.status()).relays[0]?.state === "live");
    const lines = server.log.filter((line) => line.code === "negentropy-fallback");
    assert.equal(lines.length, 1);
    assert.equal(lines[0]?.level, "warn");
  });
}

test("every way to point at a repository or a root is followed", async (t) => {
  const { relay, server, repository } = await startPair(t);
  const root = issueFor(visitor, repository, "root");
  const wanted = [
    root,
    ...["a", "A", "q"].map((tag) =>
      sign(visitor, { kind: 1111, created_at: nowSeconds(), tags: [[tag, coordinateOf(repository)]], content: tag }),
    ),
    ...["e", "E", "q"].map((tag) =>
      sign(visitor, { kind: 1111, created_at: nowSeconds(), tags: [[tag, root.id]], content: tag }),
    ),
  ];
  const stranger = sign(visitor, { kind: 1621, created_at: nowSeconds(), tags: [["a", `30617:${owner.pubkey}:else`]] });
  relay.add(...wanted, stranger);
  await serveRepository(server.store, repository);
  const expected = [repository, ...wanted].map((event) => event.id).sort();
  await until("all seven are here", async () => (await idsIn(server.store)).length >= expected.length);
  assert.deepEqual(await idsIn(server.store), expected);
});

test("with nothing but a bootstrap relay, announcements that list us are found, and their states", async (t) => {
  const { relay, server } = await startPair(t, { asBootstrap: true });
  const repository = announce(owner, [server.domain]);
  const elsewhere = announce(keyOf("somebody else"), ["git.example.com"]);
  const state = sign(owner, {
    kind: 30618,
    created_at: nowSeconds(),
    tags: [
      ["d", "repo"],
      ["refs/heads/main", "1".repeat(40)],
      ["HEAD", "ref: refs/heads/main"],
    ],
  });
  relay.add(repository, elsewhere, state);
  // The first look was before the events were there; a new link finds them.
  relay.drop();
  await until("the announcement waits for its git data", () => isWaiting(server.store, repository.id));
  await until("so does its state", () => isWaiting(server.store, state.id));
  assert.equal(await isWaiting(server.store, elsewhere.id), false);
  assert.equal(await server.store.has(elsewhere.id as never), false);
});

test("relays are discovered from announcements alone, also from those that wait", async (t) => {
  const listed = await PlainRelay.start();
  t.after(() => listed.stop());
  const server = await startSyncServer();
  t.after(() => server.close());
  const state = sign(owner, {
    kind: 30618,
    created_at: nowSeconds(),
    tags: [
      ["d", "repo"],
      ["refs/heads/main", "2".repeat(40)],
    ],
  });
  listed.add(state);
  const client = await RelayClient.connect(server.url);
  const { raw: _raw, ...announcement } = announce(owner, [server.domain], { relays: [listed.url] });
  const [, , ok] = await client.publish(announcement);
  await client.close();
  assert.equal(ok, true);
  await until("the waiting repository's state is here", () => isWaiting(server.store, state.id));
  const [relay] = (await server.status()).relays;
  assert.equal(relay?.relay, listed.key);
});
