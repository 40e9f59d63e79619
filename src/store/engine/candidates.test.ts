import assert from "node:assert/strict";
import { test } from "node:test";
import { type Lists, type MergedStreams, shortestOf } from "./candidates.js";
import type { Entry } from "./row.js";

const entry = (seq: number): Entry => ({ time: 1_000_000 - seq, idHigh: 0, idLow: seq, seq });

/** Lists of so many entries each; counts what is read of them. */
function listsOf(lengths: Readonly<Record<string, number>>) {
  let read = 0;
  const lists: Lists = {
    scan(term, after, _since, _until, max) {
      const from = after ? after.seq + 1 : 0;
      const found = Array.from({ length: Math.max(0, Math.min(max, (lengths[term] ?? 0) - from)) }, (_, at) =>
        entry(from + at),
      );
      read += found.length;
      return found;
    },
  };
  return { open: (term: string, streams: MergedStreams) => streams.add(lists, term), read: () => read };
}

test("of lists that all lead to what is searched the shortest is walked, and none is read to its end to find that out", () => {
  const cases: readonly (readonly [string, Readonly<Record<string, number>>, string[]])[] = [
    ["nothing to choose", {}, []],
    ["one alone", { a: 5_000 }, ["a"]],
    ["a common and a rare word", { common: 100_000, rare: 3 }, ["rare"]],
    ["a word that is nowhere", { common: 100_000, rare: 3, nowhere: 0 }, ["nowhere"]],
    ["all of them common: the first, which is the longest word", { a: 90_000, b: 80_000, c: 70_000 }, ["a"]],
    ["long and longer, both within what is looked at", { a: 200, b: 100 }, ["b"]],
  ];
  for (const [name, lengths, chosen] of cases) {
    const { open, read } = listsOf(lengths);
    assert.deepEqual(shortestOf(Object.keys(lengths), open), chosen, name);
    assert.ok(read() < 2_500, `${name}: ${read()} entries were read`);
  }
});
