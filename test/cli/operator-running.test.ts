// Operator verbs against a running server; their effect is seen over the relay, HTTP and git.

import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { runCommandLine } from "../../src/cli/run.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { abilitiesOn } from "../../src/verb-abilities.js";
import { newKey, nowSeconds, OperatorServer, signed } from "../harness/operator-server.js";
import { RelayClient } from "../harness/relay-client.js";

let server: OperatorServer;
let client: RelayClient;
before(async () => {
  server = await OperatorServer.start();
  client = await server.connect();
});
after(async () => {
  await client?.close();
  await server?.close();
});

interface Line {
  readonly id: string;
  readonly kind: string;
  readonly missing: readonly string[] | null;
  readonly why: string;
  readonly source: string;
  readonly phase: string;
  readonly expires: number;
  readonly repositories: readonly string[];
}

test("the admin socket is for the server's user only", () => {
  const mode = statSync(join(server.folder, "data", "relay", "admin.sock")).mode;
  assert.equal(mode & 0o777, 0o600);
});

test("purgatory list tells what waits, why, what is missing and until when", async () => {
  const key = newKey();
  await server.host(client, key, "waits");
  const oid = "ab".repeat(20);
  const state = signed(
    key,
    30618,
    [
      ["d", "waits"],
      ["refs/heads/main", oid],
    ],
    "",
    nowSeconds() + 2,
  );
  const announcement = server.announcement(key, "new");
  for (const event of [state, announcement]) assert.match(String((await client.publish(event))[3]), /^purgatory:/);
  const { waiting } = await server.json<{ waiting: Line[] }>("purgatory", "list");
  const line = waiting.find(({ id }) => id === state.id);
  assert.ok(line);
  assert.deepEqual([line.kind, line.phase, line.source, line.missing], ["state", "waiting", "client", [oid]]);
  assert.deepEqual(line.repositories, [`${npubOf(key.pubkey)}/waits`]);
  assert.ok(line.expires > nowSeconds());
  assert.match(line.why, /1 of its objects is missing/);
  const one = await server.json<{ waiting: Line[] }>("purgatory", "list", "--repository", `${npubOf(key.pubkey)}/new`);
  assert.deepEqual(
    one.waiting.map(({ id, kind }) => [id, kind]),
    [[announcement.id, "announcement"]],
  );
  const text = await server.verb("purgatory", "list");
  assert.match(text.stdout, new RegExp(`state +waiting .*${state.id}.*abababababab`));
  const asked = await server.verb("purgatory", "ask", `${npubOf(key.pubkey)}/waits`);
  assert.equal(asked.code, 0, asked.stderr);
  const nothing = await server.verb("purgatory", "ask", `${npubOf(key.pubkey)}/new`);
  assert.equal(nothing.code, 1, "an announcement alone is not hunted");
});

test("repos list, show, fsck and gc tell how a repository is and keep it sound", async () => {
  const key = newKey();
  const name = `${npubOf(key.pubkey)}/sound`;
  const { state, announcement } = await server.host(client, key, "sound");
  const { repositories } = await server.json<{ repositories: { repository: string; status: string }[] }>(
    "repos",
    "list",
    "--owner",
    npubOf(key.pubkey),
  );
  assert.deepEqual(
    repositories.map(({ repository, status }) => [repository, status]),
    [[name, "served"]],
  );
  const shown = await server.json<Record<string, unknown>>("repos", "show", name);
  assert.deepEqual(
    [shown.status, shown.governing, shown.announcement, shown.differences, (shown.mark as { id: string }).id],
    ["served", state.id, announcement.id, [], state.id],
  );
  assert.ok((shown.disk as { bytes: number }).bytes > 0);
  const packed = await server.json<{ done: number; busy: string[] }>("repos", "gc", name, "--cruft");
  assert.deepEqual([packed.done, packed.busy], [1, []]);
  const sound = await server.json<{ ok: boolean; checked: number }>("repos", "fsck", name);
  assert.deepEqual([sound.ok, sound.checked], [true, 1]);
  assert.equal((await server.git("ls-remote", server.repositoryUrl(key, "sound"))).code, 0);
});

test("why names the rule that accepted, held or refused, for events and repositories", async () => {
  const key = newKey();
  const { announcement } = await server.host(client, key, "asked");
  const orphan = signed(newKey(), 1, []);
  assert.equal((await client.publish(orphan))[2], false);
  interface Answer {
    readonly now: readonly string[];
    readonly decisions: readonly { outcome: string; rule: string; code: string | null; kind: number }[];
  }
  const accepted = await server.json<Answer>("why", announcement.id);
  assert.deepEqual([accepted.decisions[0]?.outcome, accepted.decisions[0]?.rule], ["store", "announcement"]);
  assert.deepEqual(accepted.now, ["it is stored and served"]);
  const refused = await server.json<Answer>("why", orphan.id);
  assert.deepEqual([refused.decisions[0]?.outcome, refused.decisions[0]?.code], ["refuse", "unrelated"]);
  const repository = await server.json<Answer>("why", `${npubOf(key.pubkey)}/asked`);
  assert.deepEqual(repository.decisions.map(({ kind }) => kind).sort(), [30617, 30618]);
  const unknown = await server.verb("why", "12".repeat(32));
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /no decision about this event is on record/);
});

test("lists are in force without a restart: a newly blacklisted key is refused at once, and welcome after removal", async () => {
  const key = newKey();
  const npub = npubOf(key.pubkey);
  assert.equal((await client.publish(server.announcement(key, "one")))[2], true);
  await server.json("lists", "add", "repository-blacklist", npub, "--reason", "spam");
  const refused = await client.publish(server.announcement(key, "two"));
  assert.deepEqual([refused[2], refused[3]], [false, "blocked: this repository is not wanted here"]);
  const { entries } = await server.json<{ entries: { entry: string; reason: string }[] }>("lists", "show");
  assert.ok(entries.some(({ entry, reason }) => entry === npub && reason === "spam"));
  await server.json("lists", "remove", "repository-blacklist", npub);
  assert.equal((await client.publish(server.announcement(key, "three")))[2], true);
  await assert.rejects(server.operate("lists.remove", { list: "repository-blacklist", entry: npub }), /is not on the/);
  await assert.rejects(server.operate("lists.add", { list: "event-blacklist", entry: "a-name" }), /is not an npub/);
});

test("a deleted repository is 404 at once, does not return by replay, and is restored with its announcement", async () => {
  const key = newKey();
  const name = `${npubOf(key.pubkey)}/gone`;
  const { announcement } = await server.host(client, key, "gone");
  const url = server.repositoryUrl(key, "gone");
  await server.json("repos", "delete", name, "--reason", "test");
  assert.equal((await fetch(`${url}/info/refs?service=git-upload-pack`)).status, 404);
  assert.deepEqual((await client.ask("gone-1", { ids: [announcement.id] })).events, []);
  assert.equal((await client.publish(announcement))[2], false);
  await assert.rejects(server.operate("repos.delete", { repository: name }), /is deleted already/);
  const restored = await server.json<{ status: string }>("repos", "restore", name);
  assert.equal(restored.status, "served");
  assert.equal((await fetch(`${url}/info/refs?service=git-upload-pack`)).status, 200);
  assert.deepEqual(
    (await client.ask("gone-2", { ids: [announcement.id] })).events.map(({ id }) => id),
    [announcement.id],
  );
  await assert.rejects(server.operate("repos.restore", { repository: name }), /nothing to restore/);
});

test("a repository its owner deleted is restored read-only", async () => {
  const key = newKey();
  const name = `${npubOf(key.pubkey)}/mine`;
  const { announcement } = await server.host(client, key, "mine");
  assert.equal((await client.publish(signed(key, 5, [["e", announcement.id]])))[2], true);
  const url = `${server.repositoryUrl(key, "mine")}/info/refs?service=git-upload-pack`;
  assert.equal((await fetch(url)).status, 404);
  const restored = await server.operate<{ status: string; note: string }>("repos.restore", { repository: name });
  assert.equal(restored.status, "leaving");
  assert.match(restored.note, /read-only/);
  assert.equal((await fetch(url)).status, 200);
});

test("a banned pull request goes with its ref, and a banned key with its repositories and events", async () => {
  const key = newKey();
  const { state } = await server.host(client, key, "target");
  const author = newKey();
  const url = server.repositoryUrl(key, "target");
  const { folder, oid } = server.commit();
  const pull = signed(author, 1618, [
    ["a", `30617:${key.pubkey}:target`],
    ["c", oid],
    ["clone", url],
  ]);
  assert.equal((await server.git("-C", folder, "push", url, `${oid}:refs/nostr/${pull.id}`)).code, 0);
  assert.equal((await client.publish(pull))[2], true);
  assert.match((await server.git("ls-remote", url)).stdout, new RegExp(pull.id));
  const banned = await server.json<{ removedEvents: number }>("ban", "event", pull.id, "--reason", "rude", "--yes");
  assert.equal(banned.removedEvents, 1);
  assert.doesNotMatch((await server.git("ls-remote", url)).stdout, new RegExp(pull.id));
  assert.deepEqual((await client.publish(pull)).slice(2), [false, "blocked: this event is not wanted here"]);

  const result = await server.json<{ removedEvents: number }>("ban", "key", npubOf(key.pubkey), "--yes");
  assert.equal(result.removedEvents, 2);
  assert.equal((await fetch(`${url}/info/refs?service=git-upload-pack`)).status, 404);
  assert.deepEqual((await client.ask("key", { authors: [key.pubkey] })).events, []);
  assert.deepEqual((await client.publish(state)).slice(2), [false, "blocked: this key is not wanted here"]);
  const repository = `${npubOf(key.pubkey)}/target`;
  await assert.rejects(server.operate("repos.restore", { repository }), /key is banned/);
  await server.json("unban", "key", npubOf(key.pubkey), "--yes");
  await server.operate("repos.restore", { repository });
  assert.equal((await fetch(`${url}/info/refs?service=git-upload-pack`)).status, 200);
});

test("a banned repository is un-hosted and its newer announcements are refused", async () => {
  const key = newKey();
  const name = `${npubOf(key.pubkey)}/bad`;
  await server.host(client, key, "bad");
  await server.json("ban", "repository", name, "--reason", "malware", "--yes");
  const newer = server.announcement(key, "bad", nowSeconds() + 5);
  assert.deepEqual((await client.publish(newer)).slice(2), [false, "blocked: this repository is not wanted here"]);
  const { bans } = await server.json<{ bans: { type: string; target: string; reason: string }[] }>("lists", "bans");
  assert.ok(bans.some((ban) => ban.type === "repository" && ban.target === name && ban.reason === "malware"));
  await server.operate("unban", { type: "repository", target: name });
  assert.equal((await client.publish(newer))[2], true);
});

test("a ban shows first what would go and asks; without an answer or --yes nothing is done", async () => {
  const key = newKey();
  const hosted = await server.host(client, key, "shown");
  const [npub, name] = [npubOf(key.pubkey), `${npubOf(key.pubkey)}/shown`];
  const asked = await server.verb("ban", "key", npub);
  assert.equal(asked.code, 1);
  assert.match(
    asked.stderr,
    /This would go: 2 stored events\.\nThese repositories would not be served any more:\n {2}npub1/,
  );
  assert.match(asked.stderr, /\nNothing was done: add --yes to do it\n$/);
  const json = await server.verb("ban", "key", npub, "--json");
  const { ok, would } = JSON.parse(json.stdout) as { ok: boolean; would: { events: number; repositories: string[] } };
  assert.deepEqual([json.code, ok, would.events, would.repositories], [1, false, 2, [name]]);
  for (const [answer, code] of [
    ["", 1],
    ["n", 1],
    ["yes", 0],
  ] as const) {
    let said = "";
    const terminal = {
      out: async () => undefined,
      error: (text: string) => {
        said += text;
      },
      ...{ showsProgress: false, columns: 100, isInteractive: true },
      async *lines() {
        yield answer;
      },
    };
    const args = ["node", "holdfast", "ban", "key", npub];
    assert.equal(await runCommandLine(args, abilitiesOn(terminal, server.environment)), code, said);
    assert.match(said, /Go on\? \[y\/N\] /);
    const { events } = await client.ask("left", { ids: [hosted.announcement.id] });
    assert.equal(events.length, code === 0 ? 0 : 1);
  }
});

test("what a ban removed comes back with unban --restore: events, and repositories with their data", async () => {
  const key = newKey();
  const hosted = await server.host(client, key, "returns");
  const issue = signed(key, 1621, [["a", `30617:${key.pubkey}:returns`]], "here", nowSeconds());
  assert.equal((await client.publish(issue))[2], true);
  const [npub, name] = [npubOf(key.pubkey), `${npubOf(key.pubkey)}/returns`];
  const ids = [hosted.announcement.id, issue.id];
  const served = async (): Promise<number> => (await client.ask("served", { ids })).events.length;
  const advertisement = `${server.repositoryUrl(key, "returns")}/info/refs?service=git-upload-pack`;

  // A key: everything it sent.
  const { removedEvents } = await server.json<{ removedEvents: number }>("ban", "key", npub, "--yes");
  assert.equal(removedEvents, 3);
  assert.deepEqual([await served(), (await fetch(advertisement)).status], [0, 404]);
  const shown = await server.verb("unban", "key", npub, "--restore");
  assert.match(shown.stderr, /3 things it removed are kept for 90 days after the ban\. They would come back/);
  const all = await server.verb("unban", "key", npub, "--restore", "--yes");
  assert.match(all.stdout, /is not banned any more\n3 events and 1 repository restored\n {2}npub1/, all.stderr);
  assert.deepEqual([await served(), (await fetch(advertisement)).status], [2, 200]);

  // One event, also when the ban was lifted without it.
  await server.json("ban", "event", issue.id, "--yes");
  await server.json("unban", "event", issue.id, "--yes");
  assert.equal(await served(), 1);
  await server.json("unban", "event", issue.id, "--restore", "--yes");
  assert.equal(await served(), 2);
  const again = await server.verb("unban", "event", issue.id, "--restore", "--yes");
  assert.match(again.stderr, /is not banned/);

  // A repository.
  await server.json("ban", "repository", name, "--yes");
  assert.equal((await fetch(advertisement)).status, 404);
  await server.json("unban", "repository", name, "--restore", "--yes");
  assert.deepEqual([await served(), (await fetch(advertisement)).status], [2, 200]);
});

test("a pull request that a ban removed comes back with its git data", async () => {
  const [owner, contributor] = [newKey(), newKey()];
  await server.host(client, owner, "asked");
  const url = server.repositoryUrl(owner, "asked");
  const { folder, oid } = server.commit();
  const tags = [
    ["a", `30617:${owner.pubkey}:asked`],
    ["c", oid],
    ["clone", url],
  ];
  const request = signed(contributor, 1618, tags, "take this");
  assert.equal((await client.publish(request))[2], true);
  const ref = `refs/nostr/${request.id}`;
  assert.equal((await server.git("-C", folder, "push", "-q", url, `main:${ref}`)).code, 0);
  const standing = async (): Promise<readonly [number, boolean]> => [
    (await client.ask("request", { ids: [request.id] })).events.length,
    (await server.git("ls-remote", url)).stdout.includes(`${oid}\t${ref}`),
  ];
  assert.deepEqual(await standing(), [1, true]);
  await server.json("ban", "key", npubOf(contributor.pubkey), "--yes");
  assert.deepEqual(await standing(), [0, false], "neither the event nor its ref is served");
  await server.json("unban", "key", npubOf(contributor.pubkey), "--restore", "--yes");
  assert.deepEqual(await standing(), [1, true]);
});

test("a blocked network gets no page, no git and no relay until it is unblocked", async () => {
  await server.json("ban", "ip", "127.0.0.0/8", "--yes");
  try {
    assert.equal((await fetch(`http://127.0.0.1:${server.port}/`)).status, 403);
    await assert.rejects(RelayClient.connect(`ws://127.0.0.1:${server.port}`), /503/);
  } finally {
    await server.operate("unban", { type: "ip", target: "127.0.0.0/8" });
  }
  assert.equal((await fetch(`http://127.0.0.1:${server.port}/`)).status, 200);
});

test("an admin key cannot be banned, and wrong targets end with exit code 2", async () => {
  const own = await server.verb("ban", "key", npubOf(server.admin.pubkey));
  assert.equal(own.code, 1);
  assert.match(own.stderr, /admin's key cannot be banned/);
  for (const type of ["key", "ip", "event", "repository"]) {
    await assert.rejects(server.operate("ban", { type, target: "x" }), /"x" is not/);
  }
  assert.equal((await server.verb("ban", "event", "x")).code, 2);
  assert.equal((await server.verb("ban", "planet", "x")).code, 2);
});

test("admin link logs one browser in, once, and its session reads /api", async () => {
  const { url } = await server.json<{ url: string }>("admin", "link");
  assert.equal((await fetch(url, { method: "HEAD" })).status, 405);
  const first = await fetch(url, { redirect: "manual" });
  assert.equal(first.status, 303);
  const cookie = first.headers.get("set-cookie") ?? "";
  assert.match(cookie, /HttpOnly; SameSite=Strict/);
  assert.equal((await fetch(url, { redirect: "manual" })).status, 401);
  const headers = { cookie: cookie.split(";")[0] ?? "" };
  assert.equal((await fetch(`${server.httpUrl}/api/purgatory`, { headers })).status, 200);
  // A page elsewhere could send the cookie along: it never changes anything.
  const headersOfRpc = { ...headers, "content-type": "application/nostr+json+rpc" };
  const posted = await fetch(server.httpUrl, {
    method: "POST",
    headers: headersOfRpc,
    body: '{"method":"stats","params":[]}',
  });
  assert.equal(posted.status, 401);
});

test("status adds counts, and the audit log knows every change", async () => {
  const { counts } = await server.json<{
    counts: { server: { verification: string }; repositories: { served: number } };
  }>("status");
  assert.match(counts.server.verification, /native|prebuilt|wasm/);
  assert.ok(counts.repositories.served > 0);
  const { changes } = await server.json<{ changes: { what: string; who: string; via: string }[] }>("admin", "audit");
  const kinds = new Set(changes.map(({ what }) => what));
  for (const what of [
    "ban key",
    "unban key",
    "ban event",
    "unhost repository",
    "restore repository",
    "block network",
  ]) {
    assert.ok(kinds.has(what), what);
  }
  assert.ok(changes.every(({ who, via }) => who === "operator" && via === "socket"));
});
