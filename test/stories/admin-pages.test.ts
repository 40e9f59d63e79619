// The admin pages over real HTTP, as a browser without script uses them: who gets in and who does not (threats 28 and
// 31), forms of other sites, and every action with its effect.

import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, get as httpGet } from "node:http";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { npubOf } from "../../src/nostr/nip19.js";
import type { AuditRow } from "../../src/operator/context.js";
import type { RelayList } from "../../src/operator/relays.js";
import { AdminVisitor, authorization } from "../harness/admin-visitor.js";
import { newKey, nowSeconds, OperatorServer, signed } from "../harness/operator-server.js";
import { RelayClient } from "../harness/relay-client.js";
import { PushedClock } from "../harness/sync-clock.js";
import { PlainRelay } from "../harness/sync-plain-relay.js";
import { startSyncServer, until } from "../harness/sync-server.js";
import { startPagesWorld } from "../http/pages-world.js";

const withinMs = 120_000;
let server: OperatorServer;
let client: RelayClient;
let relay: PlainRelay;
let operator: AdminVisitor;

const newLink = async (): Promise<string> => (await server.operate<{ url: string }>("admin.link", {})).url;

before(async () => {
  relay = await PlainRelay.start();
  server = await OperatorServer.start({
    NGIT_SYNC_BOOTSTRAP_RELAY_URL: relay.url,
    NGIT_SYNC_STARTUP_JITTER_MS: "0",
    NGIT_GIT_HUNT_DIRECT_DELAY_MS: "3600000",
  });
  client = await server.connect();
  operator = new AdminVisitor(server.httpUrl);
  await operator.logInByLink(await newLink());
});

after(async () => {
  await client?.close();
  await server?.close();
  await relay?.stop();
});

const paths = [
  "/admin",
  "/admin/",
  "/admin/purgatory",
  "/admin/relays",
  "/admin/repositories",
  "/admin/repository?name=x",
  "/admin/bans",
  "/admin/decisions?subject=x",
  "/admin/audit",
  "/admin/log",
  "/admin/log/stream",
  "/admin/nothing",
];

test("threat 31: without a session every admin path is the same login page and tells nothing", async () => {
  const key = newKey();
  const held = server.announcement(key, "secret-plans");
  assert.match(String((await client.publish(held))[3]), /^purgatory:/);
  const stranger = new AdminVisitor(server.httpUrl);
  const pages = new Set<string>();
  for (const cookie of ["", "holdfast-admin=", "holdfast-admin=made-up", `holdfast-admin=${"A".repeat(43)}`]) {
    stranger.cookie = cookie;
    for (const path of [...paths, `/admin/repository?name=${npubOf(key.pubkey)}/secret-plans`]) {
      const response = await stranger.fetch(path);
      assert.equal(response.status, 401, path);
      assert.equal(response.headers.get("cache-control"), "no-store");
      assert.equal(response.headers.get("access-control-allow-origin"), null);
      pages.add(await response.text());
    }
  }
  assert.equal(pages.size, 1);
  const [page = ""] = pages;
  assert.match(page, /holdfast admin link/);
  assert.doesNotMatch(page, new RegExp(`secret|${held.id}|${npubOf(key.pubkey)}`));
  for (const [operation, fields] of [
    ["ban", { type: "key", target: npubOf(key.pubkey) }],
    ["purgatory.drop", { event: held.id }],
    ["/admin/logout", {}],
  ] as const) {
    assert.equal((await stranger.post(operation, fields)).status, 401);
  }
  assert.match(await operator.page("/admin/purgatory"), /secret-plans/);
});

test("a one-time link logs in once; a second use, a made-up one and a preview get nothing", async () => {
  const link = await newLink();
  assert.equal((await fetch(link, { method: "HEAD" })).status, 405);
  const response = await fetch(link, { redirect: "manual" });
  const cookie = response.headers.get("set-cookie") ?? "";
  assert.match(cookie, /^holdfast-admin=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/; Max-Age=43200$/);
  for (const url of [link, `${server.httpUrl}/admin/login?token=x`, `${server.httpUrl}/admin/login`]) {
    const refused = await fetch(url, { redirect: "manual" });
    assert.deepEqual([refused.status, refused.headers.get("set-cookie")], [401, null]);
  }
});

test("threat 28: only an admin's fresh, unused signature for this address logs in", async () => {
  const url = `${server.httpUrl}/admin/login`;
  const { admin } = server;
  const visitor = new AdminVisitor(server.httpUrl);
  const used = authorization(admin, { url });
  const welcome = await visitor.signIn(used);
  assert.equal(welcome.status, 200);
  visitor.keepCookie(welcome);
  assert.match(await visitor.page("/admin"), new RegExp(npubOf(admin.pubkey).slice(0, 9)));
  const event = JSON.parse(Buffer.from(used.slice(6), "base64").toString()) as Record<string, unknown>;
  const changed = (more: object): string =>
    `Nostr ${Buffer.from(JSON.stringify({ ...event, ...more })).toString("base64")}`;
  const attempts: readonly (readonly [string, string | undefined])[] = [
    ["nothing", undefined],
    ["replayed", used],
    ["a stranger's key", authorization(newKey(), { url })],
    ["another's signature", changed({ sig: "00".repeat(64) })],
    ["another time under the same signature", changed({ created_at: nowSeconds() + 1 })],
    ["two minutes old", authorization(admin, { url, at: nowSeconds() - 120 })],
    ["two minutes ahead", authorization(admin, { url, at: nowSeconds() + 120 })],
    ["for another method", authorization(admin, { url, method: "GET" })],
    ["for another page", authorization(admin, { url: `${server.httpUrl}/admin` })],
    ["for another server", authorization(admin, { url: "https://elsewhere.example/admin/login" })],
    ["not base64", "Nostr ???"],
  ];
  for (const [what, header] of attempts) {
    const refused = await visitor.signIn(header);
    assert.deepEqual([refused.status, refused.headers.get("set-cookie")], [401, null], what);
  }
  for (const origin of ["https://evil.example", "null"]) {
    const refused = await visitor.signIn(authorization(admin, { url }), origin);
    assert.deepEqual([refused.status, refused.headers.get("set-cookie")], [403, null], origin);
  }
});

test("a form without its token, with another login's, or from another site does nothing", async () => {
  const victim = npubOf(newKey().pubkey);
  const fields = { type: "key", target: victim, reason: "forged" };
  const other = new AdminVisitor(server.httpUrl);
  await other.logInByLink(await newLink());
  const own = await operator.formToken();
  const attempts = [
    await operator.post("ban", fields),
    await operator.post("ban", { ...fields, form: "" }),
    await operator.post("ban", { ...fields, form: `${own}x` }),
    await operator.post("ban", { ...fields, form: await other.formToken() }),
    await operator.post("ban", { ...fields, form: own }, "https://evil.example"),
    await operator.post("ban", { ...fields, form: own }, "null"),
    await operator.fetch("/admin/do/ban", { method: "POST", body: new URLSearchParams({ ...fields, form: own }) }),
    await operator.post("/admin/logout", {}),
  ];
  for (const [index, response] of attempts.entries()) assert.equal(response.status, 403, `attempt ${index}`);
  const unknown = await operator.post("admin.link", { form: own });
  assert.equal(unknown.status, 404);
  assert.equal((await operator.fetch("/admin/do/ban", { method: "PUT" })).status, 405);
  assert.equal((await operator.fetch(`/admin/do/ban?form=${own}&target=${victim}`)).status, 404);
  assert.doesNotMatch(await operator.page("/admin/bans"), new RegExp(victim));
});

test("a form too long is refused, and it sends nobody elsewhere", async () => {
  const form = await operator.formToken();
  const long = await operator.post("unban", { form, type: "key", target: "x".repeat(70_000) });
  assert.equal(long.status, 413);
  for (const back of [
    "https://evil.example",
    "//evil.example",
    "/admin\\@evil.example",
    "/admin/../../x y",
    "/adminx",
  ]) {
    const response = await operator.post("unban", { form, type: "ip", target: "192.0.2.1", back });
    assert.deepEqual([response.status, response.headers.get("location")], [303, "/admin"], back);
  }
});

test("a session is over after twelve hours, whatever it is used for", async () => {
  const clock = new PushedClock();
  const admin = newKey();
  const other = await startSyncServer({ clock, settings: { NGIT_ADMIN_NPUBS: npubOf(admin.pubkey) } });
  try {
    const origin = `http://${other.domain}`;
    const visitor = new AdminVisitor(origin);
    visitor.keepCookie(await visitor.signIn(authorization(admin, { url: `${origin}/admin/login` })));
    const form = await visitor.formToken();
    const almost = 12 * 3_600_000 - 600_000;
    await clock.push(almost, almost);
    assert.equal((await visitor.fetch("/admin")).status, 200);
    await clock.push(600_000, 600_000);
    assert.equal((await visitor.fetch("/admin")).status, 401);
    assert.equal((await visitor.fetch("/api/bans")).status, 401);
    assert.equal((await visitor.post("ban", { form, type: "ip", target: "192.0.2.1" })).status, 401);
  } finally {
    await other.close();
  }
});

test("below a base path the pages, the login and the forms work the same", async () => {
  const admin = newKey();
  const world = await startPagesWorld({ NGIT_ADMIN_NPUBS: npubOf(admin.pubkey) }, "/grasp");
  try {
    const url = `${world.origin}/grasp/admin/login`;
    const headers = { origin: world.origin, authorization: authorization(admin, { url }) };
    const visitor = new AdminVisitor(world.origin);
    visitor.keepCookie(await fetch(url, { method: "POST", headers }));
    const page = await visitor.page("/grasp/admin/bans");
    assert.match(page, /action="\/grasp\/admin\/do\/ban"/);
    const form = /name="form" value="([^"]+)"/.exec(page)?.[1] ?? "";
    const fields = { form, back: "/admin/bans", type: "ip", target: "192.0.2.1" };
    const asked = await visitor.post("/grasp/admin/do/ban", fields);
    assert.equal(asked.status, 200);
    assert.match(await asked.text(), /Connections and requests from 192\.0\.2\.1 would be refused/);
    assert.doesNotMatch(await visitor.page("/grasp/admin/bans"), /192\.0\.2\.1/, "nothing is done before the answer");
    const done = await visitor.post("/grasp/admin/do/ban", { ...fields, sure: "yes" });
    assert.deepEqual([done.status, done.headers.get("location")], [303, "/grasp/admin/bans"]);
    assert.match(await visitor.page("/grasp/admin/bans"), /192\.0\.2\.1 is banned/);
  } finally {
    await world.close();
  }
});

test("logging out ends the session everywhere", async () => {
  const visitor = new AdminVisitor(server.httpUrl);
  await visitor.logInByLink(await newLink());
  const form = await visitor.formToken();
  const response = await visitor.post("/admin/logout", { form });
  assert.equal(response.status, 303);
  assert.match(response.headers.get("set-cookie") ?? "", /^holdfast-admin=; .*Max-Age=0/);
  assert.equal((await visitor.fetch("/admin")).status, 401);
  assert.equal((await visitor.fetch("/api/purgatory")).status, 401);
  assert.equal((await visitor.post("ban", { form, type: "ip", target: "192.0.2.1" })).status, 401);
});

test("relays are reconnected, left alone and followed again without a restart, and after one", async () => {
  const state = async () =>
    (await server.operate<RelayList>("relays.list", {})).relays.find(({ relay: key }) => key === relay.key);
  await until("the relay is connected", () => relay.openConnections === 1, withinMs);
  assert.match(await operator.page("/admin/relays"), new RegExp(relay.key));

  const connections = relay.connections;
  assert.equal(
    await operator.act("relays.reconnect", { relay: relay.url }, "/admin/relays"),
    `good: ${relay.key} is dialled now.`,
  );
  await until("it is dialled again", () => relay.connections > connections && relay.openConnections === 1, withinMs);

  assert.match(
    await operator.act("relays.ignore", { relay: relay.url, reason: "noisy" }, "/admin/relays"),
    /^good: .* is left alone/,
  );
  await until("its connection is closed", () => relay.openConnections === 0, withinMs);
  assert.equal((await state())?.ignored, true);
  assert.match(await operator.page("/admin/relays"), /noisy/);
  assert.match(await operator.act("relays.reconnect", { relay: relay.url }, "/admin/relays"), /^bad: .* is ignored/);

  await server.stop();
  const before = relay.connections;
  await server.start();
  client = await server.connect();
  await operator.logInByLink(await newLink());
  assert.match(await operator.page("/admin/relays"), /noisy/);
  assert.equal((await state())?.ignored, true);
  assert.equal(relay.connections, before);

  assert.match(await operator.act("relays.unignore", { relay: relay.url }, "/admin/relays"), /^good: /);
  await until("it is followed again", () => relay.openConnections === 1, withinMs);
  assert.match(await operator.act("relays.unignore", { relay: relay.url }, "/admin/relays"), /^bad: .* is not ignored/);

  await relay.stop();
  await until("the failure is known", async () => ((await state())?.failures ?? 0) > 0, withinMs);
  assert.match(await operator.page("/admin/relays"), /<dt>Last error<\/dt><dd>(?:refused|closed)/);
  await relay.listen();
  await operator.act("relays.reconnect", { relay: relay.url }, "/admin/relays");
  await until("it is back", () => relay.openConnections === 1, withinMs);
});

test("the command line does the same to relays", async () => {
  assert.match((await server.verb("relays", "ignore", relay.url, "--reason", "cli")).stdout, /is left alone/);
  const [list, dropped] = await Promise.all([
    server.verb("relays", "list"),
    server.verb("purgatory", "drop", "ab".repeat(32)),
  ]);
  assert.match(list.stdout, /^RELAY .*\n127\.0\.0\.1:\d+ +ignored .* cli/);
  assert.equal(dropped.code, 1);
  assert.match((await server.verb("relays", "unignore", relay.url)).stdout, /is followed again/);
  await until("the relay is back", () => relay.openConnections === 1, withinMs);
  assert.match((await server.verb("relays", "reconnect", relay.url)).stdout, /is dialled now/);
});

test("what waits is shown with what is missing; its servers are asked now; it is deleted", async () => {
  const key = newKey();
  const name = `${npubOf(key.pubkey)}/waits`;
  const missing = "12".repeat(20);
  const announcement = server.announcement(key, "waits", undefined, [["clone", "http://127.0.0.1:9/gone/waits.git"]]);
  const state = signed(key, 30618, [
    ["d", "waits"],
    ["refs/heads/main", missing],
    ["HEAD", "ref: refs/heads/main"],
  ]);
  for (const event of [announcement, state]) await client.publish(event);
  const page = await operator.page("/admin/purgatory");
  for (const part of ["waits", missing.slice(0, 8), "1 of its objects is missing", "nobody yet"]) {
    assert.ok(page.includes(part), part);
  }
  await until(
    "the hunt knows of it",
    async () => (await operator.act("purgatory.ask", { repository: name }, "/admin/purgatory")).startsWith("good"),
    withinMs,
  );
  await until(
    "the server was asked",
    async () =>
      /<span class="tag warn">[a-z-]+<\/span> <bdi>http:\/\/127\.0\.0\.1:9/.test(
        await operator.page("/admin/purgatory"),
      ),
    withinMs,
  );
  assert.match(await operator.act("purgatory.drop", { event: state.id }, "/admin/purgatory"), /^good: /);
  assert.doesNotMatch(await operator.page("/admin/purgatory"), new RegExp(missing.slice(0, 8)));
  assert.match(await operator.act("purgatory.drop", { event: state.id }, "/admin/purgatory"), /^bad: /);
  // It may come again.
  assert.match(String((await client.publish(state))[3]), /^purgatory:/);
});

test("a repository's public page says when its relays and git servers were in step, in our words only", async () => {
  const key = newKey();
  const name = `${npubOf(key.pubkey)}/peered`;
  const url = server.repositoryUrl(key, "peered");
  await server.host(client, key, "peered");
  const more = [
    ["relays", relay.url],
    ["clone", "http://127.0.0.1:9/gone/peered.git"],
  ];
  await client.publish(server.announcement(key, "peered", nowSeconds() + 1, more));
  const tags = [
    ["d", "peered"],
    ["refs/heads/main", "34".repeat(20)],
  ];
  await client.publish(signed(key, 30618, tags, "", nowSeconds() + 2));
  const row = async (place: string): Promise<string> =>
    (await (await fetch(`${url}/copies`)).text()).split("<tr>").find((part) => part.includes(`<bdi>${place}`)) ?? "";
  await until("the relay is in step", async () => (await row(relay.url)).includes(">equal<"), withinMs);
  assert.match(await row("http://127.0.0.1:9"), />not compared yet</);
  await until(
    "the git server was asked",
    async () => {
      await server.operate("purgatory.ask", { repository: name }).catch(() => undefined);
      return (await row("http://127.0.0.1:9")).includes(">out of reach<");
    },
    withinMs,
  );
  await relay.stop();
  await until("the relay failed", async () => (await row(relay.url)).includes(">out of reach<"), withinMs);
  const page = await (await fetch(url)).text();
  assert.match(page, /<dt>Storage<\/dt><dd>[\d.]+ (?:bytes|KiB) of 10 GiB; its owner uses/);
  const copies = await (await fetch(`${url}/copies`)).text();
  for (const shown of [page, copies]) assert.doesNotMatch(shown, /refused|ECONN|connect-failed/);
  await relay.listen();
  await server.operate("relays.reconnect", { relay: relay.url });
  await until("the relay is back", async () => (await row(relay.url)).includes(">equal<"), withinMs);
});

test("a repository is shown, checked, tidied, un-hosted, restored and banned", async () => {
  const key = newKey();
  const name = `${npubOf(key.pubkey)}/tool`;
  await server.host(client, key, "tool");
  const here = `/admin/repository?name=${encodeURIComponent(name)}`;
  const act = (operation: string, more: Record<string, string> = {}) =>
    operator.act(operation, { repository: name, ...more }, here);
  assert.match(await operator.page("/admin/repositories"), /tool/);
  const page = await operator.page(here);
  for (const part of ["served", "public page", "Owner's use", "All as signed", "Un-host"])
    assert.ok(page.includes(part), part);
  assert.equal(await act("repos.fsck"), "good: Checked: the repository is sound.");
  assert.match(await act("repos.gc"), /^good: (?:Tidied|Not tidied)/);
  assert.match(await act("repos.delete", { reason: "asked for" }), /^good: .* is served no more/);
  assert.equal((await fetch(server.repositoryUrl(key, "tool"))).status, 404);
  assert.match(await act("repos.delete"), /^bad: Not done: .* is deleted already/);
  assert.match(await act("repos.restore"), /^good: .* is served again/);
  assert.equal((await fetch(server.repositoryUrl(key, "tool"))).status, 200);
  const form = await operator.formToken();
  const fields = { type: "repository", target: name, reason: "bad", back: "/admin/bans", form };
  const asked = await (await operator.post("ban", fields)).text();
  assert.match(asked, /This would go: 1 stored event\./);
  assert.match(asked, new RegExp(`<li><code>.*${name}.*</code></li>`), "the repository is named");
  assert.match(asked, /can be brought back within \d+ days/);
  assert.match(asked, /<a href="\/admin\/bans">No, go back<\/a>/);
  assert.equal((await fetch(server.repositoryUrl(key, "tool"))).status, 200, "nothing is done before the answer");
  assert.match(await operator.act("ban", fields, "/admin/bans"), /^good: /);
  assert.equal((await fetch(server.repositoryUrl(key, "tool"))).status, 404);
  const lift = await (await operator.post("unban", fields)).text();
  assert.match(lift, /things? it removed (?:is|are) kept[\s\S]*name="restore" value="yes" checked/);
  const back = await operator.act("unban", { ...fields, restore: "yes" }, "/admin/bans");
  assert.match(back, /^good: The ban of .* is lifted; \d+ events? and 1 repository came back/);
  assert.equal((await fetch(server.repositoryUrl(key, "tool"))).status, 200);
  const partial = await operator.fetch("/admin/repository?name=npub1nonsense/x");
  assert.equal(partial.status, 404);
});

test("keys, events, lists and kinds are kept out and let in again; wrong input is said", async () => {
  const key = newKey();
  const npub = npubOf(key.pubkey);
  assert.match(await operator.act("ban", { type: "key", target: npub, reason: "spam" }, "/admin/bans"), /^good: /);
  const refused = await client.publish(server.announcement(key, "x"));
  assert.match(String(refused[3]), /^blocked: this key/);
  assert.match(await operator.page(`/admin/decisions?subject=${npub}/x`), /author-blocked/);
  const lately = await operator.page("/admin/decisions");
  assert.match(lately, /Refused lately[\s\S]*<span class="tag bad">refuse<\/span>[\s\S]*author-blocked/);
  assert.match(await operator.act("unban", { type: "key", target: npub }, "/admin/bans"), /^good: /);
  const announcement = server.announcement(key, "x", nowSeconds() + 1);
  assert.equal((await client.publish(announcement))[2], true);
  const why = await operator.page(`/admin/decisions?subject=${announcement.id}`);
  assert.match(why, /It waits/);
  assert.match(why, /<span class="tag warn">hold<\/span>/);
  assert.match(
    await operator.act("ban", { type: "event", target: announcement.id }, "/admin/bans"),
    /1 event was removed/,
  );

  const entry = { list: "repository-blacklist", entry: npub };
  assert.match(await operator.act("lists.add", { ...entry, reason: "no" }, "/admin/bans"), /^good: .* in force now/);
  assert.match(await operator.act("lists.add", entry, "/admin/bans"), /was on the list already/);
  assert.match(await operator.act("lists.remove", entry, "/admin/bans"), /^good: /);
  assert.match(await operator.act("kinds.set", { kind: "1621", taken: "no" }, "/admin/bans"), /not taken: 1621/);
  assert.match(await operator.act("kinds.set", { kind: "1621", taken: "yes" }, "/admin/bans"), /not taken: none/);
  for (const [operation, fields] of [
    ["ban", { type: "planet", target: "x" }],
    ["ban", { type: "ip", target: "x" }],
    ["ban", { type: "key", target: npubOf(server.admin.pubkey) }],
    ["lists.add", { list: "nonsense", entry: "x" }],
    ["kinds.set", { kind: "many", taken: "no" }],
    ["relays.ignore", { relay: "not a relay" }],
    ["purgatory.ask", { repository: "x" }],
  ] as const) {
    assert.match(await operator.act(operation, fields, "/admin/bans"), /^bad: Not done: /, operation);
  }
  for (const path of ["/admin/purgatory?repository=x", "/admin/repositories?owner=x", "/admin/nothing"]) {
    assert.equal((await operator.fetch(path)).status, 404, path);
  }
});

test("a machine token is made, shown once, listed and revoked; wrong input is said", async () => {
  const member = npubOf(newKey().pubkey);
  const here = "/admin/tokens";
  const act = (operation: string, fields: Record<string, string>) => operator.act(operation, fields, here);
  const made = await act("tokens.add", { member, push: "yes", repository: "", days: "", note: "<CI>" });
  const [, token = "", id = ""] = /^good: .*: (hft_([0-9a-f]{12})_[\w-]{43})$/.exec(made) ?? [];
  assert.notEqual(id, "", made);
  const page = await operator.page(here);
  assert.ok(page.includes(id) && page.includes("fetch and push") && page.includes("&lt;CI&gt;"));
  assert.ok(!page.includes(token), "it is not shown again");
  assert.match(await act("tokens.add", { member: "nobody", push: "no" }), /^bad: Not done: .*is not an npub/);
  assert.match(await act("tokens.add", { member, push: "no", days: "soon" }), /^bad: Not done: days/);
  assert.equal(await act("tokens.revoke", { id }), `good: Token ${id} opens nothing any more.`);
  assert.ok((await operator.page(here)).includes("There are no tokens."));
});

test("threat 14: what strangers and reasons say is text", async () => {
  const key = newKey();
  const attack = `"><script>alert(1)</script>`;
  const identifier = `x${attack}`;
  await client.publish(
    signed(key, 30617, [
      ["d", identifier],
      ["clone", `${server.httpUrl}/${npubOf(key.pubkey)}/${encodeURIComponent(identifier)}.git`],
      ["relays", `ws://localhost:${server.port}`],
    ]),
  );
  await operator.act("ban", { type: "ip", target: "192.0.2.99", reason: attack }, "/admin/bans");
  const subject = encodeURIComponent(attack);
  for (const path of [
    "/admin/purgatory",
    "/admin/bans",
    "/admin/audit",
    "/admin/repositories",
    `/admin/decisions?subject=${subject}`,
  ]) {
    const response = await operator.fetch(path);
    const page = await response.text();
    assert.doesNotMatch(page, /<script>/, path);
    assert.match(page, /&lt;script&gt;/, path);
    assert.match(response.headers.get("content-security-policy") ?? "", /script-src 'self'; /);
  }
});

test("every change is in the audit with who made it and how", async () => {
  const visitor = new AdminVisitor(server.httpUrl);
  visitor.keepCookie(await visitor.signIn(authorization(server.admin, { url: `${server.httpUrl}/admin/login` })));
  await visitor.act("ban", { type: "ip", target: "198.51.100.1", reason: "by key" });
  await operator.act("ban", { type: "ip", target: "198.51.100.2", reason: "by link" });
  const { changes } = await server.operate<{ changes: AuditRow[] }>("audit.list", { limit: 2 });
  assert.deepEqual(
    changes.map(({ who, via, what, target }) => [who, via, what, target]),
    [
      ["operator", "page", "block network", "198.51.100.2"],
      [npubOf(server.admin.pubkey), "page", "block network", "198.51.100.1"],
    ],
  );
  const page = await operator.page("/admin/audit");
  for (const part of ["by key", "by link", "reconnect relay", "ignore relay", "unhost repository"]) {
    assert.ok(page.includes(part), part);
  }
});

test("the log is shown, streamed to who is logged in, and ends with the session", async () => {
  const visitor = new AdminVisitor(server.httpUrl);
  await visitor.logInByLink(await newLink());
  assert.match(await visitor.page("/admin/log"), /listening/);
  const stream = await visitor.fetch("/admin/log/stream?after=0");
  assert.equal(stream.headers.get("content-type"), "text/event-stream; charset=utf-8");
  let heard = "";
  const reading = (async () => {
    for await (const chunk of stream.body ?? []) heard += Buffer.from(chunk).toString("utf8");
  })();
  await until("old lines came", () => heard.includes("listening"), withinMs);
  const before = heard.length;
  await relay.stop();
  await until("a new line came", () => heard.slice(before).includes("the connection to a relay was lost"), withinMs);
  await visitor.post("/admin/logout", { form: await visitor.formToken() });
  const known = heard;
  await relay.listen();
  await server.operate("relays.reconnect", { relay: relay.url });
  await until("the relay is back", () => relay.openConnections === 1, withinMs);
  // The next line was for nobody: the stream is over.
  await reading;
  assert.equal(heard, known);
});

test("a client that goes away in the middle of a body costs nobody anything", async () => {
  for (const path of ["/", "/admin/login", "/api/status"]) {
    const socket = connect(server.port, "127.0.0.1");
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n`);
    socket.write("Content-Type: application/nostr+json+rpc\r\n\r\n{");
    await fetch(`${server.httpUrl}/healthz`);
    socket.destroy();
    await once(socket, "close");
  }
  assert.match(await operator.page("/admin/log"), /listening/);
});

test("blocking a network ends its open connections at once, and nobody else's", async () => {
  const address = { "x-forwarded-for": "203.0.113.7" };
  const blocked = await RelayClient.connect(`ws://127.0.0.1:${server.port}`, { headers: address });
  const bystander = await RelayClient.connect(`ws://127.0.0.1:${server.port}`, {
    headers: { "x-forwarded-for": "203.0.114.7" },
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const idle = httpGet({ port: server.port, agent, path: "/healthz", headers: address });
  const [answer] = (await once(idle, "response")) as [NodeJS.ReadableStream];
  const closed = once(idle.socket ?? idle, "close");
  answer.resume();
  await once(answer, "end");
  const gone = once(blocked.socket, "close");
  const busy = connect(server.port, "127.0.0.1");
  busy.write("POST / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.7\r\nContent-Length: 1000\r\n");
  busy.write("Content-Type: application/nostr+json+rpc\r\n\r\n{");
  const cut = once(busy, "close");
  busy.on("error", () => undefined).resume();
  // Answered in order after it: the server has read the busy one's headers by then.
  await fetch(`${server.httpUrl}/healthz`);
  assert.match(
    await operator.act("ban", { type: "ip", target: "203.0.113.0/24", reason: "scan" }, "/admin/bans"),
    /^good/,
  );
  await gone;
  await closed;
  await cut;
  agent.destroy();
  const { end } = await bystander.ask("still-here", { kinds: [30617], limit: 1 });
  assert.equal(end[0], "EOSE");
  await assert.rejects(RelayClient.connect(`ws://127.0.0.1:${server.port}`, { headers: address }));
  assert.match(await operator.act("unban", { type: "ip", target: "203.0.113.0/24" }, "/admin/bans"), /^good/);
  const again = await RelayClient.connect(`ws://127.0.0.1:${server.port}`, { headers: address });
  await again.close();
  await bystander.close();
});
