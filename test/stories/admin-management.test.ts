// Relay management (NIP-86) and /api over real HTTP: what admins can do, and what strangers cannot (threats 28, 31).

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import type { SecretKey } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { newKey, nowSeconds, OperatorServer, signed } from "../harness/operator-server.js";
import type { RelayClient } from "../harness/relay-client.js";

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

interface TokenWish {
  readonly key?: SecretKey;
  readonly body?: string;
  readonly method?: string;
  readonly path?: string;
  readonly at?: number;
}

function token({ key = server.admin, body, method = "GET", path = "/", at }: TokenWish): string {
  const payload = body === undefined ? [] : [["payload", createHash("sha256").update(body).digest("hex")]];
  // Equal requests of one second would have equal ids, and the second would be a replay.
  const nonce = ["nonce", randomBytes(8).toString("hex")];
  const tags = [["u", `${server.httpUrl}${path}`], ["method", method], nonce, ...payload];
  const event = signed(key, 27235, tags, "", at);
  return `Nostr ${Buffer.from(event.raw).toString("base64")}`;
}

const post = (body: string, authorization?: string): Promise<Response> =>
  fetch(server.httpUrl, {
    method: "POST",
    headers: { "content-type": "application/nostr+json+rpc", ...(authorization ? { authorization } : {}) },
    body,
  });

async function call<T>(method: string, ...params: unknown[]): Promise<T> {
  const body = JSON.stringify({ method, params });
  const response = await post(body, token({ body, method: "POST" }));
  assert.equal(response.status, 200);
  const answer = (await response.json()) as { result?: T; error?: string };
  assert.equal(answer.error, undefined, `${method}: ${answer.error}`);
  return answer.result as T;
}

const get = (path: string, authorization?: string): Promise<Response> =>
  fetch(`${server.httpUrl}${path}`, { headers: authorization ? { authorization } : {} });

test("replayed, forged, stale, swapped and strangers' tokens are refused and change nothing", async () => {
  const victim = newKey();
  const body = JSON.stringify({ method: "banpubkey", params: [victim.pubkey] });
  const harmless = JSON.stringify({ method: "stats", params: [] });
  const used = token({ body: harmless, method: "POST" });
  assert.equal((await post(harmless, used)).status, 200);
  const good = JSON.parse(Buffer.from(used.slice(6), "base64").toString()) as Record<string, unknown>;
  const encoded = (event: object): string => `Nostr ${Buffer.from(JSON.stringify(event)).toString("base64")}`;
  const attempts: readonly (readonly [string, string, string | undefined])[] = [
    ["none", body, undefined],
    ["replayed", harmless, used],
    ["for another body", body, token({ body: harmless, method: "POST" })],
    ["without payload", body, token({ method: "POST" })],
    ["by a stranger", body, token({ body, method: "POST", key: victim })],
    ["a stranger's signature under the admin's name", body, encoded({ ...good, sig: "00".repeat(64) })],
    ["a stranger's token with the admin's key", body, encoded({ ...good, created_at: nowSeconds() })],
    ["two minutes old", body, token({ body, method: "POST", at: nowSeconds() - 120 })],
    ["two minutes ahead", body, token({ body, method: "POST", at: nowSeconds() + 120 })],
    ["for another method", body, token({ body, method: "GET" })],
    ["for another path", body, token({ body, method: "POST", path: "/api/status" })],
    ["not base64", body, "Nostr ???"],
  ];
  for (const [what, sent, authorization] of attempts) {
    const response = await post(sent, authorization);
    assert.equal(response.status, 401, what);
    assert.equal(response.headers.get("www-authenticate"), "Nostr");
    assert.deepEqual(Object.keys((await response.json()) as object), ["error"]);
  }
  assert.deepEqual(await call("listbannedpubkeys"), []);
});

async function information(): Promise<Record<string, unknown>> {
  const response = await fetch(server.httpUrl, { headers: { accept: "application/nostr+json" } });
  return (await response.json()) as Record<string, unknown>;
}

test("a body beyond the limit is refused", async () => {
  const body = JSON.stringify({ method: "stats", params: ["x".repeat(70_000)] });
  assert.equal((await post(body, token({ body, method: "POST" }))).status, 413);
});

test("every method that is listed works, and an unknown one is an error", async () => {
  const methods = await call<string[]>("supportedmethods");
  for (const method of methods) {
    const body = JSON.stringify({ method, params: [] });
    const response = await post(body, token({ body, method: "POST" }));
    assert.equal(response.status, 200, method);
    const { result, error } = (await response.json()) as { result?: unknown; error?: string };
    // Those that need a parameter say so; the others answer.
    assert.ok(result !== undefined || /is not|must be|needs|expected|Invalid/.test(error ?? ""), `${method}: ${error}`);
  }
  const noText = '{"method":"listrepositories","params":[5]}';
  const unknown = ["toString", "nonsense"].map((method) => JSON.stringify({ method, params: [] }));
  for (const body of [...unknown, noText, "[]", "{", "null"]) {
    const answer = (await (await post(body, token({ body, method: "POST" }))).json()) as { error?: string };
    assert.equal(typeof answer.error, "string", body);
  }
});

test("keys, events, networks and kinds are banned, listed with reasons, and allowed again", async () => {
  const key = newKey();
  await call("banpubkey", key.pubkey, "spam");
  assert.deepEqual(await call("listbannedpubkeys"), [{ pubkey: key.pubkey, reason: "spam" }]);
  assert.match(String((await client.publish(server.announcement(key, "x")))[3]), /^blocked: this key/);
  await call("allowpubkey", key.pubkey);
  assert.deepEqual(await call("listbannedpubkeys"), []);
  const announcement = server.announcement(key, "x", nowSeconds() + 1);
  assert.equal((await client.publish(announcement))[2], true);
  // Nobody is shut out because one key was allowed.
  assert.deepEqual(await call("listallowedpubkeys"), []);

  // At once, although it takes something away: clients of the protocol cannot be asked back.
  await call("banevent", announcement.id, "no");
  assert.deepEqual(await call("listbannedevents"), [{ id: announcement.id, reason: "no" }]);
  assert.equal((await client.publish(announcement))[2], false);
  await call("allowevent", announcement.id);
  assert.equal((await client.publish(announcement))[2], true);
  await call("banevent", announcement.id, "no");
  assert.equal(await call("unbanevent", announcement.id), true);
  assert.deepEqual(await call("listbannedevents"), []);
  assert.equal((await client.publish(announcement))[2], true);
  assert.deepEqual(await call("listeventsneedingmoderation"), []);

  await call("blockip", "192.0.2.7", "scan");
  assert.deepEqual(await call("listblockedips"), [{ ip: "192.0.2.7", reason: "scan" }]);
  const forwarded = { headers: { "x-forwarded-for": "192.0.2.7" } };
  assert.equal((await fetch(server.httpUrl, forwarded)).status, 403);
  await call("unblockip", "192.0.2.7");
  assert.equal((await fetch(server.httpUrl, forwarded)).status, 200);

  await call("disallowkind", 30617);
  assert.deepEqual(await call("listdisallowedkinds"), [30617]);
  const refused = await client.publish(server.announcement(key, "y"));
  assert.deepEqual(refused.slice(2), [false, "blocked: events of kind 30617 are not taken here"]);
  await call("allowkind", 30617);
  assert.equal((await client.publish(server.announcement(key, "y")))[2], true);
});

test("a ban is lifted by unbanpubkey, an allowed key is taken off by unallowpubkey", async () => {
  const methods = await call<string[]>("supportedmethods");
  assert.ok(methods.includes("unbanpubkey") && methods.includes("unallowpubkey"));
  const [banned, allowed, third] = [newKey(), newKey(), newKey()];
  await call("banpubkey", banned.pubkey, "spam");
  assert.equal(await call("unbanpubkey", banned.pubkey), true);
  assert.deepEqual(await call("listbannedpubkeys"), []);

  // The first entry closes the server to everybody else; only then do allowed keys matter.
  await server.operate("lists.add", { list: "repository-whitelist", entry: third.pubkey });
  await call("allowpubkey", allowed.pubkey);
  assert.equal((await client.publish(server.announcement(allowed, "one")))[2], true);
  assert.equal(await call("unallowpubkey", allowed.pubkey), true);
  assert.match(String((await client.publish(server.announcement(allowed, "two")))[3]), /only repositories on its list/);
  assert.deepEqual(await call("listallowedpubkeys"), [{ pubkey: third.pubkey }]);
  assert.deepEqual(await call("listbannedpubkeys"), [], "not allowed is not banned");
  await assert.rejects(call("unallowpubkey", "a-repository"), /must be a public key/);
  // Roles are the lists: the same key, put on it by its name and taken off again.
  assert.equal(await call("assignrole", allowed.pubkey, "repository-whitelist"), true);
  assert.equal((await client.publish(server.announcement(allowed, "two")))[2], true);
  assert.equal(await call("unassignrole", allowed.pubkey, "repository-whitelist"), true);
  assert.equal(await call("unassignrole", allowed.pubkey, "repository-whitelist"), true, "again is no error");
  assert.deepEqual(await call("listallowedpubkeys"), [{ pubkey: third.pubkey }]);
  for (const role of ["moderator", "archive-grasp-services", 5])
    await assert.rejects(call("assignrole", allowed.pubkey, role), /must be one of repository-whitelist, /);
  await server.operate("lists.remove", { list: "repository-whitelist", entry: third.pubkey });
});

test("the relay's name, description and icon change in the information document at once and after a restart", async () => {
  const before = await information();
  assert.ok([86, 98].every((nip) => (before.supported_nips as number[]).includes(nip)));
  await call("changerelayname", "Another name");
  await call("changerelaydescription", "About it");
  await call("changerelayicon", "https://example.com/icon.png");
  const expected = ["Another name", "About it", "https://example.com/icon.png"];
  const shown = async () => [await information()].flatMap(({ name, description, icon }) => [name, description, icon]);
  assert.deepEqual(await shown(), expected);
  await client.close();
  await server.stop();
  await server.start();
  client = await server.connect();
  assert.deepEqual(await shown(), expected);
  await call("changerelayname", "");
  assert.equal((await information()).name, before.name);
});

test("the information document says that content is curated as long as something is kept out by hand", async () => {
  const [key, owner] = [newKey(), newKey()];
  const event = signed(key, 1, []);
  await server.host(client, owner, "curated");
  const name = `${npubOf(owner.pubkey)}/curated`;
  const pairs: readonly (readonly [readonly [string, unknown], readonly [string, unknown]])[] = [
    [
      ["banpubkey", key.pubkey],
      ["allowpubkey", key.pubkey],
    ],
    [
      ["banevent", event.id],
      ["allowevent", event.id],
    ],
    [
      ["disallowkind", 7],
      ["allowkind", 7],
    ],
    [
      ["unhostrepository", name],
      ["restorerepository", name],
    ],
  ];
  for (const [keepOut, letIn] of pairs) {
    assert.equal("curation" in (await information()), false, `before ${keepOut[0]}`);
    await call(...keepOut);
    assert.match(String((await information()).curation), /The operator keeps lists/, keepOut[0]);
    await call(...letIn);
  }
  assert.equal("curation" in (await information()), false);
});

test("repositories are listed, un-hosted, restored, banned and unbanned", async () => {
  const key = newKey();
  const name = `${npubOf(key.pubkey)}/managed`;
  await server.host(client, key, "managed");
  const status = async (): Promise<string | undefined> =>
    (await call<{ repository: string; status: string }[]>("listrepositories")).find(
      ({ repository }) => repository === name,
    )?.status;
  assert.equal(await status(), "served");
  await call("unhostrepository", name, "asked");
  assert.equal(await status(), "deleted");
  await call("restorerepository", name);
  assert.equal(await status(), "served");
  await call("banrepository", name, "bad", "yes");
  assert.deepEqual(await call("listbannedrepositories"), [{ repository: name, reason: "bad" }]);
  assert.equal(await status(), "deleted");
  await call("unbanrepository", name);
  await call("restorerepository", name);
  assert.equal(await status(), "served");
  const audit = (await (await get("/api/audit", token({ path: "/api/audit" }))).json()) as {
    changes: { who: string; via: string; what: string }[];
  };
  const { who, via, what } = audit.changes[0] ?? {};
  assert.deepEqual([who, via, what], [npubOf(server.admin.pubkey), "nip-86", "restore repository"]);
});

test("strangers learn nothing from /api but counts; admins see what waits, repositories and reasons", async () => {
  const key = newKey();
  const held = server.announcement(key, "secret-project");
  assert.match(String((await client.publish(held))[3]), /^purgatory:/);
  const npub = npubOf(key.pubkey);
  const paths = [
    "/api/purgatory",
    "/api/repos",
    `/api/why/${held.id}`,
    `/api/repos/${npub}/secret-project`,
    "/api/nix",
    "/api",
  ];
  const refusals = new Set<string>();
  for (const path of paths) {
    for (const authorization of [undefined, token({ path, key }), token({ path, method: "POST" })]) {
      const response = await get(path, authorization);
      assert.equal(response.status, 401, path);
      const text = await response.text();
      assert.doesNotMatch(text, new RegExp(`secret|${held.id}|${npub}`));
      if (authorization === undefined) refusals.add(text);
    }
  }
  assert.equal(refusals.size, 1);
  const open = (await (await get("/api/status")).json()) as Record<string, unknown>;
  assert.deepEqual(Object.keys(open).sort(), ["events", "repositories", "uptimeSeconds", "version", "waiting"]);
  assert.ok(Number(open.waiting) >= 1);

  const asAdmin = async (path: string): Promise<Record<string, unknown>> => {
    const response = await get(path, token({ path }));
    assert.equal(response.status, 200, path);
    assert.equal(response.headers.get("cache-control"), "no-store");
    return (await response.json()) as Record<string, unknown>;
  };
  const { waiting } = (await asAdmin("/api/purgatory?limit=50")) as { waiting: { id: string }[] };
  assert.ok(waiting.some(({ id }) => id === held.id));
  const { decisions } = (await asAdmin(`/api/why/${held.id}`)) as { decisions: { outcome: string }[] };
  assert.equal(decisions[0]?.outcome, "hold");
  assert.equal((await asAdmin(`/api/repos/${npub}/secret-project`)).status, "waiting");
  assert.ok("store" in (await asAdmin("/api/status")));
  const path = "/api/repos?status=nonsense";
  assert.equal((await get(path, token({ path }))).status, 400);
});
