import assert from "node:assert/strict";
import { test } from "node:test";
import { hostOfUrl, normalCloneUrl, normalRelayUrl, pathBelowService, serviceName, servicePart } from "./url.js";

function service(domain: string) {
  const name = serviceName(domain);
  assert.ok(name !== undefined, domain);
  return name;
}

test("spellings of one relay have one normal form", () => {
  for (const text of [
    "wss://Relay.Example",
    "WSS://relay.example/",
    "wss://relay.example:443",
    "wss://relay.example//",
  ]) {
    assert.equal(normalRelayUrl(text), "wss://relay.example", text);
  }
  assert.equal(normalRelayUrl("ws://relay.example:7000/Base/"), "ws://relay.example:7000/Base");
});

test("what is no relay or clone URL has no normal form", () => {
  const relays = ["", "relay.example", "https://relay.example", "wss://user@relay.example", "wss://", "wss://a b"];
  for (const text of relays) assert.equal(normalRelayUrl(text), undefined, text);
  const clones = ["git://x/y", "file:///etc/passwd", "ext::sh -c id", "ssh://x/y", "../x", "http://u:p@x/y"];
  for (const text of clones) assert.equal(normalCloneUrl(text), undefined, text);
});

test("threats 5: a URL with control bytes or spaces is refused, not cleaned", () => {
  for (const bad of ["\r", "\n", "\0", "\t", " ", "\x7f", "\x1b"]) {
    assert.equal(normalCloneUrl(`https://x.example/a${bad}b`), undefined);
    assert.equal(servicePart(`https://x.exa${bad}mple/`), undefined);
    assert.equal(serviceName(`x.example${bad}`), undefined);
  }
});

test("threats 4: a URL that programs take to different hosts is no URL", () => {
  for (const text of [
    "https:///evil.example/x",
    "https:/evil.example/x",
    "https:evil.example",
    "https://a.example\\@evil.example/x",
  ]) {
    assert.equal(normalCloneUrl(text), undefined, text);
  }
});

test("a service is its host, port and base path, whatever the scheme and the default port", () => {
  assert.equal(serviceName("Relay.Example:443"), "relay.example");
  assert.equal(serviceName("relay.example:80"), "relay.example");
  assert.equal(serviceName("localhost:7334"), "localhost:7334");
  assert.equal(serviceName("relay.example//base/"), "relay.example/base");
  for (const bad of ["", "a?b", "a#b", "user@host", "/base"]) assert.equal(serviceName(bad), undefined, bad);
});

test("a path below a service is found by comparing URLs, never substrings", () => {
  const plain = service("relay.example");
  const based = service("relay.example/base");
  const rows: [string, string | undefined, string | undefined][] = [
    ["https://relay.example/n/x.git", "/n/x.git", undefined],
    ["http://RELAY.example:80//n//x.git/", "/n/x.git", undefined],
    ["https://relay.example:443/base/n/x.git", "/base/n/x.git", "/n/x.git"],
    ["https://relay.example/base", "/base", ""],
    ["https://relay.example/", "", undefined],
    ["https://relay.example/basement/x.git", "/basement/x.git", undefined],
    ["https://relay.example.evil/n/x.git", undefined, undefined],
    ["https://evil/relay.example/n/x.git", undefined, undefined],
    ["https://relay.example:8443/n/x.git", undefined, undefined],
    ["https://xrelay.example/n/x.git", undefined, undefined],
    ["https://relay.example@evil/n/x.git", undefined, undefined],
    ["https://evil/?https://relay.example/n/x.git", undefined, undefined],
    ["https://relay.example/base/../n/x.git", "/n/x.git", undefined],
  ];
  for (const [url, inPlain, inBased] of rows) {
    assert.equal(pathBelowService(url, plain), inPlain, url);
    assert.equal(pathBelowService(url, based), inBased, url);
  }
});

test("the host of a URL leaves out port and case", () => {
  assert.equal(hostOfUrl("https://Git.Example:8443/x"), "git.example");
  assert.equal(hostOfUrl("not a url"), undefined);
});
