// An answer that is the same for everybody, worked out at most once in a while (a second) however often it is asked for
// (threats row 53). Who asks while it is being worked out waits for the same one.

import type { Clock } from "../base/clock.js";

export interface Keeping {
  readonly clock: Clock;
  readonly keptMs: () => number;
}

export function remembered<T>({ clock, keptMs }: Keeping, work: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined;
  let untilMs = 0;
  return () => {
    const nowMs = clock.monotonicMs();
    if (answer && nowMs < untilMs) return answer;
    untilMs = nowMs + keptMs();
    answer = work();
    return answer;
  };
}
