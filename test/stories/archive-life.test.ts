// An archive as its operator sees it: real servers, the verbs `mirror`, `sync` and `lists`, stock git. Server A hosts;
// server B is told at run time what to mirror.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { NostrEvent } from "../../src/nostr/event.js";
import type { SecretKey } from "../../src/nostr/keys.js";
import { naddrOf, npubOf } from "../../src/nostr/nip19.js";
import type { RepositoryLine } from "../../src/operator/repositories.js";
import { newKey, nowSeconds, OperatorServer, signed } from "../harness/operator-server.js";
import type { RelayClient } from "../harness/relay-client.js";
import { until } from "../harness/server.js";
import { PlainRelay } from "../harness/sync-plain-relay.js";

const patienceMs = 120_000;
const quickly = {
  NGIT_SYNC_BATCH_WINDOW_MS: "50",
  NGIT_SYNC_STARTUP_JITTER_MS: "0",
  NGIT_GIT_DOMAIN_RATE: "1000",
  NGIT_SYNC_BASE_BACKOFF_SECS: "1",
};

let host: OperatorServer;
let archive: OperatorServer;
let client: RelayClient;

before(async () => {
  [host, archive] = await Promise.all([OperatorServer.start(), OperatorServer.start(quickly)]);
  client = await host.connect();
});

after(async () => {
  await client.close();
  await Promise.all([host.close(), archive.close()]);
});

const hostRelay = (): string => `ws://localhost:${host.port}`;
const nameOf = (key: SecretKey, identifier: string): string => `${npubOf(key.pubkey)}/${identifier}`;

async function statusOf(server: OperatorServer, repository: string): Promise<string | undefined> {
  const { repositories } = await server.operate<{ repositories: readonly RepositoryLine[] }>("repos.list", {});
  return repositories.find((line) => line.repository === repository)?.status;
}

const becomes = (server: OperatorServer, repository: string, status: string | undefined): Promise<boolean> =>
  until(async () => (await statusOf(server, repository)) === status, patienceMs);

async function tipAt(server: OperatorServer, key: SecretKey, identifier: string): Promise<string> {
  const listed = await server.git("ls-remote", server.repositoryUrl(key, identifier), "refs/heads/main");
  return listed.stdout.split("\t")[0] ?? "";
}

async function isServed(server: OperatorServer, event: NostrEvent): Promise<boolean> {
  const reader = await server.connect();
  const { events } = await reader.ask("q", { ids: [event.id] });
  await reader.close();
  return events.length === 1;
}

async function countOnLanding({ port }: OperatorServer): Promise<number> {
  const page = await (await fetch(`http://127.0.0.1:${port}/`, { headers: { accept: "text/html" } })).text();
  return Number(/<b>(\d+)<\/b> repositor/.exec(page)?.[1]);
}

/** A further commit, stated and pushed to A. */
async function pushAgain(key: SecretKey, identifier: string): Promise<{ oid: string; folder: string }> {
  const made = host.commit();
  const tags = [
    ["d", identifier],
    ["refs/heads/main", made.oid],
    ["HEAD", "ref: refs/heads/main"],
  ];
  const answer = await client.publish(signed(key, 30618, tags, "", nowSeconds() + 5));
  assert.equal(answer[2], true, String(answer[3]));
  const pushed = await host.git("-C", made.folder, "push", "-f", host.repositoryUrl(key, identifier), "main");
  assert.equal(pushed.code, 0, pushed.stderr);
  return made;
}

test("mirror of a key: shown until it is there, kept over a restart, followed, left, and taken back", async () => {
  const key = newKey();
  const repository = nameOf(key, "kept");
  const { announcement } = await host.host(client, key, "kept");

  const ended = await archive.verb("mirror", npubOf(key.pubkey), "--relay", hostRelay());
  assert.equal(ended.code, 0, ended.stdout + ended.stderr);
  assert.match(ended.stdout, new RegExp(`^${npubOf(key.pubkey)} added to the archive-whitelist\n`));
  assert.ok(ended.stdout.includes(`${repository}: fetched\n1 of 1 repository is here\n`), ended.stdout);
  assert.ok(await isServed(archive, announcement));
  assert.equal(await tipAt(archive, key, "kept"), await tipAt(host, key, "kept"));

  await archive.stop();
  await archive.start();
  assert.equal(await statusOf(archive, repository), "archived");
  const { oid, folder } = await pushAgain(key, "kept");
  assert.ok(await until(async () => (await tipAt(archive, key, "kept")) === oid, patienceMs), "it is still followed");
  const pushed = await archive.git("-C", folder, "push", archive.repositoryUrl(key, "kept"), "main:refs/heads/x");
  assert.match(pushed.stderr, /remote rejected.*this server only mirrors this repository/);

  assert.ok(await until(async () => (await countOnLanding(archive)) === 1, patienceMs));
  const removed = await archive.verb("lists", "remove", "archive-whitelist", npubOf(key.pubkey));
  assert.equal(removed.code, 0, removed.stderr);
  assert.ok(await becomes(archive, repository, "leaving"), "what no entry covers leaves");
  assert.ok(await until(async () => (await countOnLanding(archive)) === 0, patienceMs), "it is no longer counted");
  assert.equal(await tipAt(archive, key, "kept"), oid, "it is read-only, not gone");
  const why = await archive.json<{ decisions: readonly { message: string }[] }>("why", repository);
  assert.ok(why.decisions.some(({ message }) => /no longer mirrored here/.test(message)));
  const gone = await archive.git("-C", folder, "push", archive.repositoryUrl(key, "kept"), "main:refs/heads/x");
  assert.match(gone.stderr, /this repository is leaving/);

  const later = await pushAgain(key, "kept");
  const again = await archive.verb("mirror", npubOf(key.pubkey), "--relay", hostRelay(), "--json");
  assert.equal(again.code, 0, again.stdout + again.stderr);
  const lines = again.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.deepEqual(lines.at(-1), { type: "end", ok: true, repositories: 1, there: 1, failed: 0, waiting: 0 });
  assert.equal(await statusOf(archive, repository), "archived");
  assert.ok(await until(async () => (await tipAt(archive, key, "kept")) === later.oid, patienceMs));
  const audit = await archive.operate<{ changes: readonly { what: string }[] }>("audit.list", {});
  const noted = audit.changes.map(({ what }) => what).filter((what) => what.includes("archive-whitelist"));
  assert.deepEqual(noted.sort(), [
    "add to archive-whitelist",
    "add to archive-whitelist",
    "remove from archive-whitelist",
  ]);
});

test("mirror of one repository by naddr asks its relays; of a service by URL, new repositories follow by themselves", async () => {
  const key = newKey();
  await host.host(client, key, "pointed");
  await host.host(client, key, "beside");
  const address = { kind: 30617, pubkey: key.pubkey, identifier: "pointed" };
  const naddr = naddrOf({ address, relays: [hostRelay()] }) ?? "";
  const ended = await archive.verb("mirror", naddr);
  assert.equal(ended.code, 0, ended.stdout + ended.stderr);
  assert.equal(await statusOf(archive, nameOf(key, "pointed")), "archived");
  assert.equal(await statusOf(archive, nameOf(key, "beside")), undefined);

  const service = await archive.verb("mirror", hostRelay());
  assert.equal(service.code, 0, service.stdout + service.stderr);
  assert.equal(await statusOf(archive, nameOf(key, "beside")), "archived");
  await host.host(client, key, "new");
  assert.ok(await becomes(archive, nameOf(key, "new"), "archived"), "announced there later, mirrored all the same");

  const ban = await archive.verb("ban", "repository", nameOf(key, "new"), "--yes");
  assert.equal(ban.code, 0, ban.stderr);
  const { stdout } = await archive.verb("sync", hostRelay(), "--json");
  const tally = JSON.parse(stdout) as { refusedHere: Record<string, number>; ok: boolean };
  assert.ok(tally.ok, "sync works against the running server");
  assert.equal(tally.refusedHere["event-blocked"], 1, stdout);
  assert.equal(await statusOf(archive, nameOf(key, "new")), "deleted", "what is banned does not come back by sync");

  const removed = await archive.verb("lists", "remove", "archive-grasp-services", `localhost:${host.port}`);
  assert.equal(removed.code, 0, removed.stderr);
  assert.ok(await becomes(archive, nameOf(key, "beside"), "leaving"));
  assert.equal(await statusOf(archive, nameOf(key, "pointed")), "archived", "its own entry still covers it");
});

test("mirror says what is wrong: no relay, no such thing, data nobody has, a relay that cannot be reached", async () => {
  const key = newKey();
  const npub = npubOf(key.pubkey);
  for (const [target, relays, said] of [
    ["npub1nonsense", [], /is not an npub, an naddr/],
    [npub, ["ftp://x"], /is no relay/],
    [npub, [`ws://localhost:${archive.port}`], /is this server itself/],
    [`ws://localhost:${archive.port}`, [], /is this server itself/],
  ] as const) {
    await assert.rejects(archive.operate("mirror.start", { target, relays }), said);
  }
  const none = await archive.verb("mirror", npub);
  assert.equal(none.code, 2);
  assert.match(none.stderr, /no relay to ask: name one with --relay/);
  const nothing = await archive.verb("mirror", npub, "--relay", hostRelay(), "--relay", "ws://127.0.0.1:1");
  assert.equal(nothing.code, 1);
  assert.match(nothing.stdout, /127\.0\.0\.1:1 cannot be reached[\s\S]*no repository of npub1\w+ was found/);
  // A relay without negentropy, and a git server that is not there.
  const relay = await PlainRelay.start();
  try {
    const at = nowSeconds();
    const elsewhere = [
      ["d", "lost"],
      ["clone", "http://127.0.0.1:1/lost.git"],
      ["relays", relay.url],
    ];
    relay.add(signed(key, 30617, elsewhere, "", at));
    relay.add(
      signed(
        key,
        30618,
        [
          ["d", "lost"],
          ["refs/heads/main", "ab".repeat(20)],
        ],
        "",
        at,
      ),
    );
    const ended = await archive.verb("mirror", npub, "--relay", relay.url, "--timeout", "30");
    assert.equal(ended.code, 1, ended.stdout + ended.stderr);
    assert.match(ended.stdout, /failed: http:\/\/127\.0\.0\.1:1\/lost\.git: refused/);
    const unwaited = await archive.verb("mirror", npub, "--relay", relay.url, "--no-wait");
    assert.match(unwaited.stdout, /0 of 1 repository is here/);
  } finally {
    await relay.stop();
  }
});

test("when the disk budget for mirrors is used up nothing is fetched, and log, status and why say so", async () => {
  const key = newKey();
  const small = await OperatorServer.start({ ...quickly, NGIT_ARCHIVE_MAX_BYTES: "2000" });
  try {
    await host.host(client, key, "first");
    const ended = await small.verb("mirror", nameOf(key, "first"), "--relay", hostRelay());
    assert.equal(ended.code, 0, ended.stdout + ended.stderr);
    await host.host(client, key, "second");
    const refused = await small.verb("mirror", nameOf(key, "second"), "--relay", hostRelay(), "--timeout", "30");
    assert.equal(refused.code, 1, refused.stdout + refused.stderr);
    assert.match(refused.stdout, /second: failed: http\S+: archive-full/);
    const why = await small.verb("why", nameOf(key, "second"));
    assert.match(why.stdout, /the disk budget for mirrors is used up/);
    const status = await small.verb("status");
    assert.match(status.stdout, /archive {4}1 mirror, \S+ \w+ of 2 KiB used/);
    assert.match(small.log, /archive-full/);
    assert.equal(await statusOf(small, nameOf(key, "second")), "waiting", "it is announced and fetchable, empty");
    const listed = await small.git("ls-remote", small.repositoryUrl(key, "second"));
    assert.deepEqual([listed.code, listed.stdout], [0, ""]);
  } finally {
    await small.close();
  }
});

test("without a running server the entry and the events are taken, and the next start fetches the data", async () => {
  const key = newKey();
  const { announcement } = await host.host(client, key, "later");
  const server = await OperatorServer.start(quickly);
  try {
    await server.stop();
    const ended = await server.verb("mirror", npubOf(key.pubkey), "--relay", hostRelay());
    assert.equal(ended.code, 0, ended.stdout + ended.stderr);
    assert.match(ended.stdout, /no server runs: git data is fetched at the next start/);
    await server.start();
    assert.ok(await becomes(server, nameOf(key, "later"), "archived"));
    assert.ok(await isServed(server, announcement));
  } finally {
    await server.close();
  }
});
