// How many repositories are served. Nothing tells of every change of the catalogue (a mirror that leaves because a list
// changed stores no event): it is counted when somebody asks, and again only after a while.

import type { Clock } from "../base/clock.js";
import { catalogueRows, isReleased } from "../catalogue/repositories.js";
import type { Store } from "../store/port.js";

const keptMs = 1_000;
/** Counting a large catalogue takes at most this share of the time. */
const timesAsLong = 20;

export function repositoryCounter(store: Store, clock: Clock): () => Promise<number> {
  let known = 0;
  let counting: Promise<number> | undefined;
  let freshUntilMs = Number.NEGATIVE_INFINITY;
  const recount = async (): Promise<number> => {
    const startedMs = clock.monotonicMs();
    let count = 0;
    for await (const row of catalogueRows(store)) if (isReleased(row)) count++;
    const endedMs = clock.monotonicMs();
    freshUntilMs = endedMs + Math.max(keptMs, timesAsLong * (endedMs - startedMs));
    known = count;
    return known;
  };
  return async () => {
    if (clock.monotonicMs() < freshUntilMs) return known;
    counting ??= recount()
      // A store that cannot be read is told of elsewhere: numbers and pages go on with what was known.
      .catch(() => known)
      .finally(() => {
        counting = undefined;
      });
    return counting;
  };
}
