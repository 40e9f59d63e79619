import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { EventId, Pubkey } from "../../nostr/event.js";
import type { EngineTable } from "../engine/backend.js";
import type { Effect, Effects } from "../engine/effects.js";
import { separated, withLocal } from "../engine/effects.js";
import { eventOf, pubkeyOf } from "../testing/events.js";
import { decodeBody, encodeBody, maxBodyBytes, newestFormat } from "./body.js";

const seq = fc.integer({ min: 1, max: 2 ** 48 });
const hex = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString("hex"));
const text = fc.string({ unit: "grapheme" });

const effect: fc.Arbitrary<Effect> = fc.oneof(
  fc
    .record({ seq, content: text })
    .map(({ seq: at, content }): Effect => ({ type: "stored", seq: at, event: eventOf({ content }) })),
  fc
    .record({
      seq,
      id: hex,
      pubkey: hex,
      kind: fc.integer({ min: 0, max: 65_535 }),
      address: fc.option(text, { nil: undefined }),
      cause: fc.constantFrom("replaced" as const, "vanish" as const, "operator" as const),
      target: fc.option(seq, { nil: undefined }),
    })
    .map(
      ({ target, ...removal }): Effect => ({
        type: "removed",
        removal: { ...removal, id: removal.id as EventId, pubkey: removal.pubkey as Pubkey },
        target,
      }),
    ),
);

const effects: fc.Arbitrary<Effects> = fc.record(
  {
    start: seq,
    position: seq,
    writes: fc.array(effect, { maxLength: 5 }),
    tables: fc
      .dictionary(
        fc.constantFrom("deletions", "meta", "refs"),
        fc.dictionary(text, fc.option(text, { nil: undefined }), { maxKeys: 4 }),
      )
      .map(
        (tables) =>
          new Map(Object.entries(tables).map(([name, rows]) => [name as EngineTable, new Map(Object.entries(rows))])),
      ),
    passing: fc.array(
      text.map((content) => eventOf({ content, kind: 20_001 })),
      { maxLength: 3 },
    ),
  },
  { noNullPrototype: true },
);

test("what was written into the log is what is read from it", () => {
  fc.assert(
    fc.property(effects, (change) => {
      const body = encodeBody(change);
      assert.ok(body);
      assert.deepEqual(decodeBody(1, body), change);
    }),
    { numRuns: 200 },
  );
});

test("a body that was cut short or has more behind its end is refused", () => {
  fc.assert(
    fc.property(effects, fc.nat(), (change, at) => {
      const body = encodeBody(change) as Buffer;
      assert.throws(() => decodeBody(1, body.subarray(0, at % body.length)), RangeError);
      assert.throws(() => decodeBody(1, Buffer.concat([body, Buffer.of(0)])), RangeError);
    }),
    { numRuns: 100 },
  );
});

const nothing: Effects = { start: 0, position: 0, writes: [], tables: new Map(), passing: [] };

test("a body has at most eight mebibytes, and another format is not guessed at", () => {
  const row = (length: number): Effects => ({
    ...nothing,
    tables: new Map([["meta", new Map([["x", "y".repeat(length)]])]]),
  });
  assert.equal(encodeBody(row(maxBodyBytes)), undefined);
  assert.ok(encodeBody(row(maxBodyBytes - 100)));
  assert.throws(() => decodeBody(newestFormat + 1, encodeBody(nothing) as Buffer), /format/);
});

test("rows of one machine are kept from the others, and both parts make the whole again", () => {
  const tables = new Map<EngineTable, Map<string, string | undefined>>([
    ["aligned", new Map([["a", "1"]])],
    [
      "meta",
      new Map([
        ["housekeeping:a", "1"],
        ["relay-name", undefined],
      ]),
    ],
    ["refs", new Map([["ref", '"x"']])],
  ]);
  const whole = { ...nothing, tables };
  const { shared, local } = separated(whole);
  assert.deepEqual([...(shared?.tables.keys() ?? [])], ["meta", "refs"]);
  assert.deepEqual([...(shared?.tables.get("meta")?.keys() ?? [])], ["relay-name"]);
  assert.deepEqual(
    local,
    new Map([
      ["aligned", new Map([["a", "1"]])],
      ["meta", new Map([["housekeeping:a", "1"]])],
    ]),
  );
  const again = withLocal(shared as Effects, local);
  assert.deepEqual(new Map([...again.tables].sort()), new Map([...tables].map(([name, rows]) => [name, rows])));
  assert.deepEqual(separated({ ...nothing, tables: new Map([["aligned", new Map([["a", "1"]])]]) }).shared, undefined);
  assert.ok(separated({ ...nothing, passing: [eventOf({ author: 2, content: pubkeyOf(1) })] }).shared);
});
