import assert from "node:assert/strict";
import { test } from "node:test";
import { isOneFile, type LineTable, sourceLine, sourceStack } from "./one-file.js";

test("a place in the one file is the line of a source that began last before it", () => {
  const table: LineTable = { sources: ["a.ts", "b.ts"], places: [4, 1, 0, 10, 4, 30, 0, 11, 4, 50, 1, 1, 6, 9, 0, 30] };
  const expected: readonly (readonly [number, number, string | undefined])[] = [
    [1, 99, undefined],
    [4, 1, "a.ts:10"],
    [4, 29, "a.ts:10"],
    [4, 30, "a.ts:11"],
    [4, 51, "b.ts:1"],
    [5, 7, "b.ts:1"],
    [6, 8, "b.ts:1"],
    [6, 9, "a.ts:30"],
    [9, 1, "a.ts:30"],
  ];
  for (const [line, column, place] of expected)
    assert.equal(sourceLine(table, line, column), place, `${line}:${column}`);
  assert.equal(sourceLine({ sources: [], places: [] }, 1, 1), undefined);
});

test("run file by file, stacks are told as they are", () => {
  const stack = "Error: x\n    at run (/somewhere/dist/program/main.script:12:3)";
  assert.equal(isOneFile, false);
  assert.equal(sourceStack(stack), stack);
});
