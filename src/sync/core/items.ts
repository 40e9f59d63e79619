// An item (spec "Words") is one number: what it names, and its layer. What a relay knows of an item is one word:
// how far its history is, how often that failed, and where it is live.

export const layers = { announcements: 0, states: 1, repositories: 2, roots: 3 } as const;
export type Layer = (typeof layers)[keyof typeof layers];
export type Item = number;

/** Layer 1 of a relay. */
export const announcementsItem: Item = 0;
/** Every state of the network: bootstrap relays when the wanted repos are too many to name. */
export const allStatesItem: Item = 1;

export const stateItem = (repo: number): Item => repo * 4 + layers.states;
export const repositoryItem = (repo: number): Item => repo * 4 + layers.repositories;
export const rootItem = (root: number): Item => root * 4 + layers.roots;
export const layerOf = (item: Item): Layer => (item & 3) as Layer;
/** The repo's or root's number. Repos are counted from 1, so that 0 and 1 stay the two special items. */
export const indexOf = (item: Item): number => item >>> 2;

export const phases = {
  /** Wanted, neither pending nor confirmed: what actions.ts hands out. */
  fresh: 0,
  pending: 1,
  confirmed: 2,
  /** Failed; fresh again when its delay has passed. */
  retrying: 3,
  /** This relay refuses the value itself; tried again with the next full sync. */
  barred: 4,
  /** Not in targets. */
  absent: 5,
} as const;
export type Phase = (typeof phases)[keyof typeof phases];

/** Where an item is live: not in targets, not decided yet, covered by rotation, or the number of a chunk. */
export const slots = { none: -1, unplaced: 0, rotating: 1, firstChunk: 2 } as const;

/** One number for each of millions of (relay, item) pairs; undefined when the item is not in targets. */
export type Word = number;

export const phaseOf = (word: Word | undefined): Phase => (word === undefined ? phases.absent : ((word & 7) as Phase));
export const failuresOf = (word: Word | undefined): number => ((word ?? 0) >>> 3) & 7;
export const slotOf = (word: Word | undefined): number => (word === undefined ? slots.none : word >>> 6);
export const wordOf = (phase: Phase, failures: number, slot: number): Word =>
  ((slot << 6) | (Math.min(failures, 7) << 3) | phase) >>> 0;
