import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { relaysOf } from "./wanted.js";

const npub = `npub1${"q".repeat(58)}`;

describe("relays of an announcement", () => {
  for (const [name, relays, clone, expected] of [
    [
      "in order, each once, in normal form",
      ["wss://B.example/", "wss://a.example:443", "wss://b.example"],
      [],
      ["wss://b.example", "wss://a.example"],
    ],
    ["wss when listed both ways", ["ws://a.example", "wss://a.example/"], [], ["wss://a.example"]],
    ["ws when listed only so", ["ws://a.example:80/x/"], [], ["ws://a.example/x"]],
    [
      "then the services of clone URLs of GRASP shape",
      ["wss://a.example"],
      [`https://b.example/base/${npub}/tool.git`],
      ["wss://a.example", "wss://b.example/base"],
    ],
    ["not of other clone URLs", [], ["https://github.com/ann/tool.git", `ssh://b.example/${npub}/tool.git`], []],
    [
      "nothing that is no relay URL",
      ["https://a.example", "wss://user:pw@a.example", "wss://", "nonsense", "wss://a.example\u0000"],
      [],
      [],
    ],
    [
      "not ourselves, however we are spelled",
      ["wss://us.example", "ws://US.example:80/"],
      [`https://us.example/${npub}/tool.git`],
      [],
    ],
  ] as const) {
    it(name, () => {
      const found = relaysOf({ relays, clone }, ["us.example"], 20);
      assert.deepEqual(
        found.map((relay) => relay.url),
        expected,
      );
    });
  }

  it("at most twenty, even of ten thousand", () => {
    const relays = Array.from({ length: 10_000 }, (_, n) => `wss://r${n}.example`);
    assert.equal(relaysOf({ relays, clone: [] }, [], 20).length, 20);
  });
});
