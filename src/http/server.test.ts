import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { clientIp, isLocalPeer, trustedProxies } from "./server.js";

const from = (remoteAddress: string, forwarded?: string): IncomingMessage =>
  ({
    socket: { remoteAddress },
    headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded },
  }) as IncomingMessage;

const { list, bad } = trustedProxies([
  "10.0.0.0/8",
  "::1/128",
  "192.0.2.7",
  "nonsense",
  "10.0.0.0/33",
  "1.2.3.4/8/9",
  "::/x",
]);

test("texts that are no networks are named", () => {
  assert.deepEqual(bad, ["nonsense", "10.0.0.0/33", "1.2.3.4/8/9", "::/x"]);
});

test("only trusted proxies are believed, from the right, up to the first stranger", () => {
  const cases: [string, string | undefined, string][] = [
    ["203.0.113.5", "1.1.1.1", "203.0.113.5"],
    ["10.0.0.1", undefined, "10.0.0.1"],
    ["10.0.0.1", "198.51.100.9", "198.51.100.9"],
    ["10.0.0.1", "6.6.6.6, 198.51.100.9", "198.51.100.9"],
    ["10.0.0.1", "198.51.100.9, 10.2.2.2, 192.0.2.7", "198.51.100.9"],
    ["10.0.0.1", "10.3.3.3", "10.3.3.3"],
    ["10.0.0.1", "not an address", "10.0.0.1"],
    ["10.0.0.1", "", "10.0.0.1"],
    ["::ffff:10.0.0.1", "[2001:db8::1]:443", "2001:db8::1"],
    ["::1", "198.51.100.9:1234", "198.51.100.9"],
  ];
  for (const [peer, forwarded, expected] of cases) {
    assert.equal(clientIp(from(peer, forwarded), list), expected, `${peer} ${forwarded}`);
  }
});

test("a local peer is a loopback address that nobody forwarded", () => {
  assert.equal(isLocalPeer(from("127.0.0.1")), true);
  assert.equal(isLocalPeer(from("::ffff:127.0.0.1")), true);
  assert.equal(isLocalPeer(from("::1")), true);
  assert.equal(isLocalPeer(from("127.0.0.1", "127.0.0.1")), false);
  assert.equal(isLocalPeer(from("192.0.2.1")), false);
});

test("threat 31: a proxy that says so in another way, and a web page in the operator's browser, are no local peer", () => {
  const withHeaders = (headers: Record<string, string>) => {
    const request = from("127.0.0.1");
    Object.assign(request.headers, headers);
    return isLocalPeer(request);
  };
  for (const host of ["localhost", "LOCALHOST:7334", "127.0.0.1:7334", "[::1]:7334", "127.3.2.1"]) {
    assert.equal(withHeaders({ host }), true, host);
  }
  for (const host of ["git.example.com", "localhost.evil.example", "192.0.2.1:80", "", "127.0.0.1.nip.io"]) {
    assert.equal(withHeaders({ host }), false, host);
  }
  for (const name of ["x-real-ip", "forwarded", "via", "origin", "x-forwarded-host"]) {
    assert.equal(withHeaders({ host: "localhost", [name]: "x" }), false, name);
  }
});
