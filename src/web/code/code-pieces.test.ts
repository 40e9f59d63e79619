import assert from "node:assert/strict";
import { test } from "node:test";
import { type DiffLine, splitRows } from "../../git/reading/diff.js";
import { archivedOf } from "./archive.js";
import { changedPairs } from "./colours/painted.js";
import { foundFiles } from "./find-page.js";
import { graphColumn, graphOf } from "./graph.js";

const commit = (oid: string, ...parents: string[]) => ({ oid, parents });

test("a graph follows branches from where they meet to where they parted", () => {
  const merged = graphOf([commit("m", "a", "b"), commit("a", "base"), commit("b", "base"), commit("base")]);
  assert.deepEqual(merged, [
    { lane: 0, into: [], out: [0, 1], past: [] },
    { lane: 0, into: [0], out: [0], past: [1] },
    { lane: 1, into: [1], out: [1], past: [0] },
    { lane: 0, into: [0, 1], out: [], past: [] },
  ]);
  assert.equal(graphColumn([commit("a", "b"), commit("b", "c")]), undefined);
  assert.equal(graphColumn([commit("m", "a", "b")])?.lanes, 2);
});

test("a graph of any history is no wider than its lanes", () => {
  const wide = Array.from({ length: 50 }, (_, index) =>
    commit(`m${index}`, ...Array.from({ length: 30 }, (_, parent) => `p${index}-${parent}`)),
  );
  const column = graphColumn(wide);
  assert.equal(column?.lanes, 10);
  assert.equal(column?.rows.length, 50);
});

test("an archive's address is a ref and a format", () => {
  const of = (...segments: string[]) => {
    const found = archivedOf(segments.map((segment) => Buffer.from(segment)));
    return found && [found.ref.map(String).join("/"), found.format];
  };
  assert.deepEqual(of("main.tar.gz"), ["main", "tar.gz"]);
  assert.deepEqual(of("feature", "a.zip.zip"), ["feature/a.zip", "zip"]);
  for (const bad of ["main", ".zip", "main.tar", "main.rar", ""]) assert.equal(of(bad), undefined, bad);
});

test("files are found by all words, those with the last one in their own name first", async () => {
  const list = { paths: ["src/web/page.ts", "page/src.md", "Web/other.ts", "caf\xc3\xa9.txt"], isCut: false };
  assert.deepEqual(await foundFiles(list, "web PAGE"), ["src/web/page.ts"]);
  assert.deepEqual(await foundFiles(list, "src"), ["page/src.md", "src/web/page.ts"]);
  assert.deepEqual(await foundFiles(list, "é"), ["caf\xc3\xa9.txt"]);
  assert.equal((await foundFiles(list, " ")).length, 4);
});

const line = (type: DiffLine["type"], text: string): DiffLine => ({ type, text, old: undefined, new: undefined });

test("what was taken away stands beside what came in its place", () => {
  const lines = [
    line("same", "a"),
    line("removed", "b"),
    line("removed", "c"),
    line("added", "d"),
    line("note", ""),
    line("same", "e"),
    line("added", "f"),
    line("removed", "g"),
  ];
  const texts = (rows: readonly (readonly (DiffLine | undefined)[])[]) =>
    rows.map((row) => row.map((one) => one?.text));
  assert.deepEqual(texts(splitRows(lines)), [
    ["a", "a"],
    ["b", "d"],
    ["c", undefined],
    ["e", "e"],
    [undefined, "f"],
    ["g", undefined],
  ]);
  assert.deepEqual(texts(changedPairs(lines)), [["b", "d"]]);
});
