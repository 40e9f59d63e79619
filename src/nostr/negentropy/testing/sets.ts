// Sets of records for tests and benchmarks, from a seed.

import { createHash } from "node:crypto";
import type { TimedIds } from "../records.js";

export interface Item {
  readonly time: number;
  readonly id: string;
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function numbersFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** `times` different seconds at most: few make many records share one. */
export function randomItems(count: number, times: number, seed: number): Item[] {
  const next = numbersFrom(seed);
  return Array.from({ length: count }, (_, index) => ({
    time: 1_600_000_000 + Math.floor(next() * times),
    id: createHash("sha256").update(`${seed}/${index}`).digest("hex"),
  }));
}

export function timedIdsOf(items: readonly Item[]): TimedIds {
  const sorted = [...items].sort((a, b) => a.time - b.time || (a.id < b.id ? -1 : 1));
  const times = Float64Array.from(sorted, (item) => item.time);
  const ids = Buffer.alloc(sorted.length * 32);
  sorted.forEach((item, index) => {
    ids.write(item.id, index * 32, "hex");
  });
  return { length: sorted.length, times, ids };
}

export interface TwoSides {
  readonly ours: Item[];
  readonly theirs: Item[];
  readonly onlyOurs: string[];
  readonly onlyTheirs: string[];
}

/** Two sides that share `shared` records and have some of their own, spread among them. */
export function twoSides(shared: number, onlyOurs: number, onlyTheirs: number, times: number, seed: number): TwoSides {
  const all = randomItems(shared + onlyOurs + onlyTheirs, times, seed);
  const ours = all.slice(0, shared + onlyOurs);
  const extra = all.slice(shared + onlyOurs);
  return {
    ours,
    theirs: [...all.slice(0, shared), ...extra],
    onlyOurs: ours.slice(shared).map((item) => item.id),
    onlyTheirs: extra.map((item) => item.id),
  };
}
