// Work that comes round: the next turn begins a while after the last one ended, so it never piles up on itself.

import type { Clock } from "./clock.js";

interface Repeated {
  /** Resolves when the turn under way, if any, has ended. */
  close(): Promise<void>;
}

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
