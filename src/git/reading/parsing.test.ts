import assert from "node:assert/strict";
import { test } from "node:test";
import type { Oid } from "../../nostr/nip34.js";
import { blamedLines, canBeBlamed } from "./blame.js";
import { diffBounds, diffOf } from "./diff.js";
import { commitOf, Folder, isBinary, personOf, tagOf } from "./objects.js";

const oid = "1".repeat(40) as Oid;
const treeLine = (mode: string, name: string | Buffer, id = "ab".repeat(20)): Buffer =>
  Buffer.concat([Buffer.from(`${mode} `), Buffer.from(name), Buffer.from([0]), Buffer.from(id, "hex")]);

test("a tree's entries have kinds, and names of any bytes", async () => {
  const odd = Buffer.from([0x80, 0x20, 0xff]);
  const tree = Buffer.concat([
    treeLine("100644", "a"),
    treeLine("100755", "b"),
    treeLine("120000", "c"),
    treeLine("160000", "d"),
    treeLine("40000", odd),
  ]);
  const entriesOf = async (content: Buffer, id: Oid) => (await Folder.of(content, id)).slice(0, 100);
  const entries = await entriesOf(tree, oid);
  assert.deepEqual(
    entries.map(({ kind }) => kind),
    ["module", "folder", "file", "program", "link"],
  );
  assert.deepEqual(entries[1]?.name, odd);
  assert.equal(entries[0]?.oid, "ab".repeat(20));
  // Damaged: what stands before the fault.
  for (let end = 0; end < tree.length; end++) assert.ok((await entriesOf(tree.subarray(0, end), oid)).length < 5);
  const [long] = await entriesOf(treeLine("100644", "x", "cd".repeat(32)), "1".repeat(64) as Oid);
  assert.equal(long?.oid, "cd".repeat(32));
  // Folders first, from anywhere to anywhere.
  const folder = await Folder.of(tree, oid);
  for (let from = 0; from < 6; from++) {
    for (let to = from; to < 7; to++) assert.deepEqual(folder.slice(from, to), entries.slice(from, to));
  }
});

test("an entry is found by its name among any number of them, folders in their place", async () => {
  const names = ["a", "a-b", "a/", "a0", "b", "b.c", "b/", "z"];
  const sorted = names.filter((name) => name !== "a" && name !== "b");
  const tree = Buffer.concat(
    sorted.map((name) => treeLine(name.endsWith("/") ? "40000" : "100644", name.replace("/", ""))),
  );
  const folder = await Folder.of(tree, oid);
  for (const name of sorted) {
    const found = folder.find(Buffer.from(name.replace("/", "")));
    assert.deepEqual(
      [String(found?.name), found?.kind],
      [name.replace("/", ""), name.endsWith("/") ? "folder" : "file"],
    );
  }
  for (const name of ["", "A", "a-", "c", "zz", "a/"]) assert.equal(folder.find(Buffer.from(name)), undefined, name);
  const files = ["README.md", "Rx", "a", "readme", "readme-of-something-else.md"].map((name) =>
    treeLine("100644", name),
  );
  assert.deepEqual(
    (await Folder.of(Buffer.concat(files), oid)).readmes().map(({ name }) => String(name)),
    ["README.md", "Rx", "readme"],
  );
});

test("a commit is taken apart: people without mail addresses, subject and body, its own encoding, its signature", () => {
  const headers = [
    `tree ${"a".repeat(40)}`,
    `parent ${"b".repeat(40)}`,
    `parent ${"c".repeat(40)}`,
    "author Ada <ada@example.com> 1700000000 +0100",
    "committer  <> 1700000001 -0000",
    "gpgsig -----BEGIN SSH SIGNATURE-----",
    " author Mallory <m@example.com> 1 +0000",
    " -----END SSH SIGNATURE-----",
  ];
  const commit = commitOf(oid, Buffer.from(`${headers.join("\n")}\n\nA subject\nof two lines\n\nBody\n\nmore\n`));
  assert.deepEqual(commit?.parents, ["b".repeat(40), "c".repeat(40)]);
  assert.deepEqual(commit?.author, { name: "Ada", time: 1_700_000_000 });
  assert.deepEqual(commit?.committer, { name: "", time: 1_700_000_001 });
  assert.deepEqual([commit?.subject, commit?.body], ["A subject of two lines", "Body\n\nmore"]);
  assert.equal(commit?.signature, "SSH");
  const latin = Buffer.concat([
    Buffer.from(`tree ${"a".repeat(40)}\nencoding ISO-8859-1\n\n`),
    Buffer.from([0xe9, 0x74, 0xe9]),
  ]);
  assert.equal(commitOf(oid, latin)?.subject, "été");
  assert.equal(commitOf(oid, Buffer.from(`tree ${"a".repeat(40)}\nencoding nonsense\n\nx`))?.subject, "x");
  for (const bad of ["", "tree x\n\n", "\n\ntree"]) assert.equal(commitOf(oid, Buffer.from(bad)), undefined);
  assert.equal(tagOf(Buffer.from(`object ${oid}\ntype commit\ntag v\ntagger A <a> 5 +0\n\nsaid\n`))?.target, oid);
  assert.deepEqual(personOf("no mail"), { name: "no mail", time: Number.NaN });
});

test("text is told from other content as git does", () => {
  assert.deepEqual(
    [isBinary(Buffer.from("a\n")), isBinary(Buffer.from([0x61, 0])), isBinary(Buffer.alloc(0))],
    [false, true, false],
  );
});

const record = (status: string, ...paths: string[]): string =>
  `:100644 100644 ${"1".repeat(40)} ${"2".repeat(40)} ${status}\0${paths.join("\0")}\0`;

test("a diff's list and patch are put together by their order, and lines that look like heads are lines", async () => {
  const output = [
    record("M", "a"),
    record("R090", "old name", "new name"),
    record("M", "bin"),
    "\0",
    "diff --git a/a b/a\nindex 1..2 100644\n--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@ head\n same\n-diff --git a/x b/x\n+@@ -1 +1 @@\n+new\n\\ No newline at end of file\n",
    "diff --git a/old name b/new name\nsimilarity index 90%\nrename from old name\nrename to new name\n@@ -7 +7 @@\n-x\n+y\n",
    "diff --git a/bin b/bin\nindex 1..2 100644\nBinary files a/bin and b/bin differ\n",
  ].join("");
  const { files, isCut } = await diffOf(Buffer.from(output), false);
  assert.equal(isCut, false);
  const [first, second, third] = files;
  assert.deepEqual(
    first?.hunks[0]?.lines.map(({ type, old, new: fresh, text }) => [type, old, fresh, text]),
    [
      ["same", 1, 1, "same"],
      ["removed", 2, undefined, "diff --git a/x b/x"],
      ["added", undefined, 2, "@@ -1 +1 @@"],
      ["added", undefined, 3, "new"],
      ["note", undefined, undefined, "No newline at the end of the file"],
    ],
  );
  assert.deepEqual([first?.added, first?.removed, first?.hunks[0]?.heading], [2, 1, "head"]);
  assert.deepEqual([second?.status, String(second?.from), String(second?.to)], ["renamed", "old name", "new name"]);
  assert.equal(third?.isBinary, true);
});

test("a diff is shown up to its bounds and says that there is more", async () => {
  const many = Array.from({ length: diffBounds.files + 50 }, (_, index) => record("A", `f${index}`)).join("");
  const cut = await diffOf(Buffer.from(`${many}\0`), false);
  assert.deepEqual([cut.files.length, cut.isCut], [diffBounds.files, true]);
  const long = `${record("A", "f")}\0diff --git a/f b/f\n@@ -0,0 +1,30000 @@\n${"+x\n".repeat(30_000)}`;
  const one = await diffOf(Buffer.from(long), false);
  assert.deepEqual([one.files[0]?.added, one.files[0]?.isCut, one.isCut], [diffBounds.lines, true, true]);
  // Cut anywhere, it is still read.
  const whole = Buffer.from(`${record("M", "a")}${record("M", "b")}\0diff --git a/a b/a\n@@ -1 +1 @@\n-x\n+y\n`);
  for (let end = 0; end < whole.length; end++) assert.equal((await diffOf(whole.subarray(0, end), true)).isCut, true);
});

test("a diff that ends between the two parts of a file that became a link says that the file is cut", async () => {
  const became = (path: string): string => `:100644 120000 ${"1".repeat(40)} ${"2".repeat(40)} T\0${path}\0`;
  const removed = "diff --git a/a b/a\ndeleted file mode 100644\n@@ -1 +0,0 @@\n-x\n";
  const created = "diff --git a/a b/a\nnew file mode 120000\n@@ -0,0 +1 @@\n+y\n";
  const cut = await diffOf(Buffer.from(`${became("a")}${record("M", "b")}\0${removed}`), true);
  assert.deepEqual(
    cut.files.map(({ added, removed: gone, isCut }) => [added, gone, isCut]),
    [
      [0, 1, true],
      [0, 0, true],
    ],
  );
  // As many as a page shows, all of them in two parts.
  const paths = Array.from({ length: diffBounds.files }, (_, index) => became(`f${index}`)).join("");
  const many = await diffOf(Buffer.from(`${paths}\0${(removed + created).repeat(diffBounds.files)}`), false);
  assert.deepEqual(
    [many.isCut, many.files.every(({ added, removed: gone }) => added === 1 && gone === 1)],
    [false, true],
  );
});

test("blame is read as git tells it: facts of a commit once, parts in any order", async () => {
  const [one, other] = ["1".repeat(40), "2".repeat(40)];
  const text = `${other} 3 3 1\nauthor Bo\nauthor-mail <b@x>\nauthor-time 7\nsummary Second\nprevious ${one} a\nfilename a\n${one} 1 1 2\nauthor Ada\nauthor-time 5\nsummary First filename\nboundary\nfilename a b\n${other} 4 4 2\nfilename a\n${one} 9`;
  const parts = await blamedLines(Buffer.from(text));
  assert.deepEqual(
    parts.map(({ from, count, commit }) => [from, count, commit.author, commit.time, commit.subject]),
    [
      [1, 2, "Ada", 5, "First filename"],
      [3, 1, "Bo", 7, "Second"],
      [4, 2, "Bo", 7, "Second"],
    ],
  );
  assert.equal(parts[1]?.commit, parts[2]?.commit);
  assert.deepEqual([canBeBlamed(Buffer.from("é")), canBeBlamed(Buffer.from([0xff]))], [true, false]);
});
