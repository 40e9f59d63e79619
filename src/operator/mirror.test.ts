import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pubkey } from "../nostr/event.js";
import { naddrOf, npubOf } from "../nostr/nip19.js";
import { mirrorTargetNamed } from "./mirror.js";

const pubkey = "3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d" as Pubkey;
const npub = npubOf(pubkey);
const naddr = (kind: number): string =>
  naddrOf({ address: { kind, pubkey, identifier: "a b" }, relays: ["wss://relay.example"] }) ?? "";

test("what is to be mirrored is named by key, repository or service", () => {
  const repository = { owner: pubkey, identifier: "a b" };
  for (const [text, expected] of [
    [npub, { type: "key", pubkey }],
    [` nostr:${npub} `, { type: "key", pubkey }],
    [pubkey, { type: "key", pubkey }],
    [naddr(30617), { type: "repository", name: repository, hints: ["wss://relay.example"] }],
    [`nostr:${naddr(30617)}`, { type: "repository", name: repository, hints: ["wss://relay.example"] }],
    [`${npub}/a%20b`, { type: "repository", name: repository, hints: [] }],
    [`30617:${pubkey}:a b`, { type: "repository", name: repository, hints: [] }],
    ["wss://Git.Example/", { type: "service", host: "git.example", relay: "wss://Git.Example/" }],
    ["wss://git.example:443/base", { type: "service", host: "git.example", relay: "wss://git.example:443/base" }],
    ["ws://git.example:7334", { type: "service", host: "git.example:7334", relay: "ws://git.example:7334" }],
  ] as const) {
    assert.deepEqual(mirrorTargetNamed(text), expected, text);
  }
  for (const text of [
    "",
    "linux",
    "git.example",
    "https://git.example",
    "npub1nonsense",
    naddr(30023),
    "wss://a:b@x",
  ]) {
    assert.equal(mirrorTargetNamed(text), undefined, text);
  }
});
