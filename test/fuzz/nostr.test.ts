// Fuzz: events, filters and negentropy. Oracles: nostr-tools for ids and signatures' shape, a walk over all events written
// from NIP-01 alone for filters (both stores), set difference for negentropy.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { getEventHash, validateEvent } from "nostr-tools";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { eventId, type NostrEvent, type Pubkey, parseEvent, type VerifiedEvent } from "../../src/nostr/event.js";
import { parseFilter } from "../../src/nostr/filter.js";
import { NegentropyClient, NegentropyServer } from "../../src/nostr/negentropy/reconcile.js";
import type { TimedIds } from "../../src/nostr/negentropy/records.js";
import { NegentropyRecords } from "../../src/nostr/negentropy/records.js";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import { createMemoryStore } from "../../src/store/memory/memory-store.js";
import type { Store } from "../../src/store/port.js";
import { eventOf, pubkeyOf } from "../../src/store/testing/events.js";
import { parameters, spiced } from "./runs.js";

const hex = (chars: number) =>
  fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: chars, maxLength: chars });
const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }),
  spiced(["\0", "\ud800", "\udc00", "😀", "\u2028", '"', "\\", "\b", "\x7f", "</", "__proto__", "é", "\ufeff"], 6),
);
const goodTags = fc.array(
  fc.array(
    anyText.map((text) => text.toWellFormed()),
    { minLength: 1, maxLength: 4 },
  ),
  { maxLength: 5 },
);
const goodEvent = fc
  .record({
    pubkey: hex(64) as fc.Arbitrary<Pubkey>,
    created_at: fc.maxSafeNat(),
    kind: fc.nat(65_535),
    tags: goodTags,
    content: anyText.map((text) => text.toWellFormed()),
    sig: hex(128),
  })
  .map(({ sig, ...unsigned }) => ({ ...unsigned, id: eventId(unsigned), sig }));
const oddValue = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom(
    -1,
    -0,
    1.5,
    2 ** 53,
    2 ** 53 + 2,
    1e300,
    null,
    true,
    "",
    [],
    {},
    [[]],
    [["e", 1]],
    [["\ud800"]],
    "\ud800",
  ),
);
const oddEvent = fc
  .tuple(
    goodEvent,
    fc.constantFrom("id", "pubkey", "created_at", "kind", "tags", "content", "sig", "__proto__", "extra"),
    oddValue,
    fc.boolean(),
  )
  .map(([event, field, value, rehash]) => {
    const changed: Record<string, unknown> = { ...event };
    Object.defineProperty(changed, field, { value, enumerable: true, configurable: true, writable: true });
    // Sometimes the id is right for the odd value, as far as JSON.stringify can say.
    if (rehash && field !== "id") {
      try {
        changed.id = eventId(changed as never);
      } catch {
        // Not serialisable: the old id stays.
      }
    }
    return changed;
  });

/** What is true of every event the parser lets through, however it was written. */
function checkParsed(event: NostrEvent): void {
  const served = JSON.parse(event.raw) as Record<string, unknown>;
  assert.deepEqual(Object.keys(served), ["id", "pubkey", "created_at", "kind", "tags", "content", "sig"]);
  assert.ok(validateEvent(served as never));
  assert.equal(getEventHash(served as never), event.id, "what is served hashes to its id");
  assert.equal(event.raw, Buffer.from(event.raw).toString("utf8"), "and survives UTF-8");
  const again = parseEvent(served);
  assert.ok(again.ok);
  assert.equal(again.event.raw, event.raw);
}

describe("fuzz: events", () => {
  test("every well-formed event parses, and what it is served as hashes to its id", () => {
    fc.assert(
      fc.property(goodEvent, (event) => {
        const parsed = parseEvent(JSON.parse(JSON.stringify(event)));
        assert.ok(parsed.ok, parsed.ok ? "" : parsed.message);
        assert.equal(getEventHash(event), parsed.event.id);
        checkParsed(parsed.event);
      }),
      parameters(1_000),
    );
  });

  test("odd values are refused, or parse to something that hashes to its id", () => {
    fc.assert(
      fc.property(fc.oneof(oddEvent, oddValue), (value) => {
        const text = JSON.stringify(value);
        for (const given of [value, text === undefined ? undefined : JSON.parse(text)]) {
          const parsed = parseEvent(given);
          if (parsed.ok) checkParsed(parsed.event);
          else assert.ok(parsed.message.length > 0);
        }
      }),
      parameters(2_000),
    );
  });
});

const letters = ["t", "e", "a", "d", "p", "T", "tt"];
const values = ["", "a", "b", "é", "x".repeat(600), "a\0", "30617:x:y"];
const draft = fc.record({
  author: fc.nat(4),
  kind: fc.constantFrom(1, 7, 1621, 30_617, 0),
  at: fc.constantFrom(1, 2, 3, 4, 1_700_000_000, Number.MAX_SAFE_INTEGER),
  tags: fc.array(fc.tuple(fc.constantFrom(...letters), fc.constantFrom(...values)), { maxLength: 4 }),
  content: fc.constantFrom("", "1", "2", "3"),
});
const time = fc.constantFrom(0, 1, 2, 3, 5, 1_700_000_000, Number.MAX_SAFE_INTEGER);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 1 });
const filterText = fc
  .record({
    authors: maybe(
      fc.array(
        fc.nat(6).map((author) => pubkeyOf(author)),
        { maxLength: 4 },
      ),
    ),
    kinds: maybe(fc.array(fc.constantFrom<number[]>(1, 7, 1621, 30_617, 0, 9), { maxLength: 4 })),
    since: maybe(time),
    until: maybe(time),
    limit: maybe(fc.nat(6)),
    tags: fc.array(fc.tuple(fc.constantFrom(...letters), fc.array(fc.constantFrom(...values), { maxLength: 3 })), {
      maxLength: 2,
    }),
    unknown: maybe(fc.jsonValue()),
  })
  .map(({ tags, ...rest }) => ({ ...rest, ...Object.fromEntries(tags.map(([name, list]) => [`#${name}`, list])) }));
type FilterText = ReturnType<typeof filterText.generate> extends { value: infer Value } ? Value : never;

/** NIP-01 word for word, over the JSON of a filter. */
function naive(events: readonly VerifiedEvent[], filters: readonly FilterText[]): string[] {
  const newestFirst = [...events].sort((a, b) => b.created_at - a.created_at || (a.id < b.id ? -1 : 1));
  const wanted = new Set<string>();
  for (const filter of filters) {
    const matching = newestFirst.filter((event) => {
      if (filter.authors && !filter.authors.includes(event.pubkey)) return false;
      if (filter.kinds && !filter.kinds.includes(event.kind)) return false;
      if (event.created_at < (filter.since ?? 0)) return false;
      if (event.created_at > (filter.until ?? Number.POSITIVE_INFINITY)) return false;
      return Object.entries(filter)
        .filter(([name]) => name.startsWith("#"))
        .every(([name, list]) =>
          event.tags.some(([tag, value]) => tag === name.slice(1) && (list as string[]).includes(value ?? "")),
        );
    });
    for (const event of matching.slice(0, filter.limit)) wanted.add(event.id);
  }
  return newestFirst.map(({ id }) => id).filter((id) => wanted.has(id));
}

/** What a store keeps of these: the newest at an address, the lower id within a second. */
function kept(events: readonly VerifiedEvent[]): VerifiedEvent[] {
  const byAddress = new Map<string, VerifiedEvent>();
  for (const event of events) {
    const d = event.tags.find(([name]) => name === "d")?.[1] ?? "";
    const address =
      event.kind === 0 ? `0:${event.pubkey}` : event.kind === 30_617 ? `30617:${event.pubkey}:${d}` : event.id;
    const other = byAddress.get(address);
    const isNewer =
      !other || event.created_at > other.created_at || (event.created_at === other.created_at && event.id < other.id);
    if (isNewer) byAddress.set(address, event);
  }
  return [...byAddress.values()];
}

async function answerOf(store: Store, texts: readonly FilterText[]): Promise<string[]> {
  const filters = texts.map((text) => {
    const parsed = parseFilter(JSON.parse(JSON.stringify(text)));
    assert.ok(parsed.ok, parsed.ok ? "" : parsed.message);
    return parsed.filter;
  });
  const ids: string[] = [];
  for await (const page of store.query(filters)) for (const { id } of page) ids.push(id);
  return ids;
}

describe("fuzz: filters", () => {
  for (const backend of ["memory", "LMDB"] as const) {
    test(`the ${backend} store answers any filters like a walk over all events`, async () => {
      const root = mkdtempSync(join(tmpdir(), "fuzz-filters-"));
      let worlds = 0;
      const clock = new ManualClock();
      const open = async () =>
        backend === "memory"
          ? createMemoryStore({ clock })
          : openLmdbStore(join(root, String(worlds++)), { clock, indexAtRows: 10 });
      try {
        await fc.assert(
          fc.asyncProperty(
            fc.array(draft, { maxLength: 30 }),
            fc.array(fc.array(filterText, { minLength: 1, maxLength: 3 }), { minLength: 10, maxLength: 10 }),
            async (drafts, questions) => {
              const store = await open();
              const events = drafts.map(eventOf);
              for (const event of events) await store.transact((tx) => tx.put(event));
              for (const filters of questions) {
                assert.deepEqual(await answerOf(store, filters), naive(kept(events), filters), JSON.stringify(filters));
              }
              await store.close();
            },
          ),
          parameters(backend === "memory" ? 100 : 15),
        );
      } finally {
        rmSync(root, { recursive: true, force: true });
      }
    });
  }

  test("any JSON is a filter or is refused with a reason", () => {
    const odd = fc.dictionary(
      fc.constantFrom("ids", "authors", "kinds", "since", "until", "limit", "search", "#e", "#", "##", "__proto__"),
      oddValue,
    );
    fc.assert(
      fc.property(fc.oneof(odd, oddValue), (value) => {
        const parsed = parseFilter(value);
        if (!parsed.ok) assert.ok(parsed.message.length > 0);
      }),
      parameters(1_500),
    );
  });
});

const item = fc.record({
  time: fc.oneof(fc.nat(50), fc.constantFrom(0, 2 ** 31, Number.MAX_SAFE_INTEGER - 1)),
  id: hex(64),
});
type Item = { readonly time: number; readonly id: string };

function timedIds(items: readonly Item[]): TimedIds {
  const unique = [...new Map(items.map((one) => [one.id, one])).values()];
  const sorted = unique.sort((a, b) => a.time - b.time || (a.id < b.id ? -1 : 1));
  return {
    length: sorted.length,
    times: Float64Array.from(sorted, ({ time: at }) => at),
    ids: Buffer.from(sorted.map(({ id }) => id).join(""), "hex"),
  };
}

describe("fuzz: negentropy", () => {
  test("both sides learn exactly the difference, whatever the sets and the frames", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(item, { maxLength: 300, selector: ({ id }) => id }),
        fc.array(fc.constantFrom("both", "here", "there"), { minLength: 300, maxLength: 300 }),
        fc.constantFrom(4096, 5000, 500_000),
        (items, places, frameBytes) => {
          const here = items.filter((_, index) => places[index] !== "there");
          const there = items.filter((_, index) => places[index] !== "here");
          const client = new NegentropyClient(new NegentropyRecords(timedIds(here)), { frameBytes });
          const server = new NegentropyServer(new NegentropyRecords(timedIds(there)), { frameBytes });
          const have: string[] = [];
          const need: string[] = [];
          let rounds = 0;
          for (let message: Uint8Array | undefined = client.initiate(); message; rounds++) {
            assert.ok(rounds < 100, "it ends");
            const answer = server.reconcile(message);
            assert.ok(answer.ok && answer.message.length <= frameBytes);
            const step = client.reconcile(answer.message);
            assert.ok(step.ok);
            have.push(...step.have);
            need.push(...step.need);
            message = step.message;
          }
          const only = (place: string) =>
            items
              .filter((_, index) => places[index] === place)
              .map(({ id }) => id)
              .sort();
          assert.deepEqual(have.sort(), only("here"));
          assert.deepEqual(need.sort(), only("there"));
        },
      ),
      parameters(60),
    );
  });

  test("random and damaged messages are answered or refused on both sides, within the frame", () => {
    const items = Array.from({ length: 60 }, (_, index) => ({
      time: index % 9,
      id: index.toString(16).padStart(64, "5"),
    }));
    const records = new NegentropyRecords(timedIds(items));
    const opening = Buffer.from(new NegentropyClient(new NegentropyRecords(timedIds(items.slice(9)))).initiate());
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 120 }),
      fc.uint8Array({ maxLength: 120 }).map((tail) => Uint8Array.from([0x61, ...tail])),
      fc.tuple(fc.nat(opening.length - 1), fc.nat(255), fc.nat(opening.length)).map(([at, value, end]) => {
        const copy = Buffer.from(opening);
        copy[at] = value;
        return Uint8Array.from(copy.subarray(0, end));
      }),
    );
    fc.assert(
      fc.property(fc.array(bytes, { minLength: 1, maxLength: 4 }), (messages) => {
        const server = new NegentropyServer(records, { frameBytes: 4096 });
        const client = new NegentropyClient(records, { frameBytes: 4096 });
        client.initiate();
        for (const message of messages) {
          const answer = server.reconcile(message);
          assert.ok(answer.ok ? answer.message.length <= 4096 : answer.error.length > 0);
          const step = client.reconcile(message);
          assert.ok(step.ok ? (step.message?.length ?? 0) <= 4096 : step.error.length > 0);
        }
      }),
      parameters(1_500),
    );
  });
});
