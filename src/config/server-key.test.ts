import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Config } from "./config.js";
import { problemText } from "./config.js";
import { loadConfig } from "./load.js";
import { loadServerKey } from "./server-key.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-key-"));
after(() => rmSync(folder, { recursive: true }));

function config(environment: Record<string, string>): Config {
  const surroundings = { logIsTerminal: false, cores: 1 };
  const loaded = loadConfig({ flags: {}, environment, configPath: undefined, readFile: () => "", surroundings });
  assert.ok(loaded.ok);
  return loaded.config;
}

test("a key is made once, readable by its owner only, and found again", () => {
  const path = join(folder, "made");
  const first = loadServerKey(config({ NGIT_RELAY_DATA_PATH: path }));
  const second = loadServerKey(config({ NGIT_RELAY_DATA_PATH: path }));
  assert.ok(first.ok && second.ok);
  assert.deepEqual([first.madeNow, second.madeNow], [true, false]);
  assert.equal(first.secretHex, second.secretHex);
  assert.match(first.secretHex, /^[0-9a-f]{64}$/);
  assert.equal(statSync(join(path, "server.key")).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(path), ["server.key"]);
});

test("the memory backend writes no key", () => {
  const path = join(folder, "memory");
  const key = loadServerKey(config({ NGIT_RELAY_DATA_PATH: path, NGIT_DATABASE_BACKEND: "memory" }));
  assert.ok(key.ok);
  assert.ok(!existsSync(path));
});

test("a key file is read, and a bad one is refused without showing what is in it", () => {
  const path = join(folder, "nsec");
  writeFileSync(path, `${"22".repeat(32)}\n`);
  const good = loadServerKey(config({ NGIT_RELAY_OWNER_NSEC: `file:${path}` }));
  assert.ok(good.ok && good.secretHex === "22".repeat(32));
  writeFileSync(path, "nsec1mistyped");
  const bad = loadServerKey(config({ NGIT_RELAY_OWNER_NSEC: `file:${path}` }));
  assert.ok(!bad.ok);
  assert.match(problemText(bad.problem), /^NGIT_RELAY_OWNER_NSEC: .*holds no nsec/);
  assert.doesNotMatch(problemText(bad.problem), /mistyped/);
});

test("systemd's credential comes before the variable and the variable before the file; an empty one stops the start", () => {
  const credentials = join(folder, "credentials");
  const NGIT_RELAY_DATA_PATH = join(folder, "ordered");
  mkdirSync(credentials);
  const path = join(credentials, "relay_owner_nsec");
  const secretOf = (environment: Record<string, string>): string => {
    const key = loadServerKey(config({ NGIT_RELAY_DATA_PATH, ...environment }));
    assert.ok(key.ok);
    return key.secretHex;
  };
  const variable = { NGIT_RELAY_OWNER_NSEC: "33".repeat(32) };
  const credential = { CREDENTIALS_DIRECTORY: credentials };
  assert.equal(secretOf({ ...credential, ...variable }), "33".repeat(32), "there is no such credential");
  writeFileSync(path, "22".repeat(32));
  assert.equal(secretOf({ ...credential, ...variable }), "22".repeat(32));
  assert.equal(secretOf(variable), "33".repeat(32));
  assert.notEqual(secretOf({}), "33".repeat(32));
  for (const content of ["", "\n", "nsec1mistyped"]) {
    writeFileSync(path, content);
    const bad = loadServerKey(config({ NGIT_RELAY_DATA_PATH, ...credential, ...variable }));
    assert.ok(!bad.ok, content);
    assert.match(problemText(bad.problem), /relay_owner_nsec.* holds no nsec/);
  }
  const surroundings = { logIsTerminal: false, cores: 1 };
  const environment = { NGIT_RELAY_OWNER_NSEC: " " };
  const loaded = loadConfig({ flags: {}, environment, configPath: undefined, readFile: () => "", surroundings });
  assert.ok(!loaded.ok);
  assert.match(loaded.problems.map(problemText).join(), /^NGIT_RELAY_OWNER_NSEC: must be an nsec/);
});
