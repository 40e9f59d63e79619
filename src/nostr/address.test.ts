import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { addressOf, addressText, parseAddress } from "./address.js";
import type { Pubkey } from "./ids.js";

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
