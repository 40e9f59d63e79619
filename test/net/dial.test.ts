// Dialling real sockets on loopback: what is pinned is dialled, limits end every dial, and failures have one name each.
import assert from "node:assert/strict";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from "node:net";
import { after, test } from "node:test";
import { WebSocketServer } from "ws";
import { systemClock } from "../../src/base/clock.js";
import type { Resolve } from "../../src/net/guard.js";
import { type GuardedUrl, guardUrl, guardWith } from "../../src/net/guard.js";
import { followRedirects, type HttpOptions, httpRequest } from "../../src/net/http.js";
import { type OpenOptions, openWebSocket } from "../../src/net/relay-dialer.js";
import { testCertificate } from "../../src/net/testing/certificate.js";

const toLoopback: Resolve = async () => ({ ok: true, addresses: ["127.0.0.1"] });
const open: OpenOptions = { clock: systemClock, handshakeMs: 30_000, maxPayloadBytes: 1_000, userAgent: "test" };
const http: HttpOptions = { clock: systemClock, totalMs: 30_000, idleMs: 30_000, maxBodyBytes: 1_000 };

const closers: (() => void)[] = [];
after(() => {
  for (const close of closers) close();
});

async function listen<T extends TcpServer>(server: T): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const web = (handler: RequestListener): Promise<number> => listen(createServer(handler));

async function guarded(url: string, resolve: Resolve = toLoopback): Promise<GuardedUrl> {
  const result = await guardUrl(url, { resolve, reach: "loopback" });
  assert.ok(result.ok, url);
  return result.url;
}

function relay(server: Server): WebSocketServer {
  const sockets = new WebSocketServer({ server });
  closers.push(() => sockets.close());
  return sockets;
}

async function openCode(url: string, options: Partial<OpenOptions> = {}): Promise<string> {
  const result = await openWebSocket(await guarded(url), { ...open, ...options });
  if (!result.ok) return result.code;
  result.socket.terminate();
  return "ok";
}

test("a message sent together with the handshake's answer is not lost", async () => {
  const server = createServer();
  relay(server).on("connection", (socket) => socket.send("first"));
  const port = await listen(server);
  const result = await openWebSocket(await guarded(`ws://relay.test:${port}/`), open);
  assert.ok(result.ok);
  const message = await new Promise((done) => result.socket.once("message", (data) => done(String(data))));
  assert.equal(message, "first");
  result.socket.terminate();
});

test("a socket asks for no compression and keeps the name in the Host header", async () => {
  const server = createServer();
  const sockets = relay(server);
  const port = await listen(server);
  const request = new Promise<NodeJS.Dict<string | string[]>>((done) =>
    sockets.once("connection", (_socket, incoming) => done(incoming.headers)),
  );
  assert.equal(await openCode(`ws://relay.test:${port}/`), "ok");
  const headers = await request;
  assert.equal(headers.host, `relay.test:${port}`);
  assert.equal(headers["sec-websocket-extensions"], undefined);
});

test("a message over the limit closes the link", async () => {
  const server = createServer();
  relay(server).on("connection", (socket) => socket.send("x".repeat(1_001)));
  const port = await listen(server);
  const result = await openWebSocket(await guarded(`ws://relay.test:${port}/`), open);
  assert.ok(result.ok);
  const code = await new Promise((done) => {
    result.socket.once("error", (error) => done((error as NodeJS.ErrnoException).code));
    result.socket.once("message", () => done("delivered"));
  });
  assert.equal(code, "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH");
});

const answers: readonly (readonly [number, string])[] = [
  [200, "not-a-websocket"],
  [301, "not-a-websocket"],
  [404, "not-a-websocket"],
  [401, "http-status"],
  [403, "http-status"],
  [429, "http-status"],
  [500, "http-status"],
  [503, "http-status"],
];
for (const [status, code] of answers) {
  test(`a handshake answered with ${status} is ${code}`, async () => {
    const port = await web((_request, response) => response.writeHead(status, { location: "ws://127.0.0.1/" }).end());
    assert.equal(await openCode(`ws://relay.test:${port}/`), code);
  });
}

test("a handshake with a wrong accept key, and an answer that is not HTTP, are not-a-websocket", async () => {
  const wrongKey = createServer();
  wrongKey.on("upgrade", (_request, socket) => {
    socket.write("HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: no\r\n\r\n");
  });
  assert.equal(await openCode(`ws://relay.test:${await listen(wrongKey)}/`), "not-a-websocket");
  const smtp = createTcpServer((socket) => socket.write("220 mail.example.com ESMTP\r\n"));
  assert.equal(await openCode(`ws://relay.test:${await listen(smtp)}/`), "not-a-websocket");
});

test("silence and a header sent byte by byte both end at the handshake's time limit", async () => {
  const silent = await listen(createTcpServer(() => undefined));
  assert.equal(await openCode(`ws://relay.test:${silent}/`, { handshakeMs: 50 }), "timeout");
  const dripping = createTcpServer((socket) => {
    socket.write("HTTP/1.1 101 x\r\nX-Slow: ");
    const timer = setInterval(() => socket.write("x"), 5);
    socket.on("close", () => clearInterval(timer));
  });
  assert.equal(await openCode(`ws://relay.test:${await listen(dripping)}/`, { handshakeMs: 80 }), "timeout");
});

test("a port nobody listens on is refused, a dropped connection is reset, an aborted dial is aborted", async () => {
  const server = createTcpServer();
  const port = await listen(server);
  await new Promise((done) => server.close(done));
  assert.equal(await openCode(`ws://relay.test:${port}/`), "refused");
  const dropping = await listen(createTcpServer((socket) => socket.resetAndDestroy()));
  assert.equal(await openCode(`ws://relay.test:${dropping}/`), "reset");
  const silent = await listen(createTcpServer(() => undefined));
  assert.equal(await openCode(`ws://relay.test:${silent}/`, { signal: AbortSignal.timeout(20) }), "aborted");
  assert.equal(await openCode(`ws://relay.test:${silent}/`, { signal: AbortSignal.abort() }), "aborted");
});

test("TLS checks the certificate against the name although the address is pinned", async () => {
  const server = createTlsServer(testCertificate, (_request, response) => response.end("secure"));
  relay(server as unknown as Server);
  const names: string[] = [];
  server.on("secureConnection", (socket) => names.push(String((socket as { servername?: string }).servername)));
  const port = await listen(server);
  const ca = testCertificate.cert;
  assert.equal(await openCode(`wss://pinned.test:${port}/`, { ca }), "ok");
  assert.equal(await openCode(`wss://pinned.test:${port}/`), "certificate");
  assert.equal(await openCode(`wss://other.test:${port}/`, { ca }), "certificate");
  assert.equal(await openCode(`wss://127.0.0.1:${port}/`, { ca }), "certificate");
  const answer = await httpRequest(await guarded(`https://pinned.test:${port}/`), { ...http, ca });
  assert.equal(answer.ok && String(answer.body), "secure");
  assert.equal(names[0], "pinned.test");
});

test("TLS to a port that speaks none is a TLS failure, not a certificate's", async () => {
  const port = await web((_request, response) => response.end());
  assert.equal(await openCode(`wss://pinned.test:${port}/`), "tls");
});

test("rebinding: a name that would resolve elsewhere the second time is dialled at the address that was checked", async () => {
  let asked = 0;
  const rebinding: Resolve = async () => ({ ok: true, addresses: [asked++ === 0 ? "127.0.0.1" : "127.0.0.2"] });
  const addresses: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    addresses.push(request.socket.localAddress);
    response.end("here");
  });
  relay(server).on("connection", (_socket, request) => addresses.push(request.socket.localAddress));
  const port = await listen(server);
  const page = await guarded(`http://rebind.test:${port}/`, rebinding);
  assert.equal((await httpRequest(page, http)).ok, true);
  assert.equal((await httpRequest(page, http)).ok, true);
  asked = 0;
  const result = await openWebSocket(await guarded(`ws://rebind.test:${port}/`, rebinding), open);
  assert.ok(result.ok);
  result.socket.terminate();
  assert.deepEqual(addresses, ["127.0.0.1", "127.0.0.1", "127.0.0.1"]);
  assert.equal(asked, 1);
});

test("when the first pinned address does not answer the next one is used", async () => {
  const port = await web((_request, response) => response.end("second"));
  const two: Resolve = async () => ({ ok: true, addresses: ["127.0.0.3", "127.0.0.1"] });
  const answer = await httpRequest(await guarded(`http://two.test:${port}/`, two), http);
  assert.equal(answer.ok && String(answer.body), "second");
});

test("a POST carries its body and an answer its status, headers and body", async () => {
  const port = await web((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => {
      body += String(chunk);
    });
    request.on("end", () => response.writeHead(418, { "x-echo": "yes" }).end(`${request.method} ${body}`));
  });
  const answer = await httpRequest(await guarded(`http://git.test:${port}/`), { ...http, body: Buffer.from("0000") });
  assert.ok(answer.ok);
  assert.deepEqual([answer.status, answer.headers["x-echo"], String(answer.body)], [418, "yes", "POST 0000"]);
});

const badAnswers: readonly (readonly [string, RequestListener, Partial<HttpOptions>, string])[] = [
  ["larger than the limit", (_request, response) => response.end("x".repeat(1_001)), {}, "too-large"],
  [
    "endless",
    (_request, response) => {
      const timer = setInterval(() => response.write("xxxxxxxxxx".repeat(20)), 1);
      response.on("close", () => clearInterval(timer));
    },
    {},
    "too-large",
  ],
  [
    "a byte at a time",
    (_request, response) => {
      const timer = setInterval(() => response.write("x"), 5);
      response.on("close", () => clearInterval(timer));
    },
    { totalMs: 100 },
    "timeout",
  ],
  ["never", () => undefined, { idleMs: 50 }, "timeout"],
  [
    "compressed unasked",
    (_r, response) => response.writeHead(200, { "content-encoding": "gzip" }).end("x"),
    {},
    "bad-response",
  ],
  [
    "cut off",
    (_request, response) => {
      response.writeHead(200, { "content-length": "10" });
      response.write("half", () => response.destroy());
    },
    {},
    "reset",
  ],
  ["never, to a caller who gives up", () => undefined, { signal: AbortSignal.timeout(30) }, "aborted"],
];
for (const [name, handler, options, code] of badAnswers) {
  test(`an answer that comes ${name} ends as ${code}`, async () => {
    const port = await web(handler);
    const answer = await httpRequest(await guarded(`http://git.test:${port}/`), { ...http, ...options });
    assert.equal(answer.ok ? "ok" : answer.code, code);
  });
}

test("a scheme of the other kind is refused without a connection", async () => {
  assert.equal(await openCode("http://git.test:1/"), "bad-scheme");
  const answer = await httpRequest(await guarded("ws://git.test:1/"), http);
  assert.equal(answer.ok ? "ok" : answer.code, "bad-scheme");
});

async function redirected(location: string | ((hop: number) => string), reach: "public" | "loopback" = "loopback") {
  let hop = 0;
  const port = await web((request, response) => {
    if (request.url === "/end") response.end("end");
    else response.writeHead(302, { location: typeof location === "string" ? location : location(hop++) }).end();
  });
  const asked: string[] = [];
  const answer = await followRedirects(`http://start.test:${port}/`, {
    guard: async (url) => {
      asked.push(url);
      // The first hop stands for a public server; what it points to is judged for real.
      return guardUrl(url, { resolve: toLoopback, reach: asked.length === 1 ? "loopback" : reach });
    },
    request: (url) => httpRequest(url, http),
  });
  return { answer: answer.ok ? `${answer.redirects} ${String(answer.body)}` : answer.code, hops: asked.length };
}

test("redirects on the same host are followed up to three times", async () => {
  assert.deepEqual(await redirected((hop) => (hop < 2 ? "/again" : "/end")), { answer: "3 end", hops: 4 });
  assert.deepEqual(await redirected("/again"), { answer: "bad-redirect", hops: 4 });
});

for (const location of [
  "http://other.test/",
  "http://127.0.0.1/",
  "ftp://start.test/",
  "file:///etc/passwd",
  "//other.test/",
  "http://",
  "http://[",
]) {
  test(`a redirect to ${JSON.stringify(location)} is not followed`, async () => {
    const { answer, hops } = await redirected(location);
    assert.deepEqual([answer, hops], ["bad-redirect", 1]);
  });
}

for (const host of [
  "127.0.0.1",
  "10.0.0.1",
  "169.254.169.254",
  "2130706433",
  "0177.1",
  "[::1]",
  "[::ffff:10.0.0.1]",
  "[64:ff9b::a00:1]",
  "inside.test",
]) {
  test(`a redirect to https on ${host} is stopped by the guard`, async () => {
    const { answer, hops } = await redirected(`https://${host}/`, "public");
    assert.deepEqual([answer, hops], ["address-not-allowed", 2]);
  });
}

test("a redirect with a user name in it is stopped by the guard", async () => {
  assert.equal((await redirected("https://me@start.test/")).answer, "has-userinfo");
});

test("a hop the caller does not allow is not dialled", async () => {
  let requests = 0;
  const port = await web((_request, response) => {
    requests++;
    response.writeHead(302, { location: "/again" }).end();
  });
  const answer = await followRedirects(`http://start.test:${port}/`, {
    guard: guardWith({ resolve: toLoopback, reach: "loopback" }),
    request: (url) => httpRequest(url, http),
    mayConnect: async () => requests < 2,
  });
  assert.deepEqual([answer.ok ? "ok" : answer.code, requests], ["aborted", 2]);
});
