// Time as an argument. Rooms take a Clock; nothing below main reads the system's time by itself.

export interface Clock {
  /** Wall-clock milliseconds since 1970: may jump; for timestamps people see and `created_at`. */
  nowMs(): number;
  /** Milliseconds that never go back: for time-outs, back-off and durations. */
  monotonicMs(): number;
  /** Calls back once after `delayMs`. The returned function cancels. Timers never keep the process alive. */
  after(delayMs: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    // setTimeout overflows above 2^31-1 ms and would fire at once.
    const timer = setTimeout(callback, Math.min(delayMs, 2 ** 31 - 1));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

export const unixSeconds = (clock: Clock): number => Math.floor(clock.nowMs() / 1000);

interface Repeated {
  /** Resolves when the turn under way, if any, has ended. */
  close(): Promise<void>;
}

/** Work that comes round: the next turn begins a while after the last one ended, so it never piles up on itself. */
export function repeatedly(
  clock: Clock,
  everyMs: () => number,
  work: () => Promise<void>,
  onFault: (error: unknown) => void,
): Repeated {
  let closed = false;
  let running: Promise<void> = Promise.resolve();
  let cancel = clock.after(everyMs(), turn);

  function turn(): void {
    running = work()
      .catch(onFault)
      .finally(() => {
        if (!closed) cancel = clock.after(everyMs(), turn);
      });
  }

  return {
    async close() {
      closed = true;
      cancel();
      await running;
    },
  };
}
