// The one port over real sockets: CORS, NIP-11, landing, health, metrics, upgrades, what the parser refuses.

import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { Counter, Registry } from "prom-client";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { healthRoutes, metricsRoute } from "../../src/http/monitoring.js";
import { wellKnownRoutes } from "../../src/http/nip11.js";
import type { Route } from "../../src/http/routes.js";
import { landingPage, landingRoute } from "../../src/web/landing.js";
import { RelayClient } from "../harness/relay-client.js";
import { keyOf } from "../harness/relay-events.js";
import { testFacts } from "../harness/relay-facts.js";
import { startRelay, type TestRelay } from "../harness/relay-server.js";

const key = keyOf("server");
const landingFacts = {
  site: {
    name: '<img src=x onerror="alert(1)">',
    basePath: "/base",
    relayUrl: "wss://relay.example.com/base",
    httpUrl: "https://relay.example.com/base",
    version: "1.0.0",
    isPrivate: false,
  },
  relay: {
    ...testFacts,
    description: "Here be 'dragons' & repositories",
    supportedNips: [1],
    repoAcceptanceCriteria: "Anything <b>polite</b>.",
    supportedGrasps: ["GRASP-01"],
  },
  budgets: {
    maxEventBytes: 1_048_576,
    pushMaxBytes: 2 ** 30,
    maxObjectBytes: 2 ** 28,
    repositoryMaxBytes: 2 ** 31,
    npubMaxBytes: 2 ** 33,
  },
  activity: [],
  cards: {
    list: [],
    choice: { sort: "activity" as const, topic: undefined, page: 1 },
    total: 0,
    pages: 1,
    isCut: false,
    topics: [],
    people: new Map(),
  },
  repositories: 1_234,
  events: 5,
};

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

describe("the HTTP server", { timeout: 900_000 }, () => {
  let server: TestRelay;
  let ready = true;
  const clock = new ManualClock();
  const registry = new Registry();
  new Counter({ name: "test_total", help: "test", registers: [registry] }).inc();
  const throwing: Route = {
    matches: ({ localPath }) => localPath === "/throws",
    handle: () => Promise.reject(new Error("a bug")),
  };
  before(async () => {
    const routes = [
      landingRoute(() => landingFacts),
      ...healthRoutes(
        [
          { name: "store", isReady: () => ready },
          { name: "git", isReady: async () => true },
        ],
        { clock, keptMs: () => 1_000 },
        () => undefined,
      ),
      metricsRoute(registry, { clock, keptMs: () => 1_000 }, () => ({ isPublic: false, token: "secret" })),
      ...wellKnownRoutes(key.pubkey, "wss://relay.example.com", false),
      throwing,
    ];
    server = await startRelay({ routes, basePath: "/base" });
  });
  after(() => server.close());

  function ask(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const asked = request(
        { host: "127.0.0.1", port: server.port, path, method, headers, agent: false },
        (response) => {
          let body = "";
          response.on("data", (data: Buffer) => {
            body += String(data);
          });
          response.on("end", () => {
            const names = response.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
            assert.equal(new Set(names).size, names.length, `${path}: a header came twice`);
            assert.equal(response.headers["access-control-allow-origin"], "*", path);
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
          });
        },
      );
      asked.on("error", reject);
      asked.end();
    });
  }

  /** Bytes as they are, and everything that comes back until the server closes. */
  async function raw(bytes: string, port = server.port): Promise<string> {
    const socket = connect(port, "127.0.0.1");
    let heard = "";
    socket.on("data", (data: Buffer) => {
      heard += String(data);
    });
    socket.write(bytes);
    await once(socket, "close");
    return heard;
  }

  test("every response has the CORS headers once: pages, errors, refusals of the parser", async () => {
    for (const [path, status] of [
      ["/", 200],
      ["/nothing", 404],
      ["/throws", 500],
      ["/healthz", 200],
    ] as const) {
      assert.equal((await ask(path)).status, status, path);
    }
    assert.equal(server.faults.length, 1);
    const { headers } = await ask("/");
    assert.equal(
      headers["access-control-allow-headers"],
      "Authorization, Content-Type, Git-Protocol, Accept, Content-Encoding, X-Requested-With",
    );
    assert.equal(headers["access-control-allow-methods"], "GET, POST, PUT, OPTIONS");
    const refused = await raw("NOT HTTP AT ALL\r\n\r\n");
    assert.match(refused, /^HTTP\/1\.1 400 /);
    assert.equal(refused.match(/access-control-allow-origin: \*/gi)?.length, 1);
    const large = await raw(`GET / HTTP/1.1\r\nHost: x\r\nX-Big: ${"x".repeat(100_000)}\r\n\r\n`);
    assert.match(large, /^HTTP\/1\.1 431 [\s\S]*access-control-allow-origin/i);
  });

  test("OPTIONS is 204 on any path, and for OPTIONS *", async () => {
    for (const path of ["/", "/npub1x/y.git/git-receive-pack", "/nothing", "*"]) {
      const { status, body } = await ask(path, { Origin: "https://example.org" }, "OPTIONS");
      assert.equal(status, 204, path);
      assert.equal(body, "");
    }
  });

  test("NIP-11 is served at / and the base path, also when Accept lists several types", async () => {
    const types = ["application/nostr+json", "text/html, application/nostr+json;q=0.9, */*", "Application/Nostr+JSON"];
    for (const path of ["/", "/base", "/base/"]) {
      for (const accept of path === "/" ? types.slice(0, 2) : types.slice(0, 1)) {
        const { status, headers, body } = await ask(path, { Accept: accept });
        assert.equal(status, 200);
        assert.equal(headers["content-type"], "application/nostr+json");
        const document = JSON.parse(body) as Record<string, unknown>;
        assert.deepEqual(document.supported_nips, [1, 11, 70]);
        assert.deepEqual(document.supported_grasps, ["GRASP-01"]);
        assert.equal("curation" in document, false);
        const limitation = document.limitation as Record<string, unknown>;
        assert.equal(limitation.max_filter_values, 5_000);
        assert.equal(limitation.max_message_length, 5 * 1024 * 1024);
        assert.equal(limitation.created_at_lower_limit, undefined);
      }
    }
  });

  test("threat 14: the landing page escapes its facts and allows no inline script", async () => {
    const { status, headers, body } = await ask("/", { Accept: "text/html" });
    assert.equal(status, 200);
    assert.match(String(headers["content-type"]), /^text\/html/);
    assert.doesNotMatch(body, /<img|<b>polite|<script>/);
    assert.match(body, /&lt;img src=x onerror=&quot;alert\(1\)&quot;&gt;/);
    const policy = String(headers["content-security-policy"]);
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /script-src 'self';/);
    assert.doesNotMatch(policy, /unsafe/);
    assert.match(body, /<html lang="en">[\s\S]*<h1>/);
    assert.equal(landingPage(landingFacts).body, body);
  });

  test("HEAD answers like GET without a body", async () => {
    const { status, headers, body } = await ask("/", {}, "HEAD");
    assert.equal(status, 200);
    assert.ok(Number(headers["content-length"]) > 100);
    assert.equal(body, "");
  });

  test("/healthz is the process, /readyz is all checks", async () => {
    assert.deepEqual(JSON.parse((await ask("/readyz")).body), { status: "ready", checks: { store: true, git: true } });
    ready = false;
    clock.advance(1_000);
    const { status, body } = await ask("/base/readyz");
    assert.equal(status, 503);
    assert.deepEqual(JSON.parse(body), { status: "not ready", checks: { store: false, git: true } });
    ready = true;
    assert.equal((await ask("/healthz")).status, 200);
  });

  test("threat 31: /metrics is for local peers that nobody forwarded, or with the token", async () => {
    assert.match((await ask("/metrics")).body, /^test_total 1$/m);
    const forwarded = { "X-Forwarded-For": "127.0.0.1" };
    const { status, body } = await ask("/metrics", forwarded);
    assert.equal(status, 401);
    assert.doesNotMatch(body, /test_total/);
    assert.equal((await ask("/metrics", { ...forwarded, Authorization: "Bearer wrong" })).status, 401);
    assert.equal((await ask("/metrics", { ...forwarded, Authorization: "Bearer secret" })).status, 200);
  });

  test("/.well-known/nostr.json names the server for _ only; robots.txt is there", async () => {
    const { body } = await ask("/.well-known/nostr.json?name=_");
    assert.equal((JSON.parse(body) as { names: Record<string, string> }).names._, key.pubkey);
    assert.deepEqual(JSON.parse((await ask("/.well-known/nostr.json?name=__proto__")).body), { names: {} });
    const robots = (await ask("/robots.txt")).body;
    assert.match(robots, /^User-agent: \*/);
    for (const page of ["commit", "compare", "blame", "raw", "archive"]) {
      assert.ok(robots.includes(`Disallow: /*.git/${page}/\n`), page);
    }
    assert.doesNotMatch(robots, /\.git\/(?:tree|blob)/);
  });

  test("WebSockets are taken at / and the base path only; other paths are 404, other protocols not taken up", async () => {
    for (const path of ["", "base", "base/", "?x=1"]) {
      const client = await RelayClient.connect(server.url + path);
      assert.equal((await client.ask("q", { limit: 0 })).end[0], "EOSE");
      await client.close();
    }
    await assert.rejects(RelayClient.connect(`${server.url}elsewhere`), /404/);
    await assert.rejects(RelayClient.connect(`${server.url}basement`), /404/);
    const other = await raw("GET /healthz HTTP/1.0\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
    assert.match(other, /^HTTP\/1\.1 200 [\s\S]*access-control-allow-origin/i);
    const keyless = await raw("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert.match(keyless, /^HTTP\/1\.1 400 [\s\S]*access-control-allow-origin/i);
  });

  test("threat 25: a handshake that never ends is ended", async (t) => {
    const impatient = await startRelay({ headersTimeoutMs: 500 }, t);
    const heard = await raw("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n", impatient.port);
    assert.match(heard, /^HTTP\/1\.1 408 /);
  });
});
