import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { assertLinear } from "../base/testing/linear-time.js";
import type { NostrEvent } from "./event.js";
import {
  type Filter,
  filterJson,
  matcherOf,
  matchesNothing,
  maxSearchWords,
  parseFilter,
  searchableWords,
  searchWords,
} from "./filter.js";

function parsed(value: unknown): Filter {
  const result = parseFilter(value);
  assert.ok(result.ok, result.ok ? "" : result.message);
  return result.filter;
}

const hex = (digit: string) => digit.repeat(64);

// A small world, so that random filters and events meet.
const ids = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b"].map(hex);
const values = ["", "x", "y", "z", "X", "__proto__", "é"];
const names = ["e", "p", "t", "d", "__proto__", "long"];

const events = fc.record({
  id: fc.constantFrom(...ids),
  pubkey: fc.constantFrom(...ids),
  created_at: fc.integer({ min: 0, max: 12 }),
  kind: fc.integer({ min: 0, max: 4 }),
  tags: fc.array(
    fc.oneof(
      fc.tuple(fc.constantFrom(...names)),
      fc.tuple(fc.constantFrom(...names), fc.constantFrom(...values)),
      fc.tuple(fc.constantFrom(...names), fc.constantFrom(...values), fc.constantFrom(...values)),
    ),
    { maxLength: 5 },
  ),
});

const lists = <T>(items: readonly T[]) => fc.array(fc.constantFrom(...items), { maxLength: 11 });
const parts = {
  ids: lists(ids),
  authors: lists(ids),
  kinds: fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 10 }),
  since: fc.integer({ min: 0, max: 12 }),
  until: fc.integer({ min: 0, max: 12 }),
  limit: fc.nat(3),
  "#e": lists(values),
  "#t": lists(values),
  "#__proto__": lists(values),
  "#long": lists(values),
  unknown: fc.constant({ kinds: [9] }),
};
// A few parts at a time: a filter with all of them matches nothing and tests nothing.
const written = fc
  .subarray(Object.keys(parts) as (keyof typeof parts)[], { maxLength: 4 })
  .chain((keys) => fc.record(Object.fromEntries(keys.map((key) => [key, parts[key] as fc.Arbitrary<unknown>]))));

type Written = Record<string, unknown>;

/** NIP-01 read aloud, without any of the code under test. */
function oracle(
  filter: Written,
  event: { id: string; pubkey: string; created_at: number; kind: number; tags: string[][] },
) {
  for (const [key, wanted] of Object.entries(filter)) {
    if (key === "ids" && !(wanted as string[]).some((id) => id === event.id)) return false;
    if (key === "authors" && !(wanted as string[]).some((author) => author === event.pubkey)) return false;
    if (key === "kinds" && !(wanted as number[]).some((kind) => kind === event.kind)) return false;
    if (key === "since" && !(event.created_at >= (wanted as number))) return false;
    if (key === "until" && !(event.created_at <= (wanted as number))) return false;
    if (key[0] === "#") {
      let found = false;
      for (const [name, value] of event.tags) {
        if (`#${name}` === key && value !== undefined && (wanted as string[]).indexOf(value) >= 0) found = true;
      }
      if (!found) return false;
    }
  }
  return true;
}

test("a compiled filter matches exactly what NIP-01's words say", () => {
  let matches = 0;
  fc.assert(
    fc.property(written, fc.array(events, { minLength: 20, maxLength: 20 }), (value, list) => {
      const match = matcherOf(parsed(value));
      for (const event of list) {
        const expected = oracle(value, event as never);
        if (expected) matches++;
        assert.equal(match(event as unknown as NostrEvent), expected);
      }
    }),
    { numRuns: 2000 },
  );
  assert.ok(matches > 500, `only ${matches} matches: the test looks at nothing`);
});

test("a filter survives being written and parsed again", () => {
  fc.assert(
    fc.property(written, (value) => {
      const filter = parsed(value);
      assert.deepEqual(parsed(JSON.parse(JSON.stringify(filterJson(filter)))), filter);
    }),
  );
});

test("what matches nothing is known without looking at events, and matches none", () => {
  fc.assert(
    fc.property(written, fc.array(events, { maxLength: 20 }), (value, list) => {
      const filter = parsed(value);
      if (matchesNothing(filter)) assert.ok(!list.some((event) => oracle(value, event as never)));
    }),
  );
  for (const value of [{ ids: [] }, { authors: [] }, { kinds: [] }, { "#e": [] }, { since: 5, until: 4 }]) {
    assert.equal(matchesNothing(parsed(value)), true, JSON.stringify(value));
  }
  for (const value of [{}, { since: 4, until: 4 }, { limit: 0 }, { search: "" }]) {
    assert.equal(matchesNothing(parsed(value)), false, JSON.stringify(value));
  }
});

const bad: [string, unknown][] = [
  ["null", null],
  ["an array", []],
  ["a text", "{}"],
  ["ids that are no array", { ids: hex("a") }],
  ["an id in upper case", { ids: [hex("A")] }],
  ["an id prefix", { ids: ["abcd"] }],
  ["a number among authors", { authors: [1] }],
  ["a kind as text", { kinds: ["1"] }],
  ["a kind of 65536", { kinds: [65_536] }],
  ["a fraction as kind", { kinds: [1.5] }],
  ["a negative since", { since: -1 }],
  ["until as text", { until: "1" }],
  ["a limit of 2^53", { limit: 2 ** 53 }],
  ["a negative limit", { limit: -1 }],
  ["a limit of null", { limit: null }],
  ["search that is no text", { search: 1 }],
  ["a tag filter that is a text", { "#e": "x" }],
  ["a number in a tag filter", { "#e": [1] }],
  ["a lone surrogate in a tag filter", { "#t": ["\ud800"] }],
];
for (const [name, value] of bad) {
  test(`${name} is refused as a bad filter`, () => {
    const result = parseFilter(value);
    assert.equal(result.ok ? "accepted" : result.code, "bad-filter");
  });
}

test("repeated values count once, unknown keys are ignored, __proto__ included", () => {
  const filter = parsed(
    JSON.parse(`{"kinds":[1,1,2],"__proto__":{"ids":[]},"#":["x"],"depth":{"a":[[]]},"#t":["a","a"]}`),
  );
  assert.deepEqual(filter, { kinds: [1, 2], tags: new Map([["t", ["a"]]]) });
});

test("repeated values count once, wherever they stand and whatever else they share", () => {
  // Few endings and beginnings, so that different values look alike in part.
  const value = fc.tuple(fc.constantFrom("", "a", "b".repeat(60)), fc.nat(40), fc.constantFrom("", "-".repeat(20)));
  const values = fc.array(
    value.map((parts) => parts.join("")),
    { maxLength: 300, size: "max" },
  );
  fc.assert(fc.property(values, (list) => assert.deepEqual(parsed({ "#t": list }).tags?.get("t"), [...new Set(list)])));
  const many = Array.from({ length: 8_000 }, (_, index) => `${index}`);
  assert.deepEqual(parsed({ "#t": [...many, "0"] }).tags?.get("t"), many);
});

test("threat 32: values that end alike are told apart in linear time", () => {
  assertLinear(
    "values with the same ending",
    (chars) =>
      Array.from({ length: Math.ceil(chars / 50) }, (_, index) => `${index} of many values that end like this one`),
    (list) => parsed({ "#t": list }),
  );
});

test("a tag of several values matches by its first value only", () => {
  const match = matcherOf(parsed({ "#t": ["second"] }));
  assert.equal(match({ tags: [["t", "first", "second"]] } as unknown as NostrEvent), false);
});

test("thousands of values are looked up, not walked", () => {
  const many = Array.from({ length: 5000 }, (_, index) => index.toString(16).padStart(64, "0"));
  const match = matcherOf(parsed({ authors: many, "#p": [...many, "x".repeat(65_536)] }));
  const event = (pubkey: string, value: string) => ({ pubkey, tags: [["p", value]] }) as unknown as NostrEvent;
  assert.equal(match(event(many[4999]!, many[4998]!)), true);
  assert.equal(match(event(many[4999]!, "x".repeat(65_536))), true);
  assert.equal(match(event(hex("f"), many[0]!)), false);
});

const event = (kind: number, content: string, tags: string[][] = []) => ({ kind, content, tags });

test("a repository is found by name, identifier and description", () => {
  const tags = [
    ["d", "hold-fast"],
    ["name", "Ｈoldfast"],
    ["description", "keeps, holds"],
  ];
  assert.deepEqual(searchableWords(event(30_617, "not this", tags)), ["holdfast", "hold", "fast", "keeps", "holds"]);
});

test("an issue is found by its subject, else by its first line that says something", () => {
  assert.deepEqual(searchableWords(event(1_621, "body", [["subject", "It breaks"]])), ["it", "breaks"]);
  assert.deepEqual(searchableWords(event(1_621, "\n  \r\nFirst line\nsecond")), ["first", "line"]);
});

test("a patch is found by the subject of its mail", () => {
  const mail = "From 0000 Mon Sep 17\nFrom: A\nSubject: [PATCH] fix it\n\nbody";
  assert.deepEqual(searchableWords(event(1_617, mail)), ["patch", "fix", "it"]);
});

test("other kinds are not searchable, and one event has a bounded number of words", () => {
  assert.deepEqual(searchableWords(event(1, "hello")), []);
  const many = Array.from({ length: 500 }, (_, index) => `w${index}`).join(" ");
  assert.equal(searchableWords(event(30_617, "", [["name", many]])).length, maxSearchWords);
});

test("extensions of a search are not words", () => {
  assert.deepEqual(searchWords("Best  apps language:en sort:top"), ["best", "apps"]);
});
