// How many there are of something, without counting them for each newcomer: counted once a minute, guessed upwards in
// between. For bounds that need not be exact.

export interface Tally {
  /** The number with one more. */
  next(nowSeconds: number, count: () => Promise<number>): Promise<number>;
}

const refreshSeconds = 60;

export function createTally(): Tally {
  let countedAt = Number.NEGATIVE_INFINITY;
  let known = 0;
  return {
    async next(nowSeconds, count) {
      // A clock that was set back must not keep an old count alive.
      if (Math.abs(nowSeconds - countedAt) >= refreshSeconds) {
        known = await count();
        countedAt = nowSeconds;
      }
      known++;
      return known;
    },
  };
}
