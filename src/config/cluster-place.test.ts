import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type ClusterSettings, clusterPlace } from "./cluster-place.js";
import { problemText } from "./config.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-place-"));
after(() => rmSync(folder, { recursive: true }));

const url = "postgres://holdfast:passw0rd@db/holdfast";
const usual = {
  databaseUrl: url,
  databaseSchema: "holdfast",
  packStore: { type: "directory", path: "/srv/packs" },
  s3Region: "us-east-1",
} as ClusterSettings;

function fileWith(text: string): string {
  const path = join(folder, `${Math.random()}`);
  writeFileSync(path, text);
  return path;
}

function faultOf(settings: Partial<ClusterSettings>): string {
  const found = clusterPlace({ ...usual, ...settings });
  assert.ok(!found.ok, "a fault was expected");
  return problemText(found.problem);
}

test("the place of a cluster is worked out of the settings; a machine without a name is called by its host's", () => {
  assert.deepEqual(clusterPlace(usual), {
    ok: true,
    value: { url, schema: "holdfast", name: hostname(), packs: { type: "directory", path: "/srv/packs" } },
  });
});

test("secrets may stand in files, with or without the line's end", () => {
  const found = clusterPlace({
    ...usual,
    databaseUrl: undefined,
    databaseUrlFile: fileWith(`${url}\n`),
    nodeName: "one",
    packStore: { type: "s3", bucket: "packs" },
    s3Endpoint: "http://s3:7070",
    s3AccessKeyId: "id",
    s3SecretAccessKeyFile: fileWith("secret"),
  });
  assert.deepEqual(found, {
    ok: true,
    value: {
      ...{ url, schema: "holdfast", name: "one" },
      packs: {
        ...{ type: "s3", bucket: "packs", region: "us-east-1", endpoint: "http://s3:7070" },
        credentials: { accessKeyId: "id", secretAccessKey: "secret" },
      },
    },
  });
});

test("without a key a bucket is asked with what the machine has", () => {
  const found = clusterPlace({ ...usual, packStore: { type: "s3", bucket: "packs" } });
  assert.deepEqual(found.ok && found.value.packs, { type: "s3", bucket: "packs", region: "us-east-1" });
});

test("a file that cannot be read or does not hold what it should is a fault that names the setting and shows nothing of it", () => {
  const byFile = (text: string): string => faultOf({ databaseUrl: undefined, databaseUrlFile: fileWith(text) });
  assert.match(byFile(""), /^NGIT_DATABASE_URL_FILE: .* does not hold one line/);
  assert.match(byFile(`${url}\nmore`), /does not hold one line/);
  assert.match(byFile("http://passw0rd@db"), /^NGIT_DATABASE_URL_FILE: holds no postgres:\/\/ URL/);
  assert.doesNotMatch(byFile("http://passw0rd@db"), /passw0rd/);
  assert.match(faultOf({ databaseUrl: undefined, databaseUrlFile: join(folder, "none") }), /cannot be read \(ENOENT\)/);
  const bucket = { packStore: { type: "s3", bucket: "packs" }, s3AccessKeyId: "id" } as const;
  assert.match(
    faultOf({ ...bucket, s3SecretAccessKeyFile: join(folder, "none") }),
    /^NGIT_S3_SECRET_ACCESS_KEY_FILE: .* cannot be read/,
  );
});

test("the database's URL may name a socket of this machine", () => {
  const socket = "postgres:///holdfast?host=/run/postgresql";
  for (const settings of [{ databaseUrl: socket }, { databaseUrl: undefined, databaseUrlFile: fileWith(socket) }]) {
    const found = clusterPlace({ ...usual, ...settings });
    assert.equal(found.ok && found.value.url, socket);
  }
  for (const wrong of ["postgres:///holdfast", "postgres:///holdfast?host=", "postgres:///hold fast?host=/run"]) {
    assert.match(faultOf({ databaseUrl: wrong }), /holds no postgres:\/\/ URL/, wrong);
  }
});
