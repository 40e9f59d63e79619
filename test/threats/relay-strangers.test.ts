// threats.md rows 28 and 31 against the started server: who somebody is, and what he may know. The tokens of NIP-98 one
// by one are in admin-management.test.ts; here is what goes wrong between two uses, two connections, two protocols.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { WebSocketServer } from "ws";
import type { SecretKey } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { newKey, OperatorServer, signed } from "../harness/operator-server.js";
import type { RelayClient } from "../harness/relay-client.js";
import { type EventWish, keyOf, sign, type TestKey } from "../harness/relay-events.js";
import { eventually, nowSeconds, RelayWorld } from "./relay-world.js";

const alice = keyOf("alice");
const mallory = keyOf("mallory");

describe("threat 28", { timeout: 500_000 }, () => {
  test("threat 28: a challenge of another connection, stale, for another relay, replayed: a protected event stays unseen on REQ, live, COUNT and NEG", async (t) => {
    const world = await RelayWorld.start(t);
    const watcher = await world.client();
    await watcher.ask("live", { kinds: [1621] });
    const mine = world.issue(alice, "mine", { tags: [["-"]] }).event;
    /** A connection that was asked who it is. */
    const asked = async (): Promise<[RelayClient, string]> => {
      const client = await world.client();
      const challenge = client.next(([verb]) => verb === "AUTH");
      assert.match((await world.publish(mine, client))[1], /^auth-required: /);
      return [client, String((await challenge)[1])];
    };
    const answer = (key: TestKey, challenge: string, wish: EventWish & { relay?: string } = {}) => {
      const { relay = world.url, ...rest } = wish;
      const tags = [
        ["relay", relay],
        ["challenge", challenge],
      ];
      const { raw: _raw, ...event } = sign(key, { kind: 22_242, created_at: nowSeconds(), tags, ...rest });
      return event;
    };
    const authenticate = async (client: RelayClient, event: { id: string }): Promise<boolean> => {
      const ok = client.next(([verb, id]) => verb === "OK" && id === event.id);
      client.send("AUTH", event);
      return (await ok)[2] === true;
    };
    const isUnseen = async (client: RelayClient, name: string) => {
      assert.equal((await world.publish(mine, client))[0], false, name);
      for (const filter of [
        { ids: [mine.id] },
        { authors: [alice.pubkey] },
        { "#a": [world.coordinate], kinds: [1621] },
      ]) {
        assert.deepEqual((await client.ask("q", filter)).events, [], name);
        assert.equal(await world.count(filter, client), 0, name);
        const told = client.next(([verb, id]) => String(verb).startsWith("NEG-") && id === "n");
        client.send("NEG-OPEN", "n", filter, "6100000200");
        const [verb, , message] = await told;
        assert.equal(verb, "NEG-MSG", String(message));
        assert.ok(!String(message).includes(mine.id), name);
        client.send("NEG-CLOSE", "n");
      }
    };
    const [first, challenge] = await asked();
    const [second, otherChallenge] = await asked();
    assert.notEqual(challenge, otherChallenge);
    const { port } = new URL(world.url.replace("ws", "http"));
    const attempts: [string, { id: string }][] = [
      ["another connection's challenge", answer(alice, otherChallenge)],
      ["no challenge", answer(alice, "")],
      ["half the challenge", answer(alice, challenge.slice(0, -1))],
      ["stale", answer(alice, challenge, { created_at: nowSeconds() - 700 })],
      ["from the future", answer(alice, challenge, { created_at: nowSeconds() + 700 })],
      ["another relay", answer(alice, challenge, { relay: "wss://relay.example.com" })],
      ["another port", answer(alice, challenge, { relay: `ws://127.0.0.1:${Number(port) + 1}` })],
      ["a name that begins alike", answer(alice, challenge, { relay: `ws://127.0.0.1:${port}.example.com` })],
      ["a name in the user part", answer(alice, challenge, { relay: `ws://127.0.0.1:${port}@example.com` })],
      ["another path", answer(alice, challenge, { relay: `${world.url}/x` })],
      ["another kind", answer(alice, challenge, { kind: 27_235 })],
      ["another's signature", { ...answer(alice, challenge), sig: answer(mallory, challenge).sig } as { id: string }],
    ];
    for (const [name, event] of attempts) {
      assert.equal(await authenticate(first, event), false, name);
      await isUnseen(first, name);
    }
    // Somebody else's proof proves somebody else.
    assert.equal(await authenticate(first, answer(mallory, challenge)), true);
    await isUnseen(first, "authenticated as another");
    const good = answer(alice, otherChallenge);
    assert.equal(await authenticate(second, good), true);
    assert.equal(await authenticate(second, good), false, "replayed here");
    assert.equal(await authenticate(first, good), false, "replayed there");
    const [third] = await asked();
    assert.equal(await authenticate(third, good), false, "replayed on a new connection");
    await isUnseen(third, "replayed");
    for (const proof of [good, answer(mallory, challenge)])
      assert.equal((await world.publish(proof, second))[0], false);
    assert.deepEqual(watcher.eventsOf("live"), []);
    assert.deepEqual(await world.ids({ kinds: [22_242, 1621] }), [], "nothing was stored on the way");

    assert.deepEqual(await world.publish(mine, second), [true, ""]);
    await eventually("live has it once", () => watcher.eventsOf("live").length === 1);
    assert.deepEqual(await world.ids({ ids: [mine.id] }), [mine.id]);
  });

  test("threat 28: a NIP-98 token counts once, for one URL and body, and is worth nothing as another kind of proof", async (t) => {
    const server = await OperatorServer.start();
    t.after(() => server.close());
    const client = await server.connect();
    t.after(() => client.close());
    const tokenEvent = (path: string, method = "GET", body?: string, kind = 27_235, key: SecretKey = server.admin) => {
      const payload = body === undefined ? [] : [["payload", createHash("sha256").update(body).digest("hex")]];
      const nonce = ["nonce", randomBytes(8).toString("hex")];
      return signed(key, kind, [["u", `${server.httpUrl}${path}`], ["method", method], nonce, ...payload]);
    };
    const headerOf = (event: object) => `Nostr ${Buffer.from(JSON.stringify(event)).toString("base64")}`;
    const get = async (path: string, event: object) =>
      (await fetch(`${server.httpUrl}${path}`, { headers: { authorization: headerOf(event) } })).status;
    const post = async (body: string, event: object) =>
      fetch(server.httpUrl, {
        method: "POST",
        headers: { "content-type": "application/nostr+json+rpc", authorization: headerOf(event) },
        body,
      });
    const raced = tokenEvent("/api/repos");
    const statuses = await Promise.all(Array.from({ length: 20 }, () => get("/api/repos", raced)));
    assert.deepEqual(statuses.sort(), [200, ...Array(19).fill(401)]);

    const victim = newKey();
    const harmless = JSON.stringify({ method: "stats", params: [] });
    const harmful = JSON.stringify({ method: "banpubkey", params: [victim.pubkey] });
    for (const [name, body, event] of [
      ["swapped body", harmful, tokenEvent("/", "POST", harmless)],
      ["body with something added", `${harmless} `, tokenEvent("/", "POST", harmless)],
      ["no payload", harmful, tokenEvent("/", "POST")],
      ["for a page of /api", harmful, tokenEvent("/api/repos", "POST", harmful)],
      ["an AUTH event", harmful, tokenEvent("/", "POST", harmful, 22_242)],
      ["a note", harmful, tokenEvent("/", "POST", harmful, 1)],
      ["another's", harmful, tokenEvent("/", "POST", harmful, 27_235, victim)],
    ] as const) {
      assert.equal((await post(body, event)).status, 401, name);
    }
    for (const path of [
      "/api/purgatory?limit=1",
      "/api/purgatory/",
      "/api/repos?owner=x",
      "/api/why/x",
      "/api/audit",
    ]) {
      assert.equal(await get(path, tokenEvent("/api/purgatory")), path === "/api/purgatory/" ? 200 : 401, path);
    }
    // As an event on the relay it is nothing: refused, not stored, and the key of an admin opens no AUTH.
    const asEvent = tokenEvent("/api/repos");
    const { raw: _raw, ...plain } = asEvent;
    await client.publish(plain);
    assert.deepEqual((await client.ask("q", { kinds: [27_235, 22_242] })).events, []);
    assert.equal(await get("/api/repos", asEvent), 200, "to show a token to the relay does not use it up");
    const answer = await post(
      JSON.stringify({ method: "listbannedpubkeys", params: [] }),
      tokenEvent("/", "POST", JSON.stringify({ method: "listbannedpubkeys", params: [] })),
    );
    assert.deepEqual(((await answer.json()) as { result: unknown }).result, []);
  });
});

const remoteWords = "REMOTE-SECRET-ANSWER";

/** A relay and git server whose every word is a secret of its own network. */
async function talkativeServer(t: TestContext): Promise<number> {
  const http = createServer((_request, response) => response.writeHead(418, remoteWords).end(`${remoteWords}\n`));
  const sockets = new WebSocketServer({ server: http });
  sockets.on("connection", (socket) => {
    socket.on("error", () => undefined);
    socket.send(JSON.stringify(["NOTICE", `error: ${remoteWords}`]));
    socket.on("message", (data) => {
      const [verb, id] = JSON.parse(String(data)) as string[];
      if (verb === "REQ") socket.send(JSON.stringify(["CLOSED", id, `error: ${remoteWords}`]));
      if (verb === "NEG-OPEN") socket.send(JSON.stringify(["NEG-ERR", id, `error: ${remoteWords}`]));
    });
  });
  await new Promise<void>((go) => http.listen(0, "127.0.0.1", go));
  t.after(() => {
    for (const socket of sockets.clients) socket.terminate();
    http.closeAllConnections();
    http.close();
  });
  return (http.address() as AddressInfo).port;
}

interface Answered {
  readonly status: number;
  readonly text: string;
}

function ask(port: number, path: string, headers: Record<string, string>, method = "GET"): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const asking = request({ host: "127.0.0.1", port, path, headers, method, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        body += part;
      });
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, text: `${response.rawHeaders.join("\n")}\n\n${body}` }),
      );
    });
    asking.on("error", reject);
    asking.end();
  });
}

describe("threat 31", { timeout: 500_000 }, () => {
  test("threat 31: strangers learn nothing about held events, remote errors or waiting repositories from any address, through any proxy", async (t) => {
    const server = await OperatorServer.start();
    t.after(() => server.close());
    const client = await server.connect();
    t.after(() => client.close());
    const remote = await talkativeServer(t);
    const owner = newKey();
    const hidden = newKey();
    const { announcement: shown } = await server.host(client, owner, "shown");
    const hiddenAnnouncement = signed(hidden, 30617, [
      ["d", "hidden-project"],
      ["name", "HELD-NAME"],
      ["description", "HELD-DESCRIPTION"],
      ["clone", server.repositoryUrl(hidden, "hidden-project"), `http://127.0.0.1:${remote}/x/y.git`],
      ["relays", `ws://localhost:${server.port}`, `ws://127.0.0.1:${remote}`],
    ]);
    const missing = "ab".repeat(20);
    const held = [
      hiddenAnnouncement,
      signed(hidden, 30618, [
        ["d", "hidden-project"],
        ["refs/heads/held-branch", missing],
        ["HEAD", "ref: refs/heads/held-branch"],
      ]),
      signed(
        hidden,
        1618,
        [
          ["a", `30617:${owner.pubkey}:shown`],
          ["c", missing],
          ["subject", "HELD-SUBJECT"],
          ["clone", `http://127.0.0.1:${remote}/x/y.git`],
        ],
        "HELD-CONTENT",
      ),
      signed(
        hidden,
        1621,
        [
          ["a", `30617:${hidden.pubkey}:hidden-project`],
          ["subject", "HELD-SUBJECT"],
        ],
        "HELD-CONTENT",
      ),
    ];
    for (const { raw: _raw, ...event } of held) {
      const [, , accepted, text] = await client.publish(event);
      assert.equal(accepted, true, String(text));
    }
    const refusedEvent = signed(hidden, 1, [], "REFUSED-CONTENT");
    const { raw: _refused, ...refused } = refusedEvent;
    assert.equal((await client.publish(refused))[2], false);
    const npub = npubOf(hidden.pubkey);
    // The operator sees all of it: what is hidden below is really there.
    const purgatory = await server.operate<{ waiting: { id: string }[] }>("purgatory.list", { limit: 50 });
    const waiting = new Set(purgatory.waiting.map(({ id }) => id));
    assert.ok(held.slice(0, 3).every(({ id }) => waiting.has(id)));
    await eventually("the remote relay was asked", async () => {
      const text = (await ask(server.port, "/metrics", { host: "localhost" })).text;
      return /ngit_sync_connection_attempts_total\{[^}]*\} [1-9]/.test(text);
    });

    const secrets = [
      ...held.map(({ id }) => id),
      refusedEvent.id,
      hidden.pubkey,
      "HELD-",
      "REFUSED-CONTENT",
      remoteWords,
      "held-branch",
      missing,
      server.folder,
      `127.0.0.1:${remote}`,
    ];
    const knows = (text: string, asked: string): string | undefined =>
      // What the stranger himself wrote into the address he knows already; an npub is the key in another writing.
      secrets.find(
        (secret) =>
          text.includes(secret) && !asked.includes(secret) && !(secret === hidden.pubkey && asked.includes(npub)),
      );
    const repository = `/${npub}/hidden-project.git`;
    const paths = [
      ...["/api", "/api/", "/api/status", "/api/purgatory", "/api/purgatory?limit=50", "/api/repos", "/api/bans"],
      ...[
        "/api/lists",
        "/api/audit",
        "/api/sync",
        "/api/nothing",
        "//api/purgatory",
        "/api//purgatory",
        "/API/purgatory",
      ],
      ...[
        "/api/./purgatory",
        "/x/../api/purgatory",
        "/api/purgatory%3f",
        "/%61pi/purgatory",
        "/api/why/",
        "/api/why/%00",
      ],
      ...held.map(({ id }) => `/api/why/${id}`),
      ...[`/api/why/${npub}/hidden-project`, `/api/repos/${npub}/hidden-project`, `/api/why/${"0".repeat(64)}`],
      ...["/metrics", "/metrics/", "//metrics", "/metrics?x", "/%6detrics", "/status", "/status?x=1", "/admin"],
      ...[
        "/admin/login",
        "/admin/login?token=x",
        "/",
        "/?q=HELD",
        "/?q=hidden-project",
        "/?q=secret",
        "/healthz",
        "/readyz",
      ],
      ...[
        "/.well-known/nostr.json?name=_",
        "/robots.txt",
        `/${npub}`,
        repository,
        `${repository}/`,
        `${repository}/info/refs`,
      ],
      ...[`${repository}/info/refs?service=git-upload-pack`, `${repository}/HEAD`, `${repository}/config`],
      ...[`/badge/${npub}/hidden-project.svg`, `/${npubOf(owner.pubkey)}/shown.git`, "/nothing", "*"],
      `http://localhost/api/purgatory`,
    ];
    const strangers: Record<string, string>[] = [
      { host: "localhost", "x-forwarded-for": "203.0.113.7" },
      { host: "localhost", "x-forwarded-for": "127.0.0.1" },
      { host: "localhost", "x-forwarded-for": "::1, 127.0.0.1" },
      { host: "localhost", forwarded: "for=203.0.113.7" },
      { host: "localhost", "x-real-ip": "203.0.113.7" },
      { host: "localhost", via: "1.1 proxy" },
      { host: "git.example.com" },
      { host: "evil.example", "x-forwarded-host": "localhost" },
      { host: "localhost", origin: "https://evil.example" },
      { host: "git.example.com", cookie: "holdfast-admin=", authorization: "Bearer " },
      { host: "git.example.com", cookie: "holdfast-admin=undefined", authorization: "Nostr e30=" },
      { host: "git.example.com", authorization: "Basic YWRtaW46YWRtaW4=" },
    ];
    for (const [at, stranger] of strangers.entries()) {
      for (const path of paths) {
        const accept = path.startsWith("/api") ? "application/json" : "text/html,*/*";
        const { status, text } = await ask(server.port, path, { accept, ...stranger });
        const name = `${path} as ${JSON.stringify(stranger)}`;
        assert.ok(status < 500 || path === "*", `${name}: ${status}`);
        assert.equal(knows(text, path), undefined, name);
        if (path.startsWith("/metrics")) assert.ok(status === 401 || status === 404, name);
        if (/^\/api\/(?!status)/.test(path)) assert.ok([401, 403].includes(status), `${name}: ${status}`);
        // Other methods open nothing either.
        if (at === 0) {
          for (const method of ["HEAD", "POST", "PUT", "DELETE", "PATCH"]) {
            const other = await ask(server.port, path, { accept, ...stranger }, method);
            assert.equal(knows(other.text, path), undefined, `${method} ${name}`);
          }
        }
      }
    }
    // What exists and what does not is refused alike.
    const strange = { host: "git.example.com" };
    const bodies = await Promise.all(
      [
        `/api/why/${held[0]?.id}`,
        `/api/why/${"0".repeat(64)}`,
        `/api/repos/${npub}/hidden-project`,
        "/api/repos/x/y",
      ].map(async (path) => (await ask(server.port, path, strange)).text.split("\n\n").at(-1)),
    );
    assert.equal(new Set(bodies).size, 1);
    // For this machine there are numbers, but no names of what waits and no remote words.
    const metrics = (await ask(server.port, "/metrics", { host: "localhost" })).text;
    for (const secret of secrets.slice(0, -1)) assert.ok(!metrics.includes(secret), secret);

    // On the relay: neither by id, author, address or words, nor by counting or comparing.
    const stranger = await server.connect();
    t.after(() => stranger.close());
    const filters = [
      { ids: held.map(({ id }) => id) },
      { authors: [hidden.pubkey] },
      { "#a": [`30617:${hidden.pubkey}:hidden-project`] },
      { "#d": ["hidden-project"] },
      { "#c": [missing] },
      { search: "HELD-NAME" },
      { search: "HELD-SUBJECT" },
    ];
    for (const filter of filters) {
      assert.deepEqual((await stranger.ask("q", filter)).events, []);
      const count = stranger.next(([verb]) => verb === "COUNT");
      stranger.send("COUNT", "c", filter);
      assert.deepEqual((await count)[2], { count: 0 });
      const told = stranger.next(([verb]) => String(verb).startsWith("NEG-"));
      stranger.send("NEG-OPEN", "n", filter, "6100000200");
      const [, , message] = await told;
      assert.ok(!held.some(({ id }) => String(message).includes(id)));
      stranger.send("NEG-CLOSE", "n");
    }
    assert.equal((await stranger.ask("shown", { ids: [shown.id] })).events.length, 1);
  });
});
