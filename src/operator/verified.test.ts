import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pubkey } from "../nostr/event.js";
import { type GitCopy, isSame, type RelayCopy, VerifiedCopies } from "./verified.js";
import { refsThatDiffer } from "./verify.js";

const name = { owner: "a".repeat(64) as Pubkey, identifier: "one" };
const relay = (more: Partial<RelayCopy> = {}): RelayCopy => ({
  relay: "wss://relay.example",
  standing: "same",
  missingHere: 0,
  missingThere: 0,
  waitingHere: 0,
  method: "negentropy",
  reason: null,
  ...more,
});
const server = (standing: GitCopy["standing"]): GitCopy => ({
  url: "https://git.example/x.git",
  standing,
  refs: 1,
  differing: 0,
  differences: [],
  reason: null,
});
const verified = (at: number, relays: readonly RelayCopy[], gitServers: readonly GitCopy[] = []) => ({
  repository: "x",
  at,
  relays,
  gitServers,
});

for (const [what, answer, same] of [
  ["no other copy", verified(1, []), true],
  ["equal copies", verified(1, [relay()], [server("same")]), true],
  ["a relay the operator has left alone", verified(1, [relay({ standing: "ignored" })]), true],
  ["a relay that differs", verified(1, [relay({ standing: "differs" })], [server("same")]), false],
  ["a git server that differs", verified(1, [relay()], [server("differs")]), false],
  ["a copy that could not be compared", verified(1, [relay({ standing: "not compared" })]), false],
] as const) {
  test(`${what} ${same ? "is no difference" : "is a difference"}`, () => assert.equal(isSame(answer), same));
}

test("a copy was compared clean when nothing was missing here, however its URL is spelt; a later failure keeps that", () => {
  const copies = new VerifiedCopies();
  copies.note(name, verified(10, [relay({ standing: "differs", missingThere: 3 })], [server("same")]));
  copies.note(name, verified(20, [relay({ standing: "differs", missingHere: 1 })], [server("not compared")]));
  assert.equal(copies.lastClean(name, "wss://relay.example/"), 10);
  assert.equal(copies.lastClean(name, "https://GIT.example:443/x.git"), 10);
  assert.equal(copies.lastClean({ ...name, identifier: "two" }, "wss://relay.example"), undefined);
  copies.note(name, verified(30, [relay({ standing: "not compared", method: null })]));
  assert.equal(copies.lastClean(name, "wss://relay.example"), 10);
});

test("branches and tags that differ are told by side; other refs are no state's to decide", () => {
  const here = new Map([
    ["refs/heads/main", "1"],
    ["refs/heads/old", "2"],
    ["refs/nostr/x", "3"],
  ]);
  const there = new Map([
    ["HEAD", "9"],
    ["refs/heads/main", "4"],
    ["refs/tags/v1", "5"],
    ["refs/pull/1/head", "6"],
  ]);
  assert.deepEqual(refsThatDiffer(here, there), [
    { ref: "refs/heads/main", here: "1", there: "4" },
    { ref: "refs/heads/old", here: "2", there: null },
    { ref: "refs/tags/v1", here: null, there: "5" },
  ]);
  assert.deepEqual(refsThatDiffer(here, new Map(here)), []);
});
