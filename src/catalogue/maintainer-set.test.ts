import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { keyOf, maintainers, makeEvent, startSeconds } from "../admission/testing/world.js";
import { kinds, type NostrEvent, type Pubkey, type Tag } from "../nostr/event.js";
import { type MaintainerSet, maxMaintainerDepth, maxMaintainers, rolesOf, standingText } from "./maintainer-set.js";
import { maintainerSet } from "./maintainers.js";

const k = keyOf;
const announce = (author: string, tags: readonly Tag[], at = startSeconds, identifier = "x"): NostrEvent =>
  makeEvent(k(author), kinds.announcement, [["d", identifier], ...tags], at);

function walked(owner: string, events: readonly NostrEvent[], mutual = false): Promise<MaintainerSet> {
  const view = {
    mutual: async () => mutual,
    announcementsOf: async (author: Pubkey, identifier: string) =>
      events.filter(
        (event) => event.pubkey === author && event.tags.some((tag) => tag[0] === "d" && tag[1] === identifier),
      ),
  };
  return maintainerSet(view, { owner: k(owner), identifier: "x" });
}

const setOf = async (owner: string, events: readonly NostrEvent[], mutual = false): Promise<string[]> => [
  ...(await walked(owner, events, mutual)).members,
];

const chain = (length: number): NostrEvent[] =>
  Array.from({ length }, (_, index) => announce(`k${index}`, [maintainers(`k${index + 1}`)]));

/** `M:O`, `m:B`, `o:B`, `m-:B` (ended), or a tag as it is. */
const said = (text: string): Tag => {
  const [role = "", name = ""] = text.split(":");
  return role.endsWith("-") ? [role.slice(0, -1), k(name), "100", "200"] : [role, k(name)];
};
const by = (author: string, ...roles: (string | Tag)[]): NostrEvent =>
  announce(
    author,
    roles.map((role) => (typeof role === "string" ? said(role) : role)),
  );

/** The cases of the specification: O owner, L lead; no announcement where none is given. */
const cases: { name: string; events: NostrEvent[]; set: string; mutual?: string }[] = [
  { name: "1", events: [by("O", maintainers("B")), by("B", maintainers("C"))], set: "O B C", mutual: "O" },
  { name: "2", events: [by("O", "M:O", "m:B", maintainers("B"))], set: "O" },
  { name: "3, with roles", events: [by("O", "M:O", "m:B", maintainers("B")), by("B", "M:O", "m:B")], set: "O B" },
  { name: "3, legacy", events: [by("O", "M:O", "m:B", maintainers("B")), by("B", maintainers("O"))], set: "O B" },
  { name: "4", events: [by("O", "M:O", "m:B", maintainers("B")), by("B", "M:O", "m-:B")], set: "O" },
  { name: "5", events: [by("O", "M:L", "m:O"), by("L", "M:L", "m:O")], set: "L O" },
  { name: "6", events: [by("O", "M:L", "m-:O"), by("L", "M:L")], set: "L" },
  { name: "7, nothing of the lead", events: [by("O", "M:L")], set: "O" },
  { name: "7, in a circle", events: [by("O", "M:L"), by("L", "M:O")], set: "O" },
  { name: "8", events: [by("O", "M:O", "M:B", "m:C"), by("C", "M:O", "m:C")], set: "O" },
  { name: "9", events: [by("O", "M-:O", "M:B", "m:O"), by("B", "M:B", "m:O")], set: "B O" },
  { name: "10", events: [by("O", "M:O", "m:B", "m:C"), by("B", "m:B", "m:C"), by("C", "m:C", "m:B")], set: "O" },
  {
    name: "11, deferred at an end",
    events: [by("O", "m:O", ["m", k("B"), "1", "defer"], maintainers("B")), by("B", maintainers("O"))],
    set: "O",
  },
  {
    name: "11, deferred at a start",
    events: [by("O", "m:O", ["m", k("B"), "defer"], maintainers("B")), by("B", maintainers("O"))],
    set: "O",
  },
  { name: "12", events: [by("O", maintainers("B"), ["m", "text/plain"])], set: "O B", mutual: "O" },
  { name: "13", events: [by("O", maintainers("B", "C")), by("B", "M:O", "m:B", "m:D")], set: "O B C", mutual: "O B" },
  { name: "14", events: [by("O", "M:O", "o:B"), by("B", "o:B", "M:O")], set: "O" },
  { name: "15", events: [by("O", "m:O", "m:B"), by("B", "m:O", "m:B")], set: "O B" },
];
for (const { name, events, set, mutual } of cases) {
  test(`maintainer set: case ${name}`, async () => {
    assert.deepEqual(await setOf("O", events), set.split(" ").map(k));
    assert.deepEqual(await setOf("O", events, true), (mutual ?? set).split(" ").map(k));
  });
}

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
  { name: "a co-maintainer role invites", events: [announce("a", [["m", k("b")]])], set: ["a"] },
  {
    name: "a co-maintainer role that is answered",
    events: [announce("a", [["m", k("b")]]), announce("b", [maintainers("a")])],
    set: ["a", "b"],
  },
  { name: "a lead without an announcement", events: [announce("a", [["M", k("b")]])], set: ["a"] },
  {
    name: "a lead decides, and the owner only if the lead names the owner",
    events: [announce("a", [["M", k("b")]]), announce("b", [["M", k("b")]])],
    set: ["b"],
  },
  { name: "a moderator decides nothing", events: [announce("a", [["o", k("b")]])], set: ["a"] },
  {
    name: "roles replace the maintainers tag",
    events: [
      announce("a", [maintainers("c"), ["m", k("b")]]),
      announce("b", [["m", k("a")]]),
      announce("c", [["m", k("a")]]),
    ],
    set: ["a", "b"],
  },
  {
    name: "a moderator role alone replaces it too",
    events: [announce("a", [maintainers("c"), ["o", k("b")]])],
    set: ["a"],
  },
  {
    name: "one boundary: began, active",
    events: [announce("a", [["m", k("b"), "100"]]), announce("b", [maintainers("a")])],
    set: ["a", "b"],
  },
  {
    name: "two boundaries: ended",
    events: [announce("a", [["m", k("b"), "100", "200"]]), announce("b", [maintainers("a")])],
    set: ["a"],
  },
  {
    name: "three boundaries: began again",
    events: [announce("a", [["m", k("b"), "100", "200", "300"]]), announce("b", [maintainers("a")])],
    set: ["a", "b"],
  },
  {
    name: "an open end is an end",
    events: [announce("a", [["m", k("b"), "100", "open"]]), announce("b", [maintainers("a")])],
    set: ["a"],
  },
  {
    name: "an ended role still replaces the maintainers tag",
    events: [announce("a", [maintainers("c"), ["m", k("b"), "1", "2"]])],
    set: ["a"],
  },
  {
    name: "a tag without a key under a role's name is no role",
    events: [announce("a", [maintainers("c"), ["m", "text/plain"]])],
    set: ["a", "c"],
  },
  {
    name: "a role with an ill-formed boundary grants nothing, and replaces the maintainers tag",
    events: [announce("a", [maintainers("c"), ["m", k("b"), "soon"]]), announce("b", [maintainers("a")])],
    set: ["a"],
  },
  { name: "a role without a key is malformed", events: [announce("a", [maintainers("c"), ["M"]])], set: ["a", "c"] },
  {
    name: "a well-formed role beside a malformed one",
    events: [announce("a", [maintainers("c"), ["m", "x"], ["m", k("b")]]), announce("b", [["m", k("a")]])],
    set: ["a", "b"],
  },
  {
    name: "a key with two roles, one ended, is active",
    events: [
      announce("a", [
        ["m", k("b"), "1", "2"],
        ["m", k("b")],
      ]),
      announce("b", [maintainers("a")]),
    ],
    set: ["a", "b"],
  },
  {
    name: "an owner who left, without a lead: nobody decides",
    events: [
      announce("a", [
        ["m", k("a"), "1", "2"],
        ["m", k("b")],
      ]),
      announce("b", [maintainers("a")]),
    ],
    set: [],
  },
  {
    name: "a listed key that left is out, and so is whom it lists",
    events: [
      announce("a", [maintainers("b")]),
      announce("b", [
        ["m", k("b"), "1", "2"],
        ["m", k("c")],
      ]),
      announce("c", [maintainers("b", "a")]),
    ],
    set: ["a"],
  },
  {
    name: "an invitee who names another invitee joins when that one has joined",
    events: [
      announce("a", [
        ["M", k("a")],
        ["m", k("b")],
        ["m", k("c")],
      ]),
      announce("b", [["m", k("c")]]),
      announce("c", [["m", k("a")]]),
    ],
    set: ["a", "b", "c"],
  },
  {
    name: "a lead is found over several steps",
    events: [
      announce("a", [["M", k("b")]]),
      announce("b", [["M", k("c")]]),
      announce("c", [
        ["M", k("c")],
        ["m", k("a")],
      ]),
    ],
    set: ["c"],
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

test("an announcement's own author is not among those it names", () => {
  assert.deepEqual(rolesOf(announce("a", [maintainers("a", "b", "b")])).deciders, [k("b")]);
});

test("each key's standing says why it decides or not", async () => {
  const events = [
    by("O", "M:O", "m:B", "m:C", "m:D", "m:E", "o:F", "m-:G"),
    by("B", "M:O", "m:B"),
    by("D", "m:D"),
    by("E", "M:O", "m-:E"),
  ];
  const { standings, named, start } = await walked("O", events);
  const told = Object.fromEntries(
    [..."OBCDEFG"].map((name) => {
      const standing = standings.get(k(name));
      assert.ok(standing, name);
      return [name, `${standing.decides} ${standing.as}`];
    }),
  );
  assert.deepEqual(told, {
    O: "true owner",
    B: "true confirmed",
    C: "false invited",
    D: "false unanswered",
    E: "false departed",
    F: "false moderator",
    G: "false ended",
  });
  assert.equal(start, "owner");
  assert.deepEqual([...named].sort(), [..."OBCDEF"].map(k).sort(), "whose announcements are kept here");
  const texts = [...standings.values()].map((standing) => standingText(standing, () => "somebody"));
  assert.equal(new Set(texts).size, texts.length, "each has words of its own");
});

test("threats 17: a walk reads a bounded number of announcements, however many keys are named", async () => {
  const names = (from: number): string[] => Array.from({ length: 100 }, (_, index) => `n${from + index}`);
  const first = Array.from({ length: 90 }, (_, index) => `s${index}`);
  const events = [
    announce("a", [["m", k("a")], ...first.map((name): Tag => ["m", k(name)])]),
    ...first.map((name, index) =>
      announce(name, [["m", k("a")], ...names(index * 100).map((one): Tag => ["m", k(one)])]),
    ),
  ];
  const { read, members } = await walked("a", events);
  assert.equal(members.size, 91);
  assert.ok(read.size <= 300, `${read.size} announcements read`);
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
          return event !== undefined && rolesOf(event).deciders.includes(member as Pubkey);
        });
        assert.ok(isListed);
      }
    }),
  );
});
