import assert from "node:assert/strict";
import { test } from "node:test";
import { greetingText, hasColour } from "./greeting.js";

const greeted = {
  version: "1.2.3",
  page: "http://localhost:7334",
  relay: "ws://localhost:7334",
  data: "/srv/data",
  login: "http://localhost:7334/admin/login?token=x",
};

test("a started server says where it is, where its data is and what to do next", () => {
  const text = greetingText(greeted, false);
  for (const part of [
    "Holdfast 1.2.3",
    "http://localhost:7334/\n",
    "ws://localhost:7334",
    "/srv/data",
    "token=x",
    "holdfast init",
  ]) {
    assert.ok(text.includes(part), part);
  }
  assert.doesNotMatch(text, /\x1b/);
  assert.match(greetingText({ ...greeted, data: undefined }, true), /\x1b\[1mHoldfast[\s\S]*in memory/);
});

test("colour is only where there is colour", () => {
  assert.deepEqual([{}, { NO_COLOR: "1" }, { TERM: "dumb" }, { NO_COLOR: "", TERM: "xterm" }].map(hasColour), [
    true,
    false,
    false,
    true,
  ]);
});
