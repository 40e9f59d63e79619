// What benchmark corpora are made with: repeatable randomness, few popular names among many, and a fingerprint that
// says which corpus was used, so that runs compare.

import { createHash } from "node:crypto";

/** Small, quick, good enough for test data (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Index from 0 to n-1 where low ones are far more likely (exponent 1). */
export function zipfIndex(random: () => number, n: number): number {
  return Math.min(n - 1, Math.floor(n ** random()) - 1);
}

export function fingerprint(events: Iterable<{ readonly id: string }>): string {
  const hash = createHash("sha256");
  for (const event of events) hash.update(event.id);
  return hash.digest("hex").slice(0, 12);
}
