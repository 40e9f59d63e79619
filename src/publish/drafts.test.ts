import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { type EventDraft, SecretKey, signEvent } from "../nostr/keys.js";
import { npubOf } from "../nostr/nip19.js";
import {
  announcementDraft,
  cloneUrlOf,
  identifierFrom,
  refsOfState,
  refsToState,
  serverAddresses,
  stateDraft,
} from "./drafts.js";

const key = SecretKey.generate(randomBytes);
const server = { http: "http://localhost:7334", relay: "ws://localhost:7334" };
const place = { server, owner: key.pubkey, identifier: "hello" };
const signed = (draft: EventDraft | undefined) => signEvent(key, draft ?? assert.fail("nothing to sign"), randomBytes);

test("a server is named by its host, with a port or base path, or by a URL of either kind", () => {
  const cases: readonly (readonly [string, string | undefined])[] = [
    ["localhost:7334", "ws://localhost:7334"],
    ["127.0.0.1:1", "ws://127.0.0.1:1"],
    ["git.example.com", "wss://git.example.com"],
    ["git.example.com/base/", "wss://git.example.com/base"],
    ["https://git.example.com/", "wss://git.example.com"],
    ["ws://relay.example.com:8080", "ws://relay.example.com:8080"],
    ["ssh://git.example.com", undefined],
    ["https://me:secret@git.example.com", undefined],
    ["https://git.example.com/?x=1", undefined],
    ["", undefined],
  ];
  for (const [text, relay] of cases) assert.equal(serverAddresses(text)?.relay, relay, text);
});

test("a folder's name becomes one that fits into an address", () => {
  for (const [name, identifier] of [
    ["hello", "hello"],
    ["My Project (new)", "My-Project-new"],
    [".hidden.", "hidden"],
    ["…", undefined],
  ] as const) {
    assert.equal(identifierFrom(name), identifier);
  }
  assert.equal(cloneUrlOf(place), `http://localhost:7334/${npubOf(key.pubkey)}/hello.git`);
});

test("an announcement keeps what an earlier one says, and is not repeated", () => {
  const first = signed(announcementDraft(place, { firstCommit: "ab" }, undefined, 100));
  assert.deepEqual(first.tags, [
    ["d", "hello"],
    ["name", "hello"],
    ["clone", cloneUrlOf(place)],
    ["relays", server.relay],
    ["r", "ab", "euc"],
  ]);
  assert.equal(announcementDraft(place, { firstCommit: "ab" }, first, 200), undefined);
  const elsewhere = signed({
    ...first,
    tags: [
      ["d", "hello"],
      ["name", "Hello"],
      ["clone", "https://other/x.git"],
      ["relays", "wss://other"],
      ["maintainers", "cd"],
    ],
  });
  const both = announcementDraft(place, { description: "D" }, elsewhere, 1);
  assert.deepEqual(both?.tags, [
    ["d", "hello"],
    ["name", "Hello"],
    ["clone", cloneUrlOf(place), "https://other/x.git"],
    ["relays", server.relay, "wss://other"],
    ["description", "D"],
    ["maintainers", "cd"],
  ]);
  assert.equal(both?.created_at, elsewhere.created_at + 1, "newer than the one it replaces, whatever the clock says");
});

test("a state lists the branch that is checked out and what is published; nothing that is only elsewhere is dropped", () => {
  const local = new Map([
    ["refs/heads/main", "m2"],
    ["refs/heads/secret", "s1"],
    ["refs/tags/v1", "t1"],
  ]);
  const published = new Map([
    ["refs/heads/main", "m1"],
    ["refs/heads/theirs", "x1"],
  ]);
  const usual = refsToState(local, published, "refs/heads/main", false);
  assert.deepEqual(
    [...usual],
    [
      ["refs/heads/main", "m2"],
      ["refs/heads/theirs", "x1"],
    ],
  );
  assert.deepEqual([...refsToState(local, published, "refs/heads/main", true).keys()].sort(), [
    "refs/heads/main",
    "refs/heads/secret",
    "refs/heads/theirs",
    "refs/tags/v1",
  ]);
  const state = signed(stateDraft("hello", usual, "refs/heads/main", undefined, 5));
  assert.deepEqual(refsOfState(state), usual);
  assert.deepEqual(state.tags.at(-1), ["HEAD", "ref: refs/heads/main"]);
  assert.equal(stateDraft("hello", usual, "refs/heads/main", state, 9), undefined);
});
