import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventId } from "../nostr/event.js";
import { naddrOf, neventOf, noteOf, npubOf } from "../nostr/nip19.js";
import { keyFrom } from "../nostr/testing/signed.js";
import {
  entryNamed,
  eventNamed,
  growthSentences,
  keyNamed,
  networkNamed,
  networkText,
  placeNamedBy,
  repositoryNamedBy,
  repositoryText,
} from "./naming.js";

const { pubkey } = keyFrom("owner");
const npub = npubOf(pubkey);
const id = "ab".repeat(32) as EventId;

test("keys, events and repositories are known in every spelling people paste", () => {
  for (const text of [npub, pubkey, `nostr:${npub}`, ` ${npub} `]) assert.equal(keyNamed(text), pubkey);
  const pointer = neventOf({ id, relays: ["wss://a"], author: pubkey, kind: 1 }) ?? "";
  for (const text of [id, noteOf(id), pointer, `nostr:${pointer}`]) assert.equal(eventNamed(text), id);
  const name = { owner: pubkey, identifier: "my-project" };
  const address = { kind: 30_617, pubkey, identifier: "my-project" };
  const naddr = naddrOf({ address, relays: [] }) ?? "";
  for (const text of [`${npub}/my-project`, `${pubkey}/my-project`, naddr, `30617:${pubkey}:my-project`]) {
    assert.deepEqual(repositoryNamedBy(text), name);
  }
});

test("what is none of these is refused, and a mistyped npub is not taken for an identifier", () => {
  const bad = ["", "npub1xyz", `${npub.slice(0, -1)}q/x`, npub, `${npub}/`, `1:${pubkey}:x`, "my-project"];
  for (const text of bad) assert.equal(repositoryNamedBy(text), undefined, text);
  assert.equal(entryNamed(npub.slice(0, -1)), undefined);
  assert.equal(keyNamed("zz"), undefined);
  assert.equal(eventNamed("AB".repeat(32)), undefined);
});

test("a repository's text leads back to it, whatever its identifier is", () => {
  for (const identifier of ["x", "a/b", "100%", "a,b", "a b", "grün", "\u202ex", "a\nb", "npub1x"]) {
    const name = { owner: pubkey, identifier };
    assert.deepEqual(repositoryNamedBy(repositoryText(name)), name, JSON.stringify(identifier));
    assert.deepEqual(placeNamedBy(repositoryText(name)), name, JSON.stringify(identifier));
    const below = { ...name, area: "prs" as const };
    assert.deepEqual(placeNamedBy(repositoryText(below)), below, JSON.stringify(identifier));
    assert.doesNotMatch(repositoryText(name), /[\x00-\x20]/);
  }
});

test("networks have one spelling", () => {
  for (const [given, shown] of [
    ["192.0.2.1", "192.0.2.1"],
    ["192.0.2.1/32", "192.0.2.1"],
    ["10.0.0.0/8", "10.0.0.0/8"],
    ["2001:DB8::/32", "2001:db8::/32"],
  ] as const) {
    const network = networkNamed(given);
    assert.equal(network && networkText(network), shown);
  }
  for (const bad of ["", "300.1.1.1", "10.0.0.0/33", "example.com"]) assert.equal(networkNamed(bad), undefined);
});

test("what grew while repositories were tidied is told by its kind; what shrank needs no words", () => {
  const tidied = (bytesBefore: number, bytesAfter: number, objectBytesBefore: number, objectBytesAfter: number) =>
    growthSentences({ bytesBefore, bytesAfter, objectBytesBefore, objectBytesAfter });
  assert.deepEqual(tidied(1_000, 1_000, 900, 900), []);
  assert.deepEqual(tidied(1_000, 900, 500, 800), []);
  assert.deepEqual(tidied(1_000, 1_548, 900, 900), [
    "548 bytes more are indexes and bitmaps, which make clones and pages quicker",
  ]);
  const [indexes, objects] = tidied(1_000, 5_096, 900, 2_948);
  assert.match(indexes ?? "", /^2 KiB more are indexes/);
  assert.match(objects ?? "", /^2 KiB more are objects that lay outside of packs/);
});
