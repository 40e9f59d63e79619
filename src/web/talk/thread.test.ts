import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventId, Pubkey, Tag } from "../../nostr/event.js";
import type { EventBeginning } from "../../store/event-beginning.js";
import { titleMatcher } from "./list-page.js";
import { diffOfPatch } from "./patch-diff.js";
import { continuedBy, labelsGiven, threadRootOf } from "./thread.js";
import { type Item, inOrder } from "./timeline.js";

const id = (digit: string): EventId => digit.repeat(64) as EventId;
const event = (kind: number, tags: readonly Tag[], content = ""): EventBeginning => ({
  id: id("1"),
  pubkey: id("a") as unknown as Pubkey,
  kind,
  created_at: 5,
  tags,
  content,
  size: 100,
});

test("a thread's title is its subject, a patch's is that of its mail", () => {
  for (const [kind, tags, content, title] of [
    [1621, [["subject", "Too\nbright "]], "text", "Too bright"],
    [1621, [], "\n\n# First line\nsecond", "First line"],
    [1621, [], "", "(no title)"],
    [1617, [["subject", "[PATCH 1/2] not this"]], "Subject: [PATCH 1/2] Mend\n the lamp\n\n---\n", "Mend the lamp"],
    [1618, [["subject", "A change"]], "", "A change"],
  ] as const) {
    assert.equal(threadRootOf(event(kind, tags, content)).title, title);
  }
});

test("labels are an issue's hashtags and what others label it with; words of a series are none", () => {
  const root = threadRootOf(
    event(1617, [
      ["t", "root"],
      ["t", " bug "],
      ["t", "bug"],
      ["t", ""],
      ["t", "cover-letter"],
    ]),
  );
  assert.deepEqual(root.labels, ["bug"]);
  const given = [
    ["l", "urgent", "#t"],
    ["l", "other", "com.example"],
    ["l", "plain"],
    ["L", "#t"],
  ];
  assert.deepEqual(labelsGiven({ tags: given }), ["urgent", "plain"]);
});

test("a patch that answers another and an update belong to what they answer", () => {
  const reply = ["e", id("2"), "", "reply"];
  const first = ["e", id("3"), "", "root"];
  for (const [kind, tags, from] of [
    [1617, [["t", "root"], first], undefined],
    [1617, [first, reply], id("2")],
    [1617, [first], id("3")],
    [1617, [["e", id("4")]], id("4")],
    [1617, [["e", id("4"), "", "mention"]], undefined],
    [1617, [["e", "no id"]], undefined],
    [1617, [], undefined],
    [1617, [["t", "root"], ["t", "root-revision"], first], id("3")],
    [1619, [["E", id("5")]], id("5")],
    [1621, [reply], undefined],
  ] as const) {
    assert.equal(continuedBy({ kind, tags }), from, JSON.stringify([kind, tags]));
  }
});

test("comments stand in order of time, answers below what they answer, whatever is missing", () => {
  const said = (name: string, at: number, parent?: string): Item => ({
    type: "comment",
    id: id(name),
    author: id("a") as unknown as Pubkey,
    created_at: at,
    parent: parent === undefined ? undefined : id(parent),
    depth: 0,
  });
  const status: Item = { ...said("9", 4), type: "status", status: "closed" };
  const items = [
    said("4", 5, "2"),
    said("1", 1, "0"),
    said("3", 6),
    said("2", 2),
    status,
    said("5", 7, "4"),
    said("6", 3, "8"),
  ];
  assert.deepEqual(
    inOrder(items).map((item) => `${item.id[0]}${item.type === "comment" ? item.depth : "s"}`),
    ["10", "20", "41", "52", "60", "9s", "30"],
  );
  const deep = Array.from({ length: 5_000 }, (_, at) => ({
    ...said("0", at),
    id: String(at).padStart(64, "0") as EventId,
    parent: String(at - 1).padStart(64, "0") as EventId,
  }));
  assert.equal(inOrder(deep).length, 5_000);
});

test("a search in titles wants every word, or its beginning", () => {
  const titles = ["Wrong by an hour in Reykjavík", "fix: the lamp", "Lamps and lights"];
  const found = (words: string) => titles.filter(titleMatcher(words));
  assert.deepEqual(found("lamp"), ["fix: the lamp", "Lamps and lights"]);
  assert.deepEqual(found("reykjavík HOUR"), [titles[0]]);
  assert.deepEqual(found("lamp zebra"), []);
  assert.deepEqual(found(""), titles);
});

test("the changes of a patch are read from its text, whatever stands there", async () => {
  const text = [
    "diff --git a/src/a b.ts b/src/a b.ts",
    "index 1..2 100644",
    "--- a/src/a b.ts",
    "+++ b/src/a b.ts",
    "@@ -1,2 +1,2 @@ function",
    " same",
    "-old",
    "+new",
    "diff --git a/gone b/gone",
    "deleted file mode 100644",
    "diff --git a/x.png b/x.png",
    "new file mode 100644",
    "Binary files /dev/null and b/x.png differ",
    "diff --git a/one b/two",
    "rename from one",
    "rename to two",
    "diff --git nonsense",
    "",
  ].join("\n");
  const { files, isCut } = await diffOfPatch(text);
  assert.equal(isCut, false);
  assert.deepEqual(
    files.map(({ status, from, to, added, removed, isBinary }) => [
      status,
      String(from),
      String(to),
      added,
      removed,
      isBinary,
    ]),
    [
      ["changed", "src/a b.ts", "src/a b.ts", 1, 1, false],
      ["deleted", "gone", "gone", 0, 0, false],
      ["added", "x.png", "x.png", 0, 0, true],
      ["renamed", "one", "two", 0, 0, false],
      ["changed", "nonsense", "nonsense", 0, 0, false],
    ],
  );
  assert.deepEqual((await diffOfPatch("")).files, []);
  const long = await diffOfPatch("diff --git a/x b/x\n@@ -1 +1 @@\n".concat("+x\n".repeat(30_000)));
  assert.equal(long.isCut, true);
  const many = await diffOfPatch("diff --git a/x b/x\n".repeat(400));
  assert.deepEqual([many.files.length, many.isCut], [300, true]);
});
