// `holdfast sync`: one comparison with one relay, here on the store of a server at rest (a running one is in
// archive-life.test.ts).

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { systemClock } from "../../src/base/clock.js";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import { type Ended, holdfast as runHoldfast } from "../cli/run.js";
import { keyOf } from "../harness/relay-events.js";
import { PlainRelay } from "../harness/sync-plain-relay.js";
import { announce, idsIn, issueFor, put, serveRepository, startSyncServer } from "../harness/sync-server.js";

const owner = keyOf("owner");
const visitor = keyOf("visitor");
const domain = "git.example.com";

const holdfast = (folder: string, ...args: string[]): Promise<Ended> =>
  runHoldfast(args, { NGIT_DATA_PATH: folder, NGIT_DOMAIN: domain });

test("what either side lacks is brought over, and refusals are counted by their reason", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "sync-cli-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const server = await startSyncServer();
  t.after(() => server.close());
  const repository = announce(owner, [domain, server.domain]);
  const here = issueFor(visitor, repository, "only here");
  const there = issueFor(visitor, repository, "only there");
  const elsewhere = announce(visitor, [server.domain], { identifier: "not ours" });
  await serveRepository(server.store, repository);
  await serveRepository(server.store, elsewhere);
  await put(server.store, there);
  const before = await openLmdbStore(join(folder, "relay"), { clock: systemClock });
  await serveRepository(before, repository);
  await put(before, here);
  await before.close();

  const ended = await holdfast(folder, "sync", server.url, "--dir", "both", "--json");
  assert.equal(ended.code, 0, ended.stderr + ended.stdout);
  assert.deepEqual(JSON.parse(ended.stdout), {
    ok: true,
    relay: server.url,
    missingHere: 2,
    missingThere: 1,
    stored: 1,
    known: 0,
    sent: 1,
    refusedHere: { "service-not-listed": 1 },
    refusedThere: 0,
  });
  assert.ok(await server.store.has(here.id));
  const after = await openLmdbStore(join(folder, "relay"), { clock: systemClock });
  assert.deepEqual(await idsIn(after), [repository, here, there].map((event) => event.id).sort());
  await after.close();

  const narrow = await holdfast(folder, "sync", server.url, "--filter", '{"kinds":[1621]}');
  assert.equal(narrow.stdout, "missing here 0: 0 taken, 0 known already\nmissing there 0: 0 sent, 0 refused\n");
});

test("wrong arguments exit 2; a relay that cannot reconcile or is not there exits 1 and says so", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "sync-cli-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const relay = await PlainRelay.start();
  t.after(() => relay.stop());
  await (await openLmdbStore(join(folder, "relay"), { clock: systemClock })).close();
  const wrong = await holdfast(folder, "sync", relay.url, "--dir", "sideways");
  assert.deepEqual([wrong.code, /Allowed choices are up, down, both/.test(wrong.stderr)], [2, true]);
  const noRelay = await holdfast(folder, "sync", "http://example.com");
  assert.deepEqual([noRelay.code, /is no relay/.test(noRelay.stderr)], [2, true]);
  const plain = await holdfast(folder, "sync", relay.url, "--json");
  assert.equal(plain.code, 1);
  assert.match((JSON.parse(plain.stdout) as { error: string }).error, /does not reconcile/);
  await relay.stop();
  const gone = await holdfast(folder, "sync", relay.url);
  assert.deepEqual([gone.code, /cannot be reached/.test(gone.stderr)], [1, true]);
});
