// Waiting, and not giving up: what sync lives on must outlast a store that fails in passing.

import type { Clock } from "../base/clock.js";
import { StoreClosedError } from "../store/port.js";

/** Resolves after the time, or at once when the signal aborts. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((go) => {
    const end = (): void => {
      signal.removeEventListener("abort", end);
      cancel();
      go();
    };
    const cancel = clock.after(delayMs, end);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}

const againMs = 5_000;

/** Tries until it was done, until the signal aborts, or until the store has closed. */
export async function untilDone(
  work: () => Promise<void>,
  clock: Clock,
  signal: AbortSignal,
  fault: (error: unknown) => void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await work();
      return;
    } catch (error) {
      if (signal.aborted) return;
      fault(error);
      if (error instanceof StoreClosedError) return;
      await pause(clock, againMs, signal);
    }
  }
}
