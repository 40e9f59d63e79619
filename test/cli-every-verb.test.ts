// Every verb there is, run once as an operator would with `--json`, on one server's data: first while it runs, then after
// it was stopped. A new verb without a line here fails the first test.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { cliPage } from "../src/cli/reference-pages.js";
import { npubOf } from "../src/nostr/nip19.js";
import { newKey, OperatorServer } from "./harness/operator-server.js";

/** `serve` is run by every other test; these have tests of their own that need other servers. */
const ranElsewhere = new Set(["serve", "sync", "mirror"]);

/** Help texts by command, without the commands that only group others. */
function leaves(): Map<string, string> {
  const sections = cliPage().split("\n## holdfast").slice(1);
  const texts = sections.map((section) => [section.slice(0, section.indexOf("\n")).trim(), section] as const);
  return new Map(texts.filter(([, help]) => !/^Commands:/m.test(help)));
}

describe("every verb", { timeout: 240_000 }, () => {
  let server: OperatorServer;
  const key = newKey();
  const name = `${npubOf(key.pubkey)}/verbs`;
  const path = (file: string): string => join(server.folder, file);

  const whileRunning = (): Readonly<Record<string, readonly string[]>> => ({
    "config check": [],
    "config show": [],
    "config schema": [],
    "config example": [],
    status: [],
    version: [],
    completion: ["fish"],
    "repos list": ["--status", "served"],
    "repos show": [name],
    "repos fsck": [],
    "repos gc": [name, "--cruft"],
    "purgatory list": [],
    why: [name],
    "lists add": ["repository-blacklist", "unwanted"],
    "lists show": ["repository-blacklist"],
    "lists remove": ["repository-blacklist", "unwanted"],
    ban: ["ip", "192.0.2.1"],
    "lists bans": [],
    unban: ["ip", "192.0.2.1"],
    "admin link": [],
    "admin audit": [],
    "repos delete": [name],
    "repos restore": [name],
    backup: [path("backups")],
    bench: ["--quick", "--folder", server.folder],
  });
  const afterwards = (): Readonly<Record<string, readonly string[]>> => ({
    doctor: [],
    "events export": ["--output", path("all.jsonl")],
    "events scan": [],
    "events delete": ["--filter", '{"kinds":[1]}', "--yes"],
    "events import": [path("all.jsonl")],
    compact: [],
    restore: [path("backups"), "--data-path", path("restored")],
    "repos import": [path("data/git"), "--events", path("all.jsonl"), "--data-path", path("imported")],
  });

  before(async () => {
    server = await OperatorServer.start();
    const client = await server.connect();
    await server.host(client, key, "verbs");
    await client.close();
  });
  after(() => server?.close());

  test("explains itself with an example and knows --json", () => {
    for (const [verb, help] of leaves()) {
      assert.match(help, /\nExamples?:\n {2}holdfast/, verb);
      assert.ok(help.includes("--json") || verb === "serve", verb);
    }
  });

  test("is in the table of this test, and the table names no other", () => {
    const tried = [...Object.keys(whileRunning()), ...Object.keys(afterwards())];
    assert.deepEqual([...leaves().keys()].filter((verb) => !ranElsewhere.has(verb)).sort(), tried.sort());
  });

  test("is offered by completion", async () => {
    const words = await server.json<Record<string, string[]>>("completion", "bash");
    for (const verb of leaves().keys()) {
      const parts = verb.split(" ");
      assert.ok(words[parts.slice(0, -1).join(" ")]?.includes(parts.at(-1) ?? ""), verb);
    }
  });

  test("works while the server runs", async () => {
    for (const [verb, args] of Object.entries(whileRunning())) {
      const ended = await server.verb(...verb.split(" "), ...args, "--json");
      assert.equal(ended.code, 0, `${verb}: ${ended.stdout}${ended.stderr}`);
      assert.ok(JSON.parse(ended.stdout), verb);
    }
  });

  test("works after it was stopped", async () => {
    await server.stop();
    for (const [verb, args] of Object.entries(afterwards())) {
      const ended = await server.verb(...verb.split(" "), ...args, "--json");
      assert.equal(ended.code, 0, `${verb}: ${ended.stdout}${ended.stderr}`);
      const answer = JSON.parse(ended.stdout) as Record<string, unknown>;
      if (verb === "restore") assert.equal(answer.repositories, 1);
      if (verb === "repos import") {
        assert.deepEqual(
          (answer.repositories as { verdict: string }[]).map(({ verdict }) => verdict),
          ["ready"],
        );
      }
    }
  });

  test("that is called wrongly ends with 2 and a sentence, one that cannot do its work with 1", async () => {
    const wrong = await Promise.all([
      server.verb("backup"),
      server.verb("backup", "x", "--keep", "none"),
      server.verb("restore"),
      server.verb("repos", "import", server.folder),
      server.verb("bench", "--fast"),
    ]);
    for (const { code, stderr } of wrong) assert.ok(code === 2 && stderr.length > 0, stderr);
    writeFileSync(path("a-file"), "");
    const failed = await Promise.all([
      server.verb("restore", path("nowhere")),
      server.verb("backup", path("backups"), "--relay-data-path", path("nowhere")),
      server.verb("repos", "import", path("a-file"), "--events", path("all.jsonl")),
      server.verb("backup", path("nowhere"), "--verify-only"),
    ]);
    for (const { code, stderr } of failed) assert.ok(code === 1 && /^holdfast: /.test(stderr), stderr);
  });

  test("draws no progress where nobody sees it", async () => {
    const ended = await server.verb("backup", path("quiet"));
    assert.equal(ended.stderr, "");
    assert.match(ended.stdout, /: \d+ events, 1 repositories, [\d.]+ \w+, verified\n$/);
  });
});
