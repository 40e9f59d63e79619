import assert from "node:assert/strict";
import { test } from "node:test";
import { bech32 } from "@scure/base";
import fc from "fast-check";
import * as theirs from "nostr-tools/nip19";
import type { EventId, Pubkey } from "./event.js";
import { SecretKey } from "./keys.js";
import {
  naddrOf,
  neventOf,
  noteOf,
  npubOf,
  nsecOf,
  parseNaddr,
  parseNevent,
  parseNote,
  parseNpub,
  parseNsec,
} from "./nip19.js";
import { keyFrom } from "./testing/signed.js";

const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 });
const hex64 = bytes32.map((bytes) => Buffer.from(bytes).toString("hex"));
const relays = fc.array(fc.webUrl(), { maxLength: 3 });
const pubkey = keyFrom("somebody").pubkey;
const name = (prefix: string, bytes: Iterable<number>) =>
  bech32.encode(prefix, bech32.toWords(Uint8Array.from(bytes)), false);

test("NIP-19's own examples", () => {
  const pairs = [
    [
      "7e7e9c42a91bfef19fa929e5fda1b72e0ebc1a4c1141673e2794234d86addf4e",
      "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg",
    ],
    [
      "3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d",
      "npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6",
    ],
  ] as const;
  for (const [hex, npub] of pairs) {
    assert.equal(npubOf(hex as Pubkey), npub);
    assert.equal(parseNpub(npub), hex);
  }
  const nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
  const key = parseNsec(nsec);
  assert.equal(
    key && Buffer.from(key.exportBytes()).toString("hex"),
    "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa",
  );
  assert.equal(key && nsecOf(key), nsec);
});

test("keys, notes, events and addresses are spelled as nostr-tools spells them, and read back", () => {
  fc.assert(
    fc.property(
      hex64,
      hex64,
      relays,
      fc.integer({ min: 0, max: 65_535 }),
      fc.string({ unit: "grapheme", maxLength: 30 }),
      (id, author, hints, kind, identifier) => {
        assert.equal(npubOf(author as Pubkey), theirs.npubEncode(author));
        assert.equal(parseNpub(theirs.npubEncode(author)), author);
        assert.equal(noteOf(id as EventId), theirs.noteEncode(id));
        assert.equal(parseNote(theirs.noteEncode(id)), id);

        const event = { id: id as EventId, relays: hints, author: author as Pubkey, kind };
        const nevent = neventOf(event)!;
        assert.deepEqual(theirs.decode(nevent).data, event);
        assert.deepEqual(parseNevent(nevent), event);
        assert.deepEqual(parseNevent(theirs.neventEncode(event)), event);

        const address = { kind, pubkey: author as Pubkey, identifier };
        const naddr = naddrOf({ address, relays: hints })!;
        assert.deepEqual(theirs.decode(naddr).data, { ...address, relays: hints });
        assert.deepEqual(parseNaddr(naddr), { address, relays: hints });
        assert.deepEqual(parseNaddr(theirs.naddrEncode({ ...address, relays: hints })), { address, relays: hints });
      },
    ),
    { numRuns: 200 },
  );
});

test("secret keys are spelled as nostr-tools spells them", () => {
  fc.assert(
    fc.property(bytes32, (bytes) => {
      const key = SecretKey.fromBytes(bytes);
      fc.pre(key !== undefined);
      assert.equal(nsecOf(key!), theirs.nsecEncode(bytes));
      assert.deepEqual(parseNsec(theirs.nsecEncode(bytes))?.exportBytes(), Uint8Array.from(bytes));
    }),
    { numRuns: 50 },
  );
});

test("a name without hints says so", () => {
  const id = "ab".repeat(32) as EventId;
  const bare = { id, relays: [], author: undefined, kind: undefined };
  assert.deepEqual(parseNevent(neventOf(bare)!), bare);
});

test("no random text, and no name with one letter changed, is read as a name", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      for (const parse of [parseNpub, parseNote, parseNsec, parseNevent, parseNaddr]) {
        assert.equal(parse(text), undefined);
        assert.equal(parse(`npub1${text}`), undefined);
      }
    }),
  );
  const npub = npubOf(pubkey);
  for (let at = 0; at < npub.length; at++) {
    const other = npub.slice(0, at) + (npub[at] === "q" ? "p" : "q") + npub.slice(at + 1);
    assert.equal(parseNpub(other), undefined, other);
  }
});

test("another spelling, another prefix or another length of a key is refused", () => {
  const npub = npubOf(pubkey);
  const key = [...Buffer.from(pubkey, "hex")];
  for (const text of [
    npub.toUpperCase(),
    `N${npub.slice(1)}`,
    ` ${npub}`,
    `${npub}\n`,
    `${npub}q`,
    "",
    "npub1",
    name("npub", key.slice(1)),
    name("npub", [...key, 0]),
    name("note", key),
    name("npu", key),
  ]) {
    assert.equal(parseNpub(text), undefined, text);
  }
  assert.equal(parseNote(npub), undefined);
  assert.equal(parseNsec(name("nsec", new Uint8Array(32))), undefined);
  assert.equal(parseNsec(name("nsec", new Uint8Array(32).fill(255))), undefined);
});

const entry = (type: number, value: Iterable<number>) => {
  const bytes = [...value];
  return [type, bytes.length, ...bytes];
};
const id = entry(0, new Uint8Array(32).fill(7));
const author = entry(2, Buffer.from(pubkey, "hex"));
const kind = entry(3, [0, 0, 0x77, 0x99]);

test("a nevent that is cut, ambiguous or ill-typed is refused; types nobody knows are ignored", () => {
  assert.ok(parseNevent(name("nevent", id)));
  assert.ok(parseNevent(name("nevent", [...id, ...entry(99, [1, 2])])));
  for (const bytes of [
    [],
    [0],
    id.slice(0, -1),
    [...id, 1],
    [...id, ...id],
    [...id, ...author, ...author],
    [...id, ...kind, ...kind],
    entry(0, [1, 2]),
    [...id, ...entry(2, [1])],
    [...id, ...entry(3, [1])],
    [...id, ...entry(3, [0, 1, 0, 0])],
    [...id, ...entry(1, [0xff])],
    author,
  ]) {
    assert.equal(parseNevent(name("nevent", bytes)), undefined, `${bytes}`);
  }
});

test("an naddr needs author and kind, and an identifier of valid UTF-8", () => {
  const identifier = entry(0, Buffer.from("\ufeffrepo"));
  assert.equal(parseNaddr(name("naddr", [...identifier, ...author, ...kind]))?.address.identifier, "\ufeffrepo");
  for (const bytes of [
    [...author, ...kind],
    [...identifier, ...author],
    [...identifier, ...kind],
    [...entry(0, [0xc0]), ...author, ...kind],
  ]) {
    assert.equal(parseNaddr(name("naddr", bytes)), undefined, `${bytes}`);
  }
});

test("what NIP-19 cannot carry is not encoded", () => {
  const address = (identifier: string) => ({ address: { kind: 30_617, pubkey, identifier }, relays: [] });
  assert.ok(naddrOf(address("é".repeat(127))));
  assert.equal(naddrOf(address("é".repeat(128))), undefined);
  assert.equal(naddrOf(address("\ud800")), undefined);
  const relay = `wss://${"a".repeat(200)}.example`;
  assert.equal(naddrOf({ ...address("x"), relays: Array<string>(100).fill(relay) }), undefined);
  const many = { ...address("x"), relays: Array<string>(14).fill(relay) };
  assert.deepEqual(parseNaddr(naddrOf(many)!), many);
});
