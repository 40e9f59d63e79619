// Attacks on a private service (GRASP-08): what strangers try to learn, credentials used for what they are not for, members who
// want more than they may, and servers of others that want our signature. Each refusal leaves nothing behind.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { systemClock } from "../../src/base/clock.js";
import { createMemoryStore } from "../../src/store/memory/memory-store.js";
import type { Store } from "../../src/store/port.js";
import { Person } from "../harness/grasp-people.js";
import type { WorkingCopy } from "../harness/grasp-story.js";
import type { HuntGitServer } from "../harness/hunt-git-server.js";
import { until } from "../harness/hunt-house.js";
import { huntWorld, impatient } from "../harness/hunt-world.js";
import { authenticate, basic, type PrivateService, signedHeader, startPrivate } from "../harness/private-service.js";
import { ask, exchange } from "../harness/raw-http.js";
import { keyOf } from "../harness/relay-events.js";
import type { LogLine } from "../harness/server.js";

/** Counts look-ups of `nothing`, which no work of the server's own concerns, in the only table that says what there is. */
function countingStore(): { readonly store: Store; readonly looks: () => number } {
  let looks = 0;
  const inner = createMemoryStore({ clock: systemClock });
  const store = new Proxy(inner, {
    get(target, name) {
      const value = Reflect.get(target, name, target) as unknown;
      if (typeof value !== "function") return value;
      return (...given: unknown[]) => {
        if (name === "row" && given[0] === "catalogue" && String(given[1]).includes("nothing")) looks++;
        return (value as (...args: unknown[]) => unknown).apply(target, given);
      };
    },
  });
  return { store, looks: () => looks };
}

const secondsOf = (ms: number): number => Math.floor(ms / 1000);
const metricsBearer = "Bearer 0123456789abcdef";
const upload = "info/refs?service=git-upload-pack";

describe("threats to a private service", { timeout: 300_000 }, () => {
  let service: PrivateService;
  let work: WorkingCopy;
  let root: string;
  const counted = countingStore();
  const log: LogLine[] = [];

  before(async () => {
    service = await startPrivate({
      store: counted.store,
      settings: { NGIT_GRASP06_ENABLE: "true", NGIT_METRICS_TOKEN: "0123456789abcdef" },
      onLog: (line) => void log.push(line),
    });
    const { alice, story } = service;
    root = story.url(alice, "topsecret");
    await story.announce(alice, "topsecret");
    work = await story.workingCopy();
    const tip = await work.commit("one");
    await story.state(alice, "topsecret", { "refs/heads/main": tip });
    await work.must("-c", `http.extraHeader=Authorization: ${signedHeader(alice, root)}`, "push", "-q", root, "main");
  });
  after(() => service.story.end());

  /** The whole answer, byte for byte, but for the time of day. */
  const raw = async (request: string): Promise<string> =>
    (await exchange(service.server.origin, request)).replace(/\r\nDate: [^\r]*/, "");

  const places = (): string[] => {
    const { alice, stranger } = service;
    return [
      `/${alice.npub}/topsecret.git`,
      `/${alice.npub}/nothing.git`,
      `/${stranger.npub}/topsecret.git`,
      `/prs/${alice.npub}/topsecret.git`,
      "/npub1nonsense/x.git",
      "/a/b/c",
    ];
  };

  const alike = (answers: readonly string[]): string => {
    const [first = ""] = answers;
    for (const answer of answers) assert.equal(answer, first);
    return first;
  };

  test("repositories cannot be told from nothing by git's answers, byte for byte, and none is looked up", async () => {
    const { stranger, alice } = service;
    const before = counted.looks();
    const forged = Buffer.from(
      JSON.stringify({
        ...alice.sign(27235, [
          ["u", root],
          ["method", "GET"],
        ]),
        sig: "0".repeat(128),
      }),
    ).toString("base64");
    const headers = [
      "",
      `Authorization: ${basic("x", "hft_0123456789ab_0123456789012345678901234567890123456789012")}\r\n`,
      `Authorization: ${signedHeader(stranger, root)}\r\n`,
      `Authorization: Nostr ${forged}\r\n`,
      "Authorization: Nostr nonsense\r\n",
    ];
    let visitor = 0;
    const asked = (line: string, path: string, header: string, body = ""): Promise<string> => {
      const from = `X-Forwarded-For: 198.51.100.${++visitor % 250}\r\n`;
      return raw(
        `${line.replace("PATH", path)} HTTP/1.1\r\nHost: x\r\n${from}Connection: close\r\n${header}\r\n${body}`,
      );
    };
    for (const line of [
      `GET PATH/${upload}`,
      "GET PATH/info/refs?service=git-receive-pack",
      "GET PATH/info/lfs/objects/batch",
    ]) {
      const answers = [];
      for (const path of places()) for (const header of headers) answers.push(await asked(line, path, header));
      const answer = alike(answers);
      assert.match(answer, /^HTTP\/1\.1 401 Unauthorized\r\n/);
      assert.match(answer, /\r\nWWW-Authenticate: Nostr method="GET"\r\nWWW-Authenticate: Basic realm="holdfast"\r\n/);
      assert.match(answer, /\r\nContent-Length: 0\r\n/);
      assert.match(answer, /\r\n\r\n$/);
      assert.match(answer, /Access-Control-Allow-Headers: Authorization, /);
      assert.match(answer, /Access-Control-Expose-Headers: .*WWW-Authenticate/);
    }
    // The signed header is good for `root` alone: where it is a stranger's, it opens nothing there either.
    for (const pack of ["git-upload-pack", "git-receive-pack"]) {
      const refused = [];
      const probed = [];
      for (const path of places()) {
        refused.push(await asked(`POST PATH/${pack}`, path, "Content-Length: 8\r\n", "00000000"));
        refused.push(
          await asked(`POST PATH/${pack}`, path, "Content-Length: 8\r\nContent-Encoding: gzip\r\n", "00000000"),
        );
        probed.push(await asked(`POST PATH/${pack}`, path, "Content-Length: 4\r\n", "0000"));
      }
      assert.match(alike(refused), /^HTTP\/1\.1 401 /);
      const probe = alike(probed);
      assert.match(probe, /^HTTP\/1\.1 200 OK\r\n/);
      assert.ok(probe.includes(`Content-Type: application/x-${pack}-result\r\n`));
      assert.match(probe, /\r\n\r\n$/);
      assert.match(
        await asked(`POST PATH/${pack}`, places()[0] ?? "", "Content-Length: 4\r\n", "0009"),
        /^HTTP\/1\.1 401 /,
      );
    }
    assert.equal(counted.looks(), before, "nothing was looked up");
    const missing = service.story.url(alice, "nothing");
    const answer = await ask(`${missing}/${upload}`, { headers: { authorization: signedHeader(alice, missing) } });
    assert.equal(answer.status, 404);
    assert.ok(counted.looks() > before, "for a member it is");
  });

  test("pages, raw files, archives, feeds, badges, status and the API are one answer to strangers, with no Basic dialog", async () => {
    const { alice } = service;
    const before = counted.looks();
    const page = `/${alice.npub}/topsecret.git`;
    const paths = [
      ...places(),
      ...["/raw/main/file", "/archive/main.tar.gz", "/activity.atom", "/HEAD", "/objects/info/packs", "/info/refs"].map(
        (rest) => `${page}${rest}`,
      ),
      ...["/issues", "/pulls"].flatMap((kind) =>
        ["", "?q=topsecret", `/${"1".repeat(64)}`, `/${"1".repeat(64)}/files`].map((rest) => `${page}${kind}${rest}`),
      ),
      `${page}/text/${"1".repeat(64)}`,
      `/${alice.npub}/`,
      ...[`/${alice.npub}`, `/${alice.npub}.atom`, `/badge/${alice.npub}/topsecret.svg`, "/status", "/api/status"],
      ...["/api/repos", "/api/tokens", "/admin", "/admin/login?token=guess", "/metrics", "/assets/admin.js"],
    ];
    const foreign = "X-Forwarded-For: 203.0.113.9\r\n";
    for (const accept of ["*/*", "text/html"]) {
      const answers = [];
      for (const path of paths)
        answers.push(
          await raw(`GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: ${accept}\r\n${foreign}Connection: close\r\n\r\n`),
        );
      const answer = alike(answers);
      assert.match(answer, /^HTTP\/1\.1 401 /);
      assert.match(answer, /\r\nWWW-Authenticate: Nostr\r\n/);
      assert.match(answer, /\r\nCache-Control: private, no-store\r\n/);
      assert.doesNotMatch(answer, /Basic|\r\nETag|topsecret/);
    }
    assert.equal(counted.looks(), before, "nothing was looked up");
    const home = await ask(`${service.server.origin}/?q=topsecret`, { headers: { accept: "text/html" } });
    assert.equal(home.status, 200);
    assert.match(home.text, /<h1>Sign in<\/h1>/);
    const preflight = await ask(root, { method: "OPTIONS" });
    assert.equal(preflight.status, 204);
    for (const [path, status] of [
      ["/healthz", 200],
      ["/readyz", 200],
      ["/robots.txt", 200],
      ["/.well-known/nostr.json", 200],
      ["/sign-in", 200],
    ] as const) {
      assert.equal((await ask(`${service.server.origin}${path}`)).status, status, path);
    }
    assert.equal((await ask(`${service.server.origin}/robots.txt`)).text, "User-agent: *\nDisallow: /\n");
  });

  test("a proxy that says nothing of its clients makes no stranger a program of this machine", async () => {
    // As `proxy_pass http://127.0.0.1:<port>` without further lines sends it: from loopback, to loopback, for nobody.
    const { host, port } = new URL(service.server.origin);
    const answers = [];
    for (const path of ["/api/sync", "/metrics", "/api/status", "/nothing"]) {
      for (const name of [host, `localhost:${port}`, "[::1]"])
        answers.push(await raw(`GET ${path} HTTP/1.0\r\nHost: ${name}\r\nConnection: close\r\n\r\n`));
    }
    assert.match(alike(answers), /^HTTP\/1\.1 401 /);
  });

  test("keys cannot be tried out at sign-in, at management or on pages: one reason for all", async () => {
    const { server, alice, stranger } = service;
    const { origin } = server;
    const reasons = new Set<string>();
    const forged = (person: Person): string => {
      const event = person.sign(
        27235,
        [
          ["u", `${origin}/sign-in`],
          ["method", "POST"],
        ],
        "",
        secondsOf(Date.now()),
      );
      return `Nostr ${Buffer.from(JSON.stringify({ ...event, sig: "0".repeat(128) })).toString("base64")}`;
    };
    for (const authorization of [
      forged(alice),
      forged(stranger),
      signedHeader(stranger, `${origin}/sign-in`, "POST"),
      signedHeader(alice, `${origin}/sign-in`, "POST", 1_000),
      signedHeader(alice, `${origin}/status`, "POST"),
    ]) {
      const answer = await ask(`${origin}/sign-in`, { method: "POST", headers: { origin, authorization } });
      assert.equal(answer.status, 401);
      reasons.add(answer.text);
      const managed = await ask(origin, {
        method: "POST",
        headers: { "content-type": "application/nostr+json+rpc", authorization },
        body: '{"method":"supportedmethods","params":[]}',
      });
      assert.equal(managed.status, 401);
      reasons.add(managed.text);
    }
    assert.equal(reasons.size, 2, [...reasons].join());
    const elsewhere = await ask(`${origin}/sign-in`, {
      method: "POST",
      headers: { origin: "https://evil.example", authorization: signedHeader(alice, `${origin}/sign-in`, "POST") },
    });
    assert.equal(elsewhere.status, 403, "another site's page signs nobody in");
    assert.equal(elsewhere.headers["set-cookie"], undefined);
  });

  test("a relay connection that has not authenticated, or not as a member, gets nothing by any verb", async () => {
    const { server, stranger } = service;
    const client = await server.connect();
    const event = stranger.sign(1621, [["a", service.alice.coordinate("topsecret")]], "let me in");
    const verbs = async (prefix: RegExp): Promise<void> => {
      assert.match(String((await client.publish(event))[3]), prefix);
      assert.match(String((await client.ask("q", {})).end[2]), prefix);
      const counted = client.next(([verb, id]) => verb === "CLOSED" && id === "c");
      client.send("COUNT", "c", {});
      assert.match(String((await counted)[2]), prefix);
      const reconciled = client.next(([verb]) => verb === "NEG-ERR");
      client.send("NEG-OPEN", "n", {}, "6100000200");
      assert.match(String((await reconciled)[2]), prefix);
    };
    await verbs(/^auth-required: /);
    const [, , accepted, text] = await authenticate(client, server, stranger);
    assert.equal(accepted, false);
    assert.match(String(text), /^restricted: /);
    await verbs(/^restricted: /);
    assert.ok(client.heard.every(([verb]) => verb !== "EVENT" && verb !== "COUNT" && verb !== "NEG-MSG"));
    await client.close();
    assert.equal(await service.story.isServed(event), false);
    // The same codes in the metrics.
    const { text: metrics } = await ask(`${server.origin}/metrics`, { headers: { authorization: metricsBearer } });
    for (const reason of ["auth-required", "not-allowed"])
      assert.ok(metrics.includes(`ngit_events_rejected_total{kind="1621",reason="${reason}"} 1`), reason);
  });

  test("a member who is removed hears nothing more on subscriptions and reconciliations that were open", async () => {
    const { bob, alice, story, operate } = service;
    const client = await service.connectAs(bob);
    await client.ask("live", { kinds: [1621] });
    const reconciled = client.next(([verb]) => verb === "NEG-MSG");
    client.send("NEG-OPEN", "n", { kinds: [1621] }, "6100000200");
    await reconciled;
    const closed = client.next(([verb]) => verb === "CLOSED");
    const ended = client.next(([verb]) => verb === "NEG-ERR");
    await operate("lists.add", { list: "event-blacklist", entry: bob.npub });
    assert.match(String((await closed)[2]), /^restricted: /);
    assert.match(String((await ended)[2]), /^restricted: /);
    const from = client.heard.length;
    const issue = alice.sign(1621, [["a", alice.coordinate("topsecret")]], "not for bob");
    await story.accepted(issue);
    assert.match(String((await client.ask("again", {})).end[2]), /^restricted: /);
    assert.deepEqual(client.eventsOf("live", from), []);
    assert.equal((await ask(`${root}/${upload}`, { headers: { authorization: signedHeader(bob, root) } })).status, 401);
    await client.close();
  });

  test("a signature is for one repository, for GET, and for its minute; a member's signature opens no other's door", async () => {
    const { alice, story } = service;
    const other = story.url(alice, "other");
    const now = secondsOf(Date.now());
    const status = async (authorization: string): Promise<number> =>
      (await ask(`${root}/${upload}`, { headers: { authorization } })).status;
    assert.equal(await status(signedHeader(alice, root)), 200);
    assert.equal(await status(signedHeader(alice, other)), 401);
    assert.equal(await status(signedHeader(alice, root, "POST")), 401);
    assert.equal(await status(signedHeader(alice, `${root}/${upload}`)), 401);
    assert.equal(await status(signedHeader(alice, root, "GET", now - 120)), 401);
    assert.equal(await status(signedHeader(alice, root, "GET", now + 120)), 401);
    assert.equal(await status(signedHeader(alice, root.replace("127.0.0.1", "127.0.0.2"))), 401);
  });

  test("a member who is no maintainer cannot push a branch, whatever proves who that is", async () => {
    const { operate, story } = service;
    const dora = new Person();
    await operate("lists.add", { list: "private-members", entry: dora.npub });
    const stray = await story.workingCopy();
    const commit = await stray.commit("mine");
    const pushed = await stray.git(
      "-c",
      `http.extraHeader=Authorization: ${signedHeader(dora, root)}`,
      "push",
      root,
      `${commit}:refs/heads/mine`,
    );
    assert.notEqual(pushed.code, 0);
    assert.match(pushed.stderr, /remote rejected|refs\/heads\/mine/);
    const refs = await ask(`${root}/${upload}`, { headers: { authorization: signedHeader(dora, root) } });
    assert.equal(refs.status, 200);
    assert.ok(!refs.text.includes("refs/heads/mine"));
  });

  test("neither the metrics nor the log from level info on name a repository", async () => {
    const { origin } = service.server;
    const metrics = await ask(`${origin}/metrics`, {
      headers: { "x-forwarded-for": "203.0.113.9", authorization: metricsBearer },
    });
    assert.equal(metrics.status, 200);
    assert.doesNotMatch(metrics.text, /topsecret|npub1/);
    for (const type of ["token", "signature"]) {
      const counted = new RegExp(
        `^ngit_http_credentials_refused_total\\{type="${type}",reason="unknown"\\} [1-9]`,
        "m",
      );
      assert.match(metrics.text, counted, "what opened nothing is counted");
    }
    const loud = log.filter(({ level }) => !["trace", "debug"].includes(level));
    assert.ok(loud.length > 0);
    for (const line of loud) assert.doesNotMatch(JSON.stringify(line), /topsecret/);
    assert.ok(
      log.some((line) => line.level === "debug" && JSON.stringify(line).includes("topsecret")),
      "debug does",
    );
  });
});

// Each waits for a server of its own.
describe("our own signature", { timeout: 120_000, concurrency: 3 }, () => {
  const owner = keyOf("hunt owner");
  const environment = { NGIT_PRIVATE_MODE: "true" };
  const shown = (server: HuntGitServer): (string | undefined)[] =>
    server.requests.map(({ authorization }) => {
      if (authorization === undefined) return undefined;
      const event = JSON.parse(Buffer.from(authorization.replace("Nostr ", ""), "base64").toString("utf8"));
      assert.equal(event.pubkey, keyOf("server").pubkey);
      return event.tags.find(([name]: string[]) => name === "u")[1];
    });

  test("goes with every request to a host that the announcement names, and names the repository there", async (context) => {
    const { house, work, remote } = await huntWorld(context, { environment, hunt: impatient });
    const tip = await work.commitFile("a", "one");
    await remote.publish("demo", work.path, { "refs/heads/main": tip });
    await house.announce(owner, "demo", [remote.url("demo")]);
    const state = await house.state(owner, "demo", { "refs/heads/main": tip });
    await until("the state is served", () => house.isServed(state));
    assert.ok(remote.counts().fetch > 0);
    for (const url of shown(remote)) assert.equal(url, remote.url("demo"));
    assert.deepEqual(house.faults, []);
  });

  test("does not follow a redirect to another server, nor go to the server a pull request names", async (context) => {
    const { house, work, remotes } = await huntWorld(context, { environment, hunt: impatient }, 3);
    const [listed, elsewhere, contributors] = remotes as [HuntGitServer, HuntGitServer, HuntGitServer];
    const tip = await work.commitFile("a", "one");
    await elsewhere.publish("demo", work.path, { "refs/heads/main": tip });
    listed.behaviour = { type: "redirect", to: (path) => `http://127.0.0.1:${elsewhere.port}${path}` };
    await house.announce(owner, "demo", [listed.url("demo")]);
    const state = await house.state(owner, "demo", { "refs/heads/main": tip });
    await until("the state is served", () => house.isServed(state));
    assert.ok(shown(listed).every((url) => url === listed.url("demo")));
    assert.ok(elsewhere.counts().fetch > 0);
    assert.ok(shown(elsewhere).every((url) => url === undefined));
    const proposed = await work.commitFile("b", "two");
    await contributors.publish("fork", work.path, { "refs/heads/main": proposed });
    const request = await house.pullRequest(keyOf("contributor"), house.name(owner, "demo"), proposed, [
      contributors.url("fork"),
    ]);
    await until("the pull request is served", () => house.isServed(request));
    assert.ok(contributors.requests.length > 0);
    assert.ok(shown(contributors).every((url) => url === undefined));
    assert.deepEqual(house.faults, []);
  });

  test("is never shown by a public server", async (context) => {
    const { house, work, remote } = await huntWorld(context, { hunt: impatient });
    const tip = await work.commitFile("a", "one");
    await remote.publish("demo", work.path, { "refs/heads/main": tip });
    await house.announce(owner, "demo", [remote.url("demo")]);
    const state = await house.state(owner, "demo", { "refs/heads/main": tip });
    await until("the state is served", () => house.isServed(state));
    assert.ok(shown(remote).every((url) => url === undefined));
  });
});
