import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  announcement,
  keyOf,
  maintainers,
  makeEvent,
  nameOf,
  startSeconds,
  World,
} from "../admission/testing/world.js";
import { kinds, type NostrEvent, type Pubkey, type Tag } from "../nostr/event.js";
import {
  listedMaintainers,
  maintainerSet,
  maxMaintainerDepth,
  maxMaintainers,
  releasedSiblings,
} from "./maintainers.js";

const k = keyOf;
const announce = (author: string, tags: readonly Tag[], at = startSeconds, identifier = "x"): NostrEvent =>
  makeEvent(k(author), kinds.announcement, [["d", identifier], ...tags], at);

function lookUp(events: readonly NostrEvent[]) {
  return async (author: Pubkey, identifier: string): Promise<readonly NostrEvent[]> =>
    events.filter(
      (event) => event.pubkey === author && event.tags.some((tag) => tag[0] === "d" && tag[1] === identifier),
    );
}

const setOf = async (owner: string, events: readonly NostrEvent[]): Promise<string[]> => [
  ...(await maintainerSet(k(owner), "x", lookUp(events))),
];

const chain = (length: number): NostrEvent[] =>
  Array.from({ length }, (_, index) => announce(`k${index}`, [maintainers(`k${index + 1}`)]));

const rows: { name: string; events: NostrEvent[]; set: string[] }[] = [
  {
    name: "without an announcement of the owner's nobody decides",
    events: [announce("b", [maintainers("a")])],
    set: [],
  },
  { name: "the owner alone", events: [announce("a", [])], set: ["a"] },
  {
    name: "listed keys count without an announcement of theirs",
    events: [announce("a", [maintainers("b", "c")])],
    set: ["a", "b", "c"],
  },
  {
    name: "several maintainers tags add up",
    events: [announce("a", [maintainers("b"), maintainers("c")])],
    set: ["a", "b", "c"],
  },
  {
    name: "lists of listed keys count",
    events: [announce("a", [maintainers("b")]), announce("b", [maintainers("c")])],
    set: ["a", "b", "c"],
  },
  {
    name: "cycles end",
    events: [announce("a", [maintainers("b")]), announce("b", [maintainers("a")])],
    set: ["a", "b"],
  },
  {
    name: "whoever lists the owner is not in",
    events: [announce("a", []), announce("b", [maintainers("a")])],
    set: ["a"],
  },
  {
    name: "another identifier's list does not count",
    events: [announce("a", [maintainers("b")]), announce("b", [maintainers("c")], startSeconds, "y")],
    set: ["a", "b"],
  },
  {
    name: "the newest announcement counts",
    events: [announce("a", [maintainers("b")], 10), announce("a", [maintainers("c")], 11)],
    set: ["a", "c"],
  },
  {
    name: "the newest counts in any order",
    events: [announce("a", [maintainers("c")], 11), announce("a", [maintainers("b")], 10)],
    set: ["a", "c"],
  },
  {
    name: "a maintainers value that is no key is nothing",
    events: [announce("a", [["maintainers", "bob", "", k("b").toUpperCase()]])],
    set: ["a"],
  },
  { name: "a co-maintainer role", events: [announce("a", [["m", k("b")]])], set: ["a", "b"] },
  { name: "a lead role", events: [announce("a", [["M", k("b")]])], set: ["a", "b"] },
  { name: "a moderator decides nothing", events: [announce("a", [["o", k("b")]])], set: ["a"] },
  {
    name: "roles replace the maintainers tag",
    events: [announce("a", [maintainers("c"), ["m", k("b")]])],
    set: ["a", "b"],
  },
  {
    name: "a moderator role alone replaces it too",
    events: [announce("a", [maintainers("c"), ["o", k("b")]])],
    set: ["a"],
  },
  { name: "one boundary: began, active", events: [announce("a", [["m", k("b"), "100"]])], set: ["a", "b"] },
  { name: "two boundaries: ended", events: [announce("a", [["m", k("b"), "100", "200"]])], set: ["a"] },
  {
    name: "three boundaries: began again",
    events: [announce("a", [["m", k("b"), "100", "200", "300"]])],
    set: ["a", "b"],
  },
  {
    name: "an ended role still replaces the maintainers tag",
    events: [announce("a", [maintainers("c"), ["m", k("b"), "1", "2"]])],
    set: ["a"],
  },
  {
    name: "a malformed role grants and disables nothing",
    events: [announce("a", [maintainers("c"), ["m", "text/plain"]])],
    set: ["a", "c"],
  },
  {
    name: "a role with an ill-formed boundary is malformed",
    events: [announce("a", [maintainers("c"), ["m", k("b"), "soon"]])],
    set: ["a", "c"],
  },
  { name: "a role without a key is malformed", events: [announce("a", [maintainers("c"), ["M"]])], set: ["a", "c"] },
  {
    name: "a well-formed role beside a malformed one",
    events: [announce("a", [maintainers("c"), ["m", "x"], ["m", k("b")]])],
    set: ["a", "b"],
  },
  {
    name: "a key with two roles, one ended, is active",
    events: [
      announce("a", [
        ["m", k("b"), "1", "2"],
        ["M", k("b")],
      ]),
    ],
    set: ["a", "b"],
  },
  {
    name: "ten steps count, eleven do not",
    events: chain(15),
    set: Array.from({ length: maxMaintainerDepth + 1 }, (_, i) => `k${i}`),
  },
];
for (const { name, events, set } of rows) {
  test(`maintainer set: ${name}`, async () => {
    const owner = name.startsWith("ten steps") ? "k0" : "a";
    assert.deepEqual((await setOf(owner, events)).sort(), set.map(k).sort());
  });
}

test("maintainer set: within a second the announcement with the lower id counts", async () => {
  const one = announce("a", [maintainers("b")]);
  const other = announce("a", [maintainers("c")]);
  const winner = one.id < other.id ? "b" : "c";
  assert.deepEqual((await setOf("a", [one, other])).sort(), [k("a"), k(winner)].sort());
});

test("maintainer set: never more than a hundred keys, however many are listed", async () => {
  const many = Array.from({ length: 500 }, (_, index) => `m${index}`);
  const set = await setOf("a", [announce("a", [maintainers(...many)])]);
  assert.equal(set.length, maxMaintainers);
  assert.equal(set[0], k("a"));
});

test("an announcement's own author is not among those it lists", () => {
  assert.deepEqual(listedMaintainers(announce("a", [maintainers("a", "b", "b")])), [k("b")]);
});

const world = fc.array(
  fc.record({
    author: fc.integer({ min: 0, max: 7 }),
    lists: fc.uniqueArray(fc.integer({ min: 0, max: 9 }), { maxLength: 4 }),
  }),
  { maxLength: 12 },
);

test("threats 12: a stranger's announcement that lists the owner never changes the owner's set", async () => {
  await fc.assert(
    fc.asyncProperty(world, fc.uniqueArray(fc.integer({ min: 0, max: 9 })), async (announced, strangerLists) => {
      const events = announced.map(({ author, lists }, index) =>
        announce(`p${author}`, [maintainers(...lists.map((id) => `p${id}`))], startSeconds + index),
      );
      const before = await setOf("p0", events);
      const stranger = announce("stranger", [maintainers("p0", ...strangerLists.map((id) => `p${id}`))]);
      assert.deepEqual(await setOf("p0", [...events, stranger]), before);
    }),
  );
});

test("every member of a set is the owner or listed by the newest announcement of a member", async () => {
  await fc.assert(
    fc.asyncProperty(world, async (announced) => {
      const events = announced.map(({ author, lists }, index) =>
        announce(`p${author}`, [maintainers(...lists.map((id) => `p${id}`))], startSeconds + index),
      );
      const set = await setOf("p0", events);
      const newest = new Map(events.map((event) => [event.pubkey, event]));
      for (const member of set.slice(1)) {
        const isListed = set.some((other) => {
          const event = newest.get(other as Pubkey);
          return event !== undefined && listedMaintainers(event).includes(member as Pubkey);
        });
        assert.ok(isListed);
      }
    }),
  );
});

test("threats 12, 17: a repository may be filled only from repositories of its own set", async () => {
  const world = new World();
  await world.host("bob", "x");
  await world.host("eve", "x", [maintainers("alice")]);
  await world.send(announcement("alice", "x", [maintainers("bob")]));
  const siblings = await releasedSiblings(world.store, nameOf("alice", "x"));
  assert.deepEqual(
    siblings.map(({ owner }) => owner),
    [keyOf("bob")],
  );
  assert.deepEqual(await releasedSiblings(world.store, nameOf("bob", "x")), []);
});
