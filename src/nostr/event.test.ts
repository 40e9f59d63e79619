import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { getEventHash, verifyEvent } from "nostr-tools/pure";
import {
  addressOf,
  addressText,
  compareNewestFirst,
  eventFromStoredText,
  eventId,
  expirationOf,
  isAddressable,
  isEphemeral,
  isProtected,
  isReplaceable,
  maxEventBytes,
  type NostrEvent,
  type Pubkey,
  parseAddress,
  parseEvent,
  tagValue,
  tagValues,
} from "./event.js";
import { keyFrom, signedEvent } from "./testing/signed.js";

const text = fc.string({ unit: "binary", maxLength: 40 });
const drafts = fc.record({
  kind: fc.integer({ min: 0, max: 65_535 }),
  created_at: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
  tags: fc.array(fc.array(text, { minLength: 1, maxLength: 4 }), { maxLength: 6 }),
  content: text,
});

function parsed(value: unknown): NostrEvent {
  const result = parseEvent(value);
  assert.ok(result.ok, result.ok ? "" : result.message);
  return result.event;
}

function refusal(value: unknown): string {
  const result = parseEvent(value);
  assert.ok(!result.ok, "the event was accepted");
  return result.code;
}

/** The event as a plain object, changed, with the id of what it then says. */
function changed(change: Record<string, unknown>): Record<string, unknown> {
  const { raw: _, ...event } = signedEvent({ content: "hello", tags: [["t", "x"]] });
  const value = { ...event, ...change };
  return { ...value, id: eventId(value as NostrEvent) };
}

test("any event survives parse, raw and parse again, and what is served hashes to its id and verifies elsewhere", () => {
  const key = keyFrom("round trip");
  fc.assert(
    fc.property(drafts, (draft) => {
      const event = signedEvent(draft, key);
      const served = JSON.parse(event.raw);
      assert.equal(getEventHash(served), event.id);
      const again = parsed(served);
      assert.deepEqual(again, event);
      assert.deepEqual(eventFromStoredText(event.raw), event);
      assert.deepEqual(Object.keys(served), ["id", "pubkey", "created_at", "kind", "tags", "content", "sig"]);
    }),
    { numRuns: 500 },
  );
  fc.assert(
    fc.property(drafts, (draft) => verifyEvent(JSON.parse(signedEvent(draft, key).raw))),
    { numRuns: 20 },
  );
});

test("an event that another program signed is accepted", () => {
  const event = changed({ content: 'quotes " and \\ and \n\r\t\b\f and \u0000\u001f\u007f\u2028 and 🦀' });
  assert.equal(event.id, getEventHash(event as never));
  assert.equal(parsed(event).content, event.content);
});

const badShapes: [string, unknown][] = [
  ["nothing", undefined],
  ["null", null],
  ["a text", "event"],
  ["an array", []],
  ["an empty object", {}],
  ["an id in upper case", { ...changed({}), id: "A".repeat(64) }],
  ["an id that is too short", { ...changed({}), id: "a".repeat(63) }],
  ["an id followed by a line feed", { ...changed({}), id: `${"a".repeat(64)}\n` }],
  ["a pubkey in upper case", changed({ pubkey: "A".repeat(64) })],
  ["a signature that is too long", changed({ sig: "a".repeat(130) })],
  ["no signature", changed({ sig: undefined })],
  ["a negative time", changed({ created_at: -1 })],
  ["a time of -0", changed({ created_at: -0 })],
  ["a fraction of a second", changed({ created_at: 1.5 })],
  ["a time of 2^53", changed({ created_at: 2 ** 53 })],
  ["a time as text", changed({ created_at: "1700000000" })],
  ["a kind of 65536", changed({ kind: 65_536 })],
  ["a negative kind", changed({ kind: -1 })],
  ["tags that are no array", changed({ tags: {} })],
  ["a tag that is a text", changed({ tags: ["t"] })],
  ["a tag without items", changed({ tags: [[]] })],
  ["a number in a tag", changed({ tags: [["t", 1]] })],
  ["null in a tag", changed({ tags: [["t", null]] })],
  ["an array inside a tag", changed({ tags: [["t", ["x"]]] })],
  ["content that is no text", changed({ content: 5 })],
  ["a lone high surrogate in the content", changed({ content: "\ud83d" })],
  ["a lone low surrogate in a tag", changed({ tags: [["t", "x\udc00"]] })],
];
for (const [name, value] of badShapes) {
  test(`${name} is refused as a bad event`, () => assert.equal(refusal(value), "bad-event"));
}

test("JSON tricks (threats.md 27): numbers beyond 2^53, exponents, signs", () => {
  const written = (created_at: string, meant: number) =>
    JSON.parse(
      JSON.stringify(changed({ created_at: meant })).replace(/"created_at":[^,]+/, `"created_at":${created_at}`),
    );
  const event = parsed(written("1e9", 1_000_000_000));
  assert.match(event.raw, /"created_at":1000000000,/);
  assert.equal(getEventHash(JSON.parse(event.raw)), event.id);
  assert.equal(parsed(written("1700000000.0", 1_700_000_000)).created_at, 1_700_000_000);
  assert.equal(refusal(written("9007199254740993", 2 ** 53)), "bad-event");
  assert.equal(refusal(written("-5", -5)), "bad-event");
  assert.equal(refusal(written("-0", 0)), "bad-event");
  assert.equal(refusal(written("1e999", 0)), "bad-event");
});

test("JSON tricks (threats.md 27): of duplicate keys the last counts, for the hash and for what is served", () => {
  const good = JSON.stringify(changed({ content: "last" }));
  const event = parsed(JSON.parse(good.replace('"content"', '"content":"first","content"')));
  assert.equal(event.content, "last");
  assert.equal(event.raw.match(/"content"/g)?.length, 1);
  assert.equal(refusal(JSON.parse(good.replace('"sig"', '"content":"other","sig"'))), "bad-id");
});

test("JSON tricks (threats.md 27): nesting 100,000 deep is refused without harm", () => {
  const deep = "[".repeat(100_000) + "]".repeat(100_000);
  const json = JSON.stringify(changed({}));
  assert.equal(refusal(JSON.parse(json.replace(/"tags":\[.*?\]\]/, `"tags":${deep}`))), "bad-event");
  const event = parsed(JSON.parse(json.replace(/\}$/, `,"extra":${deep}}`)));
  assert.ok(!event.raw.includes("extra"));
});

test("JSON tricks (threats.md 27): __proto__ and unknown keys are dropped and change nothing", () => {
  const json = JSON.stringify(changed({}));
  const event = parsed(JSON.parse(json.replace(/\}$/, ',"__proto__":{"kind":5},"constructor":1,"x":{}}')));
  assert.equal(event.kind, 1);
  assert.deepEqual(Object.keys(JSON.parse(event.raw)).length, 7);
  assert.equal(refusal(JSON.parse(`{"__proto__":${json}}`)), "bad-event");
});

test("JSON tricks (threats.md 27): a NUL is carried and hashes as every program writes it", () => {
  const event = parsed(changed({ content: "a\u0000b", tags: [["d", "\u0000"]] }));
  assert.match(event.raw, /a\\u0000b/);
  assert.equal(getEventHash(JSON.parse(event.raw)), event.id);
});

test("an id that is not the hash of the content is refused: a forged copy has nothing of the good one (threats.md 21)", () => {
  const { raw: _, ...good } = signedEvent({ content: "mine" });
  assert.equal(refusal({ ...good, content: "forged" }), "bad-id");
  assert.equal(refusal({ ...good, tags: [["t", "forged"]] }), "bad-id");
  assert.equal(refusal({ ...good, kind: 2 }), "bad-id");
  assert.equal(refusal({ ...good, pubkey: keyFrom("another").pubkey }), "bad-id");
});

test("an event of up to 1 MiB with thousands of tags is taken, one byte more is not", () => {
  const refs = Array.from({ length: 4000 }, (_, index) => [`refs/heads/branch-${index}`, "a".repeat(40)]);
  assert.equal(parsed(changed({ kind: 30_618, tags: refs })).tags.length, 4000);
  const empty = parsed(changed({ content: "" })).raw.length;
  for (const letter of ["a", "é", "€"]) {
    const size = Buffer.byteLength(letter);
    const count = Math.floor((maxEventBytes - empty) / size);
    assert.ok(parseEvent(changed({ content: letter.repeat(count) })).ok);
    assert.equal(refusal(changed({ content: letter.repeat(count + 1) })), "too-large");
  }
});

test("ranges of kinds are NIP-01's", () => {
  const replaceable = [0, 3, 10_000, 19_999];
  const ephemeral = [20_000, 29_999];
  const addressable = [30_000, 39_999];
  const regular = [1, 2, 4, 5, 44, 1617, 9999, 40_000, 65_535];
  for (const kind of [...replaceable, ...ephemeral, ...addressable, ...regular]) {
    assert.equal(isReplaceable(kind), replaceable.includes(kind), `${kind}`);
    assert.equal(isEphemeral(kind), ephemeral.includes(kind), `${kind}`);
    assert.equal(isAddressable(kind), addressable.includes(kind), `${kind}`);
  }
});

test("tag values are read from the first tag, or from all of a name", () => {
  const event = { tags: [["a"], ["t", "1", "x"], ["t", "2"], ["t"]] };
  assert.equal(tagValue(event, "t"), "1");
  assert.equal(tagValue(event, "a"), undefined);
  assert.equal(tagValue(event, "z"), undefined);
  assert.deepEqual(tagValues(event, "t"), ["1", "2"]);
});

test("an expiration is a whole number of seconds or nothing", () => {
  const of = (value: string) => expirationOf({ tags: [["expiration", value]] });
  assert.equal(of("1700000000"), 1_700_000_000);
  for (const value of ["", "-1", "1.5", "1e9", " 1", "0x10", "9".repeat(16)]) assert.equal(of(value), undefined, value);
  assert.equal(expirationOf({ tags: [] }), undefined);
});

test("a protected event is one with a - tag", () => {
  assert.equal(isProtected({ tags: [["-"]] }), true);
  assert.equal(isProtected({ tags: [["t", "-"]] }), false);
});

test("newest comes first, and within a second the lower id", () => {
  const list = [
    { created_at: 1, id: "b" },
    { created_at: 2, id: "c" },
    { created_at: 1, id: "a" },
  ];
  assert.deepEqual(
    [...list].sort(compareNewestFirst).map((event) => event.id),
    ["c", "a", "b"],
  );
  assert.equal(compareNewestFirst(list[0]!, list[0]!), 0);
});

const pubkey = "ab".repeat(32) as Pubkey;

test("any address survives being written and parsed, colons in its identifier included", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 65_535 }),
      fc.oneof(fc.string({ unit: "binary" }), fc.stringMatching(/^[:a-z/]{0,12}$/)),
      (kind, identifier) => {
        const address = { kind, pubkey, identifier };
        assert.deepEqual(parseAddress(addressText(address)), address);
      },
    ),
  );
  assert.deepEqual(parseAddress(`30617:${pubkey}:a:b:`), { kind: 30_617, pubkey, identifier: "a:b:" });
  assert.deepEqual(parseAddress(`30617:${pubkey}:`), { kind: 30_617, pubkey, identifier: "" });
});

for (const text of [
  "",
  ":",
  "::",
  `:${pubkey}:x`,
  `30617:${pubkey}`,
  `30617::x`,
  `030617:${pubkey}:x`,
  `+1:${pubkey}:x`,
  `-1:${pubkey}:x`,
  `1e4:${pubkey}:x`,
  ` 1:${pubkey}:x`,
  `65536:${pubkey}:x`,
  `99999999999:${pubkey}:x`,
  `30617:${pubkey.toUpperCase()}:x`,
  `30617:${pubkey}0:x`,
]) {
  test(`"${text.slice(0, 24)}" is no address`, () => assert.equal(parseAddress(text), undefined));
}

test("an event's address follows from its kind: none, its author's, or its author's by identifier", () => {
  const of = (kind: number, tags: string[][]) => addressOf({ kind, pubkey, tags });
  assert.equal(of(1, [["d", "x"]]), undefined);
  assert.equal(of(20_000, [["d", "x"]]), undefined);
  assert.deepEqual(of(0, [["d", "x"]]), { kind: 0, pubkey, identifier: "" });
  assert.deepEqual(of(10_317, [["d", "x"]]), { kind: 10_317, pubkey, identifier: "" });
  assert.deepEqual(
    of(30_617, [
      ["d", "x"],
      ["d", "y"],
    ]),
    { kind: 30_617, pubkey, identifier: "x" },
  );
  assert.deepEqual(of(30_617, []), { kind: 30_617, pubkey, identifier: "" });
  assert.deepEqual(of(30_617, [["d"], ["d", "y"]]), { kind: 30_617, pubkey, identifier: "" });
});
