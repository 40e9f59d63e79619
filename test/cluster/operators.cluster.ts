// What an operator of several machines does: starts them with settings, looks at them, ends a rolling upgrade. Real servers on a
// real PostgreSQL, with packs in a real S3 server where there is one and in a directory otherwise.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { ClusterStatus } from "../../src/store/postgres/status.js";
import { holdfast } from "../cli/run.js";
import { freePort } from "../harness/free-port.js";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { startInProcess, type TestServer, untilSo } from "../harness/server.js";
import { TestPostgres } from "./postgres.js";
import { noS3, TestS3 } from "./s3-server.js";
import { newFolders, newSchema, serverKey } from "./three-nodes.js";

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
  const { bucket, endpoint = "", credentials } = s3.bucket(name);
  return {
    NGIT_PACK_STORE: `s3:${bucket}`,
    NGIT_S3_ENDPOINT: endpoint,
    NGIT_S3_ACCESS_KEY_ID: credentials?.accessKeyId ?? "",
    NGIT_S3_SECRET_ACCESS_KEY: credentials?.secretAccessKey ?? "",
  };
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
    /^StartRefusal: .* is not the one the other machines use/,
  );
  assert.match(
    await refusalOf({ NGIT_RELAY_OWNER_NSEC: "cd".repeat(32) }),
    /^StartRefusal: the cluster's server key is/,
  );
  const none = await holdfast(["cluster", "status"], { ...settings, NGIT_DATABASE_SCHEMA: "nothing" });
  assert.match(none.stderr, /there is no cluster in schema nothing/);
  const alone = await holdfast(["cluster", "status"], {});
  assert.deepEqual([alone.code, /no cluster is named/.test(alone.stderr)], [2, true]);
});
