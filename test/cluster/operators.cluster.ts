// What an operator of several machines does: starts them with settings, looks at them, ends a rolling upgrade. Real servers on a
// real PostgreSQL, with packs in a real S3 server where there is one and in a directory otherwise.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { SecretKey } from "../../src/nostr/keys.js";
import type { ClusterStatus } from "../../src/store/postgres/status.js";
import { holdfast } from "../cli/run.js";
import { freePort } from "../harness/free-port.js";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { newFolder, removeFolder, startInProcess, type TestServer, untilSo } from "../harness/server.js";
import { TestPostgres } from "./postgres.js";
import { noS3, TestS3 } from "./s3-server.js";
import { newFolders, newSchema, openNode, serverKey } from "./three-nodes.js";

let postgres: TestPostgres;
let s3: TestS3 | undefined;
const folders = newFolders();
const closing: (() => Promise<unknown>)[] = [];

before(async () => {
  postgres = await TestPostgres.start();
  if (!noS3) s3 = await TestS3.start();
});
after(async () => {
  for (const close of closing.reverse()) await close();
  await s3?.dispose();
  await postgres.dispose();
  folders.dispose();
});

type Settings = Readonly<Record<string, string>>;

/** Settings of all machines of a new cluster. */
async function newCluster(): Promise<Settings> {
  const schema = newSchema();
  return {
    NGIT_DATABASE_BACKEND: "postgres",
    NGIT_DATABASE_URL: postgres.url(),
    NGIT_DATABASE_SCHEMA: schema,
    NGIT_RELAY_OWNER_NSEC: serverKey,
    ...packsFor(schema),
  };
}

function packsFor(name: string): Settings {
  if (!s3) {
    mkdirSync(folders.folder(name), { recursive: true });
    return { NGIT_PACK_STORE: `directory:${folders.folder(name)}` };
  }
  return s3.settings(name);
}

async function start(name: string, settings: Settings, port?: number): Promise<TestServer> {
  const server = await startInProcess({
    settings: { ...settings, NGIT_NODE_NAME: name },
    ...(port !== undefined && { port }),
  });
  closing.push(() => server.end());
  return server;
}

test("three machines started with settings alone are one server, and operators see which of them answer", async () => {
  const port = await freePort();
  const settings: Settings = { ...(await newCluster()), NGIT_DOMAIN: `127.0.0.1:${port}` };
  const [a, b, c] = await Promise.all([start("one", settings, port), start("two", settings), start("three", settings)]);
  const story = await Story.on(a);
  closing.push(() => story.relay.close());
  const owner = new Person();
  const { tip, work } = await story.hosted(owner, "shared");
  for (const server of [b, c]) {
    const elsewhere = `${server.origin}/${owner.npub}/shared.git`;
    assert.equal(await work.must("ls-remote", elsewhere, "refs/heads/main"), `${tip}\trefs/heads/main`);
    await work.must("clone", "-q", elsewhere, join(server.folder, "clone"));
  }

  const status = async (): Promise<ClusterStatus> => {
    const { code, stdout, stderr } = await holdfast(["cluster", "status", "--json"], settings);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout) as ClusterStatus;
  };
  const { nodes, newest } = await status();
  assert.deepEqual(
    nodes.map(({ name, isAlive }) => [name, isAlive]),
    [
      ["one", true],
      ["three", true],
      ["two", true],
    ],
  );
  assert.equal(nodes.filter(({ leads }) => leads).length, 1);
  assert.ok(newest > 0);
  const words = await holdfast(["cluster", "status"], settings);
  assert.match(words.stdout, /machines +3 of 3 alive/);
  assert.match(await (await fetch(`${b.origin}/status`)).text(), /<b>3 of 3<\/b> machines answer/);
  const metrics = await (await fetch(`${b.origin}/metrics`)).text();
  assert.match(metrics, /^ngit_cluster_nodes\{state="alive"\} 3$/m);
  assert.match(metrics, /^ngit_cluster_pack_store_requests_total\{operation="fetch",outcome="ok"\} [1-9]/m);

  const examined = await holdfast(["doctor"], settings);
  assert.match(examined.stdout, /^ok +database +cluster .*, 3 machines$/m);
  assert.match(examined.stdout, /^ok +pack store +the .* of cluster /m);

  const upgraded = await holdfast(["cluster", "upgrade", "--json"], settings);
  assert.deepEqual(JSON.parse(upgraded.stdout), { ok: true, format: 1, raised: false });
  // A machine that reads less than this version keeps the cluster at what it reads.
  const schema = settings.NGIT_DATABASE_SCHEMA ?? "";
  await postgres.sql(`UPDATE ${schema}.format SET format = 0`);
  await postgres.sql(
    `INSERT INTO ${schema}.node (node, name, version, format, applied) VALUES (gen_random_uuid(), 'old', '0.0.9', 0, 0)`,
  );
  const refused = await holdfast(["cluster", "upgrade"], settings);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /old \(0\.0\.9\) cannot read format 1: install this version there/);
  await postgres.sql(`UPDATE ${schema}.node SET seen = seen - interval '1 hour' WHERE name = 'old'`);
  assert.match((await holdfast(["cluster", "upgrade"], settings)).stdout, /all machines write format 1/);

  await c.stop();
  await untilSo(
    "the third is missed",
    async () => (await status()).nodes.filter(({ isAlive }) => isAlive).length === 2,
  );
  const offline = await holdfast(["purgatory", "list"], {
    ...settings,
    NGIT_GIT_DATA_PATH: c.gitPath,
    NGIT_RELAY_DATA_PATH: join(c.folder, "relay"),
  });
  assert.equal(offline.code, 1);
  assert.match(offline.stderr, /part of a cluster, and its server does not run: start it/);
});

test("a machine that was taken away is forgotten by an operator at once, and by the leader after a day", async () => {
  const settings = await newCluster();
  const schema = settings.NGIT_DATABASE_SCHEMA ?? "";
  const one = await start("one", settings);
  const [two, three] = await Promise.all([start("two", settings), start("three", settings)]);
  const names = async (): Promise<string[]> => {
    const { stdout } = await holdfast(["cluster", "status", "--json"], settings);
    return (JSON.parse(stdout) as ClusterStatus).nodes.map(({ name }) => name);
  };
  const alive = await holdfast(["cluster", "forget", "two"], settings);
  assert.deepEqual([alive.code, /two is alive: stop it first/.test(alive.stderr)], [1, true], alive.stderr);
  await Promise.all([two.stop(), three.stop()]);
  const { pubkey } = SecretKey.fromHex(serverKey) ?? assert.fail();
  const watcher = await openNode(postgres, {
    ...{ schema, folder: folders.folder(`${schema} watcher`), name: "watcher", serverKey: pubkey, mayLead: false },
  });
  closing.push(() => watcher.close());
  // What a machine leaves that was killed and not stopped.
  const [gone] = await postgres.sql(`SELECT node FROM ${schema}.node WHERE name = 'three'`);
  const key = `node-settings:${String(gone?.node)}`;
  await watcher.store.transact(async (tx) => tx.setRow("meta", key, { name: "three", digests: {} }));
  await postgres.sql(`UPDATE ${schema}.node SET seen = seen - interval '20 seconds' WHERE name = 'two'`);
  const forgotten = await holdfast(["cluster", "forget", "two"], settings);
  assert.equal(forgotten.code, 0, forgotten.stderr);
  assert.deepEqual(await names(), ["one", "three", "watcher"]);
  await postgres.sql(`UPDATE ${schema}.node SET seen = seen - interval '25 hours' WHERE name = 'three'`);
  await untilSo("the leader forgets it", async () => (await names()).join() === "one,watcher");
  await untilSo("with its settings", async () => (await watcher.store.row("meta", key)) === undefined);
  const metrics = async (): Promise<string> => (await fetch(`${one.origin}/metrics`)).text();
  await untilSo("nobody is missed", async () => /^ngit_cluster_nodes\{state="silent"\} 0$/m.test(await metrics()));
});

test("a machine that cannot take part says why at its start and leaves nothing open", async () => {
  const settings = await newCluster();
  const refusalOf = (more: Settings): Promise<string> =>
    startInProcess({ settings: { ...settings, ...more } }).then(
      async (server) => {
        await server.end();
        return "it started";
      },
      (error: Error) => `${error.name}: ${error.message}`,
    );
  assert.match(await refusalOf({ NGIT_DATABASE_URL: "postgres://h@127.0.0.1:1/x" }), /^StartRefusal: .*127\.0\.0\.1:1/);
  assert.match(
    await refusalOf({ NGIT_PACK_STORE: `directory:${folders.folder("nowhere")}` }),
    /^StartRefusal: the directory .* does not answer/,
  );
  await start("one", settings);
  mkdirSync(folders.folder("unshared"));
  assert.match(
    await refusalOf({ NGIT_PACK_STORE: `directory:${folders.folder("unshared")}` }),
    /^StartRefusal: .* is not the one the other machines use.*\(pack-store-not-shared\)$/,
  );
  assert.match(
    await refusalOf({ NGIT_RELAY_OWNER_NSEC: "cd".repeat(32) }),
    /^StartRefusal: the cluster's server key is/,
  );
  const unwell = await holdfast(["doctor"], { ...settings, NGIT_DATABASE_URL: "postgres://h@127.0.0.1:1/x" });
  assert.match(unwell.stdout, /^bad +database +.*127\.0\.0\.1:1/m);
  const none = await holdfast(["cluster", "status"], { ...settings, NGIT_DATABASE_SCHEMA: "nothing" });
  assert.match(none.stderr, /there is no cluster in schema nothing/);
  const alone = await holdfast(["cluster", "status"], {});
  assert.deepEqual([alone.code, /no cluster is named/.test(alone.stderr)], [2, true]);
});

test("a single server joins with all it has, another machine follows, and a machine that leaves is a single server again", async () => {
  const port = await freePort();
  const folder = await newFolder();
  closing.push(() => removeFolder(folder));
  const own = { NGIT_RELAY_OWNER_NSEC: serverKey, NGIT_DOMAIN: `127.0.0.1:${port}` };
  const alone = await startInProcess({ backend: "lmdb", folder, port, settings: own });
  closing.push(() => alone.stop());
  const before = await Story.on(alone);
  const owner = new Person();
  const { work, tip } = await before.hosted(owner, "moved");
  const banned = await before.accepted(owner.sign(1621, [["a", `30617:${owner.pubkey}:moved`]], "an issue"));
  await before.accepted(owner.sign(5, [["e", banned.id]]));
  const claimed = await work.commit("before its event");
  const proposal = owner.sign(1618, [
    ["a", `30617:${owner.pubkey}:moved`],
    ["c", claimed],
    ["clone", before.url(owner, "moved")],
  ]);
  await work.must("push", "-q", before.url(owner, "moved"), `HEAD:refs/nostr/${proposal.id}`);
  const has = async (server: TestServer): Promise<void> => {
    const url = `${server.origin}/${owner.npub}/moved.git`;
    const refs = await work.must("ls-remote", url);
    assert.ok(refs.includes(`${tip}\trefs/heads/main`), refs);
    const clone = await newFolder();
    closing.push(() => removeFolder(clone));
    await work.must("clone", "-q", url, join(clone, "moved"));
    const client = await server.connect();
    const { events } = await client.ask("q", { authors: [owner.pubkey] });
    assert.deepEqual((events as SignedEvent[]).map(({ kind }) => kind).sort(), [30617, 30618, 5].sort());
    // What was deleted before stays deleted.
    assert.match(String((await client.publish(banned))[3]), /deleted/);
    await client.close();
  };
  await has(alone);
  await before.relay.close();

  const settings: Settings = { ...(await newCluster()), ...own };
  const here = { NGIT_GIT_DATA_PATH: join(folder, "git"), NGIT_RELAY_DATA_PATH: join(folder, "relay") };
  const running = await holdfast(["cluster", "join"], { ...settings, ...here });
  assert.match(running.stderr, /is in use by process/);
  await alone.stop();
  if (s3) {
    // What cannot be done now changes nothing, and is done again.
    await s3.stop();
    const failed = await holdfast(["cluster", "join"], { ...settings, ...here });
    assert.deepEqual([failed.code, /does not answer/.test(failed.stderr)], [1, true], failed.stderr);
    await s3.run();
    await (await startInProcess({ backend: "lmdb", folder, settings: own })).stop();
  }
  const joined = await holdfast(["cluster", "join", "--json"], { ...settings, ...here });
  assert.equal(joined.code, 0, joined.stdout);
  const again = await holdfast(["cluster", "join"], { ...settings, ...here });
  assert.match(again.stderr, /is part of a cluster already: start the server/);
  const asBefore = await holdfast(["status"], { ...own, ...here });
  assert.notEqual(asBefore.code, 0);
  await assert.rejects(
    startInProcess({ backend: "lmdb", folder, settings: own }),
    /belongs to a machine of a cluster: set NGIT_DATABASE_BACKEND=postgres/,
  );

  const first = await startInProcess({ folder, port, settings: { ...settings, NGIT_NODE_NAME: "first" } });
  closing.push(() => first.stop());
  const second = await start("second", settings);
  await has(first);
  await has(second);

  // A backup of any machine is a whole server of its own.
  const collection = folders.folder("backups");
  const away = { NGIT_GIT_DATA_PATH: second.gitPath, NGIT_RELAY_DATA_PATH: join(second.folder, "relay") };
  const backedUp = await holdfast(["backup", collection, "--json"], { ...settings, ...away });
  assert.equal(backedUp.code, 0, backedUp.stdout + backedUp.stderr);
  const restoredTo = await newFolder();
  closing.push(() => removeFolder(restoredTo));
  const elsewhere = { NGIT_GIT_DATA_PATH: join(restoredTo, "git"), NGIT_RELAY_DATA_PATH: join(restoredTo, "relay") };
  const restored = await holdfast(["restore", collection, "--json"], { ...own, ...elsewhere });
  assert.equal(restored.code, 0, restored.stdout + restored.stderr);
  const ofBackup = await startInProcess({ backend: "lmdb", folder: restoredTo, settings: own });
  await has(ofBackup);
  await ofBackup.stop();

  await first.stop();
  await second.stop();
  const there = { NGIT_GIT_DATA_PATH: second.gitPath, NGIT_RELAY_DATA_PATH: join(second.folder, "relay") };
  const left = await holdfast(["cluster", "leave", "--json"], { ...settings, ...there });
  assert.equal(left.code, 0, left.stdout + left.stderr);
  const single = await startInProcess({ backend: "lmdb", folder: second.folder, settings: own });
  await has(single);
  // The data of an event that nobody knew went in and out with the rest.
  const after = await Story.on(single);
  await after.accepted(proposal);
  assert.equal(await after.isServed(proposal), true);
  await after.relay.close();
  await single.stop();
  const { stdout } = await holdfast(["cluster", "status", "--json"], settings);
  assert.deepEqual(
    (JSON.parse(stdout) as ClusterStatus).nodes.map(({ name }) => name),
    ["first"],
  );

  const other: Settings = { ...settings, ...(await newCluster()), NGIT_DOMAIN: own.NGIT_DOMAIN };
  const taken = await start("elsewhere", other);
  const refused = await holdfast(["cluster", "join"], { ...other, ...there });
  assert.match(refused.stderr, /has data of its own/);
  await taken.stop();
});
