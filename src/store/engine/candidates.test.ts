import assert from "node:assert/strict";
import { test } from "node:test";
import { CommonEntries, type Lists, MergedStreams, shortestOf } from "./candidates.js";
import { compareEntries, type Entry } from "./row.js";

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

/** One list of the entries with these numbers; counts what is read of it. */
function listOf(seqs: readonly number[]) {
  let read = 0;
  const entries = seqs.map(entry);
  const lists: Lists = {
    scan(_term, after, _since, _until, max) {
      const from = after ? entries.findIndex((one) => compareEntries(one, after) > 0) : 0;
      const found = from < 0 ? [] : entries.slice(from, from + max);
      read += found.length;
      return found;
    },
  };
  const streams = new MergedStreams(0, Number.MAX_SAFE_INTEGER);
  streams.add(lists, "term");
  return { streams, read: () => read };
}

const numbers = (count: number, every = 1, from = 0): number[] =>
  Array.from({ length: count }, (_, at) => from + at * every);

test("what several lists have in common costs what the shortest has, wherever it stands among them", () => {
  const cases: readonly (readonly [string, readonly number[][], number])[] = [
    ["one that is short", [numbers(100_000), numbers(3, 30_000)], 200],
    ["the same, named first", [numbers(3, 30_000), numbers(100_000)], 200],
    ["none in common", [numbers(50_000, 2), numbers(4, 10_000, 1)], 300],
    ["one after the other", [numbers(50_000), numbers(50_000, 1, 50_000)], 100],
    ["an empty one", [numbers(50_000), []], 100],
    ["three", [numbers(90_000), numbers(45_000, 2), numbers(5, 9_000)], 500],
    ["nearly everything", [numbers(1_000), numbers(500, 2)], 1_700],
  ];
  for (const [name, members, most] of cases) {
    const lists = members.map(listOf);
    const common = new CommonEntries(lists.map(({ streams }) => streams));
    const found: number[] = [];
    for (let next = common.next(); next; next = common.next()) if (next !== "none yet") found.push(next.seq);
    const [first = [], ...others] = members.map((list) => new Set(list));
    assert.deepEqual(
      found,
      [...first].filter((seq) => others.every((other) => other.has(seq))),
      name,
    );
    const read = lists.reduce((sum, list) => sum + list.read(), 0);
    assert.ok(read <= most, `${name}: ${read} entries were read`);
  }
});
