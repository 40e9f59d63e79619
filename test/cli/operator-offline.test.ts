// Operator verbs while no server runs, and what they did after it starts again.

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { NostrEvent } from "../../src/nostr/event.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import { newKey, OperatorServer, signed } from "../harness/operator-server.js";

let server: OperatorServer;
const key = newKey();
const spammer = newKey();
const npub = npubOf(key.pubkey);
let hosted: { announcement: NostrEvent; state: NostrEvent };
let spam: NostrEvent;
let issue: NostrEvent;

before(async () => {
  server = await OperatorServer.start();
  const client = await server.connect();
  hosted = await server.host(client, key, "kept");
  await server.host(client, key, "broken");
  spam = signed(spammer, 1621, [["a", `30617:${key.pubkey}:kept`]], "spam");
  issue = signed(newKey(), 1621, [["a", `30617:${key.pubkey}:kept`]], "an issue");
  for (const event of [spam, issue, server.announcement(key, "waiting")]) {
    assert.equal((await client.publish(event))[2], true);
  }
  await client.close();
  await server.stop();
});
after(() => server?.close());

test("a stopped server leaves no socket behind", () => {
  assert.equal(existsSync(join(server.folder, "data", "relay", "admin.sock")), false);
});

test("looking works offline: purgatory, repositories, why, lists, audit", async () => {
  const { waiting } = await server.json<{ waiting: { kind: string }[] }>("purgatory", "list");
  assert.deepEqual(
    waiting.map(({ kind }) => kind),
    ["announcement"],
  );
  const { repositories } = await server.json<{ repositories: { status: string }[] }>("repos", "list");
  assert.deepEqual(repositories.map(({ status }) => status).sort(), ["served", "served", "waiting"]);
  const shown = await server.json<{ differences: unknown[] }>("repos", "show", `${npub}/kept`);
  assert.deepEqual(shown.differences, []);
  const why = await server.json<{ decisions: { rule: string }[] }>("why", hosted.announcement.id);
  assert.equal(why.decisions[0]?.rule, "announcement");
  assert.deepEqual(await server.json("lists", "show"), { ok: true, entries: [] });
  assert.equal((await server.verb("repos", "gc")).code, 0);
  const { changes } = await server.json<{ changes: { via: string }[] }>("admin", "audit");
  assert.deepEqual(
    changes.map(({ via }) => via),
    ["offline"],
  );
});

test("files that a crash left behind their rows are brought in line before anything is repacked", async () => {
  const directory = join(server.folder, "data", "git", npub, "kept.git");
  const main = (await server.git("-C", directory, "rev-parse", "refs/heads/main")).stdout;
  const store = await openLmdbStore(join(server.folder, "data", "relay"));
  await store.transact(async (tx) => tx.deleteRow("aligned", `${key.pubkey}:kept`));
  await store.close();
  assert.equal((await server.git("-C", directory, "update-ref", "-d", "refs/heads/main")).code, 0);
  assert.equal((await server.verb("repos", "gc")).code, 0);
  assert.equal((await server.git("-C", directory, "rev-parse", "refs/heads/main")).stdout, main);
});

test("fsck finds a planted hook, stray directories and refs that nobody signed, and exits 1 without repairing", async () => {
  const directory = join(server.folder, "data", "git", npub, "broken.git");
  mkdirSync(join(directory, "hooks"));
  writeFileSync(join(directory, "hooks", "post-receive"), "#!/bin/sh\n");
  chmodSync(join(directory, "hooks", "post-receive"), 0o755);
  mkdirSync(join(server.folder, "data", "git", npub, "stray.git"));
  const main = (await server.git("-C", directory, "rev-parse", "refs/heads/main")).stdout.trim();
  assert.equal((await server.git("-C", directory, "update-ref", "refs/heads/rogue", main)).code, 0);
  const ended = await server.verb("repos", "fsck", "--json");
  assert.equal(ended.code, 1);
  const { ok, unsound, strays } = JSON.parse(ended.stdout) as {
    ok: boolean;
    unsound: { repository: string; problems: string[] }[];
    strays: string[];
  };
  assert.equal(ok, false);
  assert.deepEqual(
    unsound.map(({ repository }) => repository),
    [`${npub}/broken`],
  );
  const problems = unsound[0]?.problems.join("\n") ?? "";
  assert.match(problems, /hooks are planted/);
  assert.match(problems, /refs\/heads\/rogue is [0-9a-f]{12}, the newest signed state says absent/);
  assert.deepEqual(strays, [`${npub}/stray`]);
  rmSync(join(directory, "hooks"), { recursive: true });
  rmSync(join(server.folder, "data", "git", npub, "stray.git"), { recursive: true });
});

test("what needs a running server says so", async () => {
  const link = await server.verb("admin", "link");
  assert.equal(link.code, 1);
  assert.match(link.stderr, /none runs/);
  const nowhere = await server.verb("repos", "list", "--relay-data-path", join(server.folder, "nowhere"));
  assert.equal(nowhere.code, 1);
  assert.match(nowhere.stderr, /there is no data at/);
  assert.equal(existsSync(join(server.folder, "nowhere")), false);
});

test("changes made offline hold after the start, survive another, and removed events do not come back", async () => {
  await server.json("ban", "key", npubOf(spammer.pubkey), "--reason", "spam", "--yes");
  await server.json("ban", "event", issue.id, "--yes");
  await server.json("lists", "add", "repository-blacklist", "unwanted");
  await server.json("ban", "ip", "192.0.2.0/24", "--yes");
  await server.json("repos", "delete", `${npub}/kept`);
  await server.json("repos", "delete", `${npub}/waiting`);
  for (let start = 0; start < 2; start++) {
    await server.start();
    const client = await server.connect();
    assert.deepEqual((await client.ask("gone", { ids: [spam.id, issue.id, hosted.announcement.id] })).events, []);
    for (const event of [spam, issue, hosted.announcement, server.announcement(newKey(), "unwanted")]) {
      assert.equal((await client.publish(event))[2], false);
    }
    const url = server.repositoryUrl(key, "kept");
    assert.equal((await fetch(`${url}/info/refs?service=git-upload-pack`)).status, 404);
    assert.equal(existsSync(join(server.folder, "data", "git", npub, "waiting.git")), false);
    await client.close();
    await server.stop();
  }
  const { bans } = await server.json<{ bans: { type: string; target: string }[] }>("lists", "bans");
  assert.ok(bans.some(({ type, target }) => type === "ip" && target === "192.0.2.0/24"));
  await server.json("unban", "ip", "192.0.2.0/24", "--yes");
  await server.json("lists", "remove", "repository-blacklist", "unwanted");
  const restored = await server.json<{ status: string }>("repos", "restore", `${npub}/kept`);
  assert.equal(restored.status, "served");
  // What a ban removed offline is brought back offline: now that the repository is served again.
  const back = await server.json<{ restored: { events: number } }>("unban", "event", issue.id, "--restore", "--yes");
  assert.equal(back.restored.events, 1);
  const lifted = await server.json<{ restored: { events: number } }>(
    ...(["unban", "key", npubOf(spammer.pubkey), "--restore", "--yes"] as const),
  );
  assert.equal(lifted.restored.events, 1);
  await server.start();
  const client = await server.connect();
  assert.equal((await client.ask("back", { ids: [spam.id, issue.id] })).events.length, 2);
  await client.close();
  await server.stop();
});
