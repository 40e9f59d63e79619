// Fuzz: well-signed events with any tags of the protocol, sent to the started server with all its rules. Each gets an OK
// with a NIP-01 prefix or none; none is an internal error, and none ends the server.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { keyOf, sign } from "../harness/relay-events.js";
import { mebibyte, nowSeconds, RelayWorld } from "../threats/relay-world.js";
import { parameters, spiced } from "./runs.js";

const kinds = [
  30617, 30618, 1617, 1618, 1619, 1621, 1111, 1630, 1632, 5, 62, 10317, 0, 3, 10002, 1, 7, 20001, 30023, 1985, 27235,
  22242,
];
const tagNames = [
  "d",
  "a",
  "A",
  "e",
  "E",
  "q",
  "p",
  "k",
  "c",
  "clone",
  "relays",
  "relay",
  "maintainers",
  "web",
  "r",
  "t",
  "HEAD",
  "-",
  "expiration",
  "name",
  "description",
  "subject",
  "branch-name",
  "merge-base",
  "refs/heads/main",
  "refs/tags/v1",
  "refs/heads/x",
  "",
  "__proto__",
];

describe("fuzz: published events", { timeout: 600_000 }, () => {
  test("any signed event is answered by a rule, never by a fault", async (t) => {
    const world = await RelayWorld.start(t, { NGIT_PURGATORY_MAX_ANNOUNCEMENTS_PER_KEY: "100000" });
    const keys = [keyOf("one"), keyOf("two"), keyOf("three")];
    const known = world.issue(keys[0] ?? keyOf("one"), "known").event;
    await world.taken(known);
    const heldBefore = await world.heldBytes();
    const hosted = world.owner.pubkey;
    const values = spiced(
      [
        ...[
          "target",
          "x",
          "",
          ".",
          "..",
          "/",
          ".git",
          "%2f",
          "\0",
          "\n",
          ":",
          "é",
          "y".repeat(300),
          "ref: refs/heads/main",
          "ref: ",
          "refs/heads/main",
        ],
        ...[
          world.coordinate,
          "30617:",
          `30617:${hosted}`,
          `30618:${hosted}:target`,
          "30617:zz:target",
          hosted,
          known.id,
          known.pubkey,
        ],
        ...[
          `${world.server.origin}/${world.owner.npub}/target.git`,
          `${world.server.origin}/`,
          world.url,
          "wss://relay.example.com",
          "http://[::1]/",
          "file:///etc/passwd",
          "ext::sh",
          "https://",
        ],
        ...[
          "0".repeat(40),
          "a".repeat(40),
          "b".repeat(64),
          "A".repeat(40),
          "ALL_RELAYS",
          "1",
          "-1",
          "1e9",
          "99999999999",
          "\ufffd",
          "--upload-pack=x",
        ],
      ],
      3,
    ).map((text) => text.toWellFormed());
    const tag = fc
      .tuple(fc.constantFrom(...tagNames), fc.array(values, { maxLength: 3 }))
      .map(([name, rest]) => [name, ...rest]);
    /** Often of the right shape, so that the rules behind the first check are reached. */
    const shaped = fc.constantFrom<string[][]>(
      [["a", world.coordinate]],
      [["d", "target"]],
      [
        ["d", "other"],
        ["clone", `${world.server.origin}/x/other.git`],
        ["relays", world.url],
      ],
      [["e", known.id]],
      [
        ["a", world.coordinate],
        ["c", "a".repeat(40)],
      ],
      [
        ["d", "target"],
        ["refs/heads/main", "a".repeat(40)],
        ["HEAD", "ref: refs/heads/main"],
      ],
      [["relay", "ALL_RELAYS"]],
      [],
    );
    const wish = fc.record({
      key: fc.constantFrom(...keys),
      kind: fc.constantFrom(...kinds),
      at: fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 0, max: 5_000 }) }, fc.constantFrom(-600, 1_700_000_000)),
      start: shaped,
      more: fc.array(tag, { maxLength: 5 }),
      content: fc.oneof(fc.constant(""), fc.string({ unit: "grapheme" }), fc.constant("{}"), fc.constant('{"name":5}')),
    });
    const answers = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(fc.array(wish, { minLength: 10, maxLength: 10 }), async (wishes) => {
        await Promise.all(
          wishes.map(async ({ key, kind, at, start, more, content }) => {
            const { raw: _raw, ...event } = sign(key, {
              kind,
              created_at: Math.max(0, nowSeconds() - at),
              tags: [...start, ...more],
              content,
            });
            const [accepted, text] = await world.publish(event);
            const prefix = /^([a-z-]+): /.exec(text)?.[1] ?? "";
            answers.set(`${accepted} ${prefix}`, (answers.get(`${accepted} ${prefix}`) ?? 0) + 1);
            assert.notEqual(prefix, "error", text);
            assert.ok(accepted || prefix !== "", text);
            assert.ok(!/[\0-\x1f\x7f]/.test(text), JSON.stringify(text));
          }),
        );
        assert.equal(world.server.child.exitCode, null, world.server.log().slice(-2_000));
      }),
      parameters(40),
    );
    t.diagnostic([...answers].map(([answer, count]) => `${answer}: ${count}`).join(", "));
    await world.isUnharmed(heldBefore, 64 * mebibyte);
    assert.ok([...answers.keys()].some((answer) => answer.startsWith("true")));
  });
});
