import assert from "node:assert/strict";
import { test } from "node:test";
import { LogRing, withoutSecrets } from "./log-ring.js";

test("the newest lines are kept, numbered, and cut when they are long", () => {
  const ring = new LogRing((raw) => raw);
  for (let number = 1; number <= 600; number++) ring.add(`line ${number}`);
  const kept = ring.after();
  assert.equal(kept.length, 500);
  assert.deepEqual([kept[0]?.text, kept.at(-1)], ["line 101", { number: 600, text: "line 600" }]);
  assert.deepEqual(
    ring.after(598).map(({ text }) => text),
    ["line 599", "line 600"],
  );
  ring.add("x".repeat(10_000));
  assert.equal(ring.after(600)[0]?.text.length, 2_001);
});

test("listeners hear each new line until they stop", () => {
  const ring = new LogRing((raw) => raw);
  const heard: string[] = [];
  const stop = ring.onLine(({ text }) => heard.push(text));
  ring.add("one");
  stop();
  ring.add("two");
  assert.deepEqual(heard, ["one"]);
});

test("what looks like a secret is not kept", () => {
  const nsec = `nsec1${"q".repeat(58)}`;
  const lines = [
    `key=${nsec}`,
    "GET /admin/login?token=abcdEFGH1234 from somewhere",
    '{"authorization":"Nostr eyJraW5kIjoyNzIzNX0abcdef"}',
    "header Bearer abcdefghijklmnop1234",
    "cloning https://user:hunter2@git.example.com/x.git",
    'password="hunter2"',
  ];
  for (const line of lines) {
    const kept = withoutSecrets(line);
    assert.doesNotMatch(kept, /qqqq|abcd|eyJr|hunter2/, line);
    assert.notEqual(kept, line);
  }
  const plain = "2026-01-02T03:04:05.678Z INFO  connected to a relay relay=wss://relay.example.com sync=full";
  assert.equal(withoutSecrets(plain), plain);
});
