import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { clientIp, isLocalPeer, trustedProxies } from "./client-ip.js";

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
