// Long work for pages on the event loop: after a moment everybody else has a turn, however many pages are being made.

import { LoopTurns } from "./clock.js";

const turns = new LoopTurns();

/** Awaited between small pieces of work: nothing early in a turn of the loop, later the next turn. */
export const othersFirst = (): Promise<void> | undefined => turns.begin(performance.now());

const runLength = 256;

/** A long list in order, as `sort` would put it: short runs, then two and two together. */
export async function sortedInTurns<Item>(
  items: readonly Item[],
  compare: (a: Item, b: Item) => number,
): Promise<Item[]> {
  let runs: Item[][] = [];
  for (let at = 0; at < items.length; at += runLength) {
    await othersFirst();
    runs.push(items.slice(at, at + runLength).sort(compare));
  }
  while (runs.length > 1) {
    const merged: Item[][] = [];
    for (let at = 0; at < runs.length; at += 2)
      merged.push(await mergedOf(runs[at] ?? [], runs[at + 1] ?? [], compare));
    runs = merged;
  }
  return runs[0] ?? [];
}

/** Of equal ones, those of the first list come first. */
async function mergedOf<Item>(
  one: readonly Item[],
  other: readonly Item[],
  compare: (a: Item, b: Item) => number,
): Promise<Item[]> {
  const merged: Item[] = [];
  let [left, right] = [0, 0];
  while (left < one.length && right < other.length) {
    if (merged.length % runLength === 0) await othersFirst();
    const isFirst = compare(one[left] as Item, other[right] as Item) <= 0;
    merged.push((isFirst ? one[left++] : other[right++]) as Item);
  }
  return merged.concat(one.slice(left), other.slice(right));
}
