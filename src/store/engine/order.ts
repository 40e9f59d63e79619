// The one order of answers (NIP-01): newest first, lower id first within a second. Index entries carry the first
// 64 bits of the id, as two numbers; two events of one second that agree in all of them are ordered by arrival.

export interface Entry {
  readonly time: number;
  readonly idHigh: number;
  readonly idLow: number;
  readonly seq: number;
}

/** Negative when `a` is answered before `b`; zero only for the same stored event. */
export function compareEntries(a: Entry, b: Entry): number {
  return b.time - a.time || a.idHigh - b.idHigh || a.idLow - b.idLow || a.seq - b.seq;
}

export const idHighOf = (id: string): number => Number.parseInt(id.slice(0, 8), 16);
export const idLowOf = (id: string): number => Number.parseInt(id.slice(8, 16), 16);

/** A view that sees writes no commit has confirmed yet: the transaction's. */
export const pendingView = Number.MAX_SAFE_INTEGER;

/** Times beyond this (nine million years) all count as this one. */
export const maxTime = 2 ** 48 - 1;
