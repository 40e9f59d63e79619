import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import type { NostrEvent } from "../nostr/event.js";
import { type Filter, matcherOf, parseFilter } from "../nostr/filter.js";
import { SubscriptionIndex } from "./live.js";

const hex = (value: number) => value.toString(16).padStart(64, "0");
const small = fc.integer({ min: 0, max: 3 });
const hexes = fc.uniqueArray(small.map(hex), { maxLength: 3 });
const words = fc.uniqueArray(small.map(String), { maxLength: 3 });

const filterArbitrary: fc.Arbitrary<Filter> = fc
  .record(
    {
      ids: hexes,
      authors: hexes,
      kinds: fc.uniqueArray(small),
      "#e": words,
      "#p": words,
      "#long": words,
      since: small,
      until: small,
    },
    { requiredKeys: [] },
  )
  .map((value) => {
    const parsed = parseFilter(value);
    if (!parsed.ok) throw new Error(parsed.message);
    return parsed.filter;
  });

const eventArbitrary = fc
  .record({
    id: small.map(hex),
    pubkey: small.map(hex),
    kind: small,
    created_at: small,
    tags: fc.array(fc.tuple(fc.constantFrom("e", "p", "long", "x"), small.map(String)), { maxLength: 40, size: "max" }),
  })
  .map((fields) => ({ ...fields, content: "", sig: "", raw: "" }) as unknown as NostrEvent);

test("finds exactly the owners a scan of all filters finds, each once, while owners come and go", () => {
  const steps = fc.array(
    fc.record({
      owner: fc.integer({ min: 0, max: 9 }),
      filters: fc.array(filterArbitrary, { maxLength: 3 }),
      stays: fc.boolean(),
      // Filters are filed when an event comes: also between comings and goings.
      event: fc.option(eventArbitrary),
    }),
    { maxLength: 30 },
  );
  fc.assert(
    fc.property(steps, fc.array(eventArbitrary, { maxLength: 10 }), (changes, events) => {
      const owners = Array.from({ length: 10 }, (_, number) => ({ number }));
      const index = new SubscriptionIndex<{ number: number }>();
      const oracle = new Map<number, readonly Filter[]>();
      const check = (event: NostrEvent): void => {
        const found = index.match(event).map(({ number }) => number);
        const expected = [...oracle]
          .filter(([, filters]) => filters.some((filter) => matcherOf(filter)(event)))
          .map(([owner]) => owner);
        assert.deepEqual(found.sort(), expected.sort());
      };
      for (const { owner, filters, stays, event } of changes) {
        const object = owners[owner] as { number: number };
        index.add(object, filters);
        oracle.set(owner, filters);
        if (!stays) {
          index.remove(object);
          oracle.delete(owner);
        }
        if (event) check(event);
      }
      assert.equal(index.size, oracle.size);
      for (const event of events) check(event);
    }),
    { numRuns: 500 },
  );
});

test("an owner that leaves with very many values is not found from then on, and may come again at once", async () => {
  const index = new SubscriptionIndex<object>();
  const wanted = { id: "x", pubkey: hex(1), kind: 1, created_at: 1, tags: [["e", "9:0"]] } as unknown as NostrEvent;
  const filters: Filter[] = Array.from({ length: 10 }, (_, filter) => ({
    tags: new Map([["e", Array.from({ length: 5_000 }, (_, value) => `${filter}:${value}`)]]),
  }));
  const [leaves, stays] = [{}, {}];
  index.add(leaves, filters);
  index.add(stays, filters.slice(9));
  index.remove(leaves);
  assert.deepEqual(index.match(wanted), [stays]);
  index.add(leaves, filters);
  assert.deepEqual(new Set(index.match(wanted)), new Set([stays, leaves]));
  for (let turn = 0; turn < 12; turn++) await nextTurn();
  assert.deepEqual(new Set(index.match(wanted)), new Set([stays, leaves]));
  index.remove(leaves);
  index.remove(stays);
  assert.deepEqual(index.match(wanted), []);
});
