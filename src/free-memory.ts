// Gives freed memory back to the system. glibc keeps what is free between buffers that are in use, for as long as the
// process lives: after a flood of large messages that is a hundred megabytes and more. One `malloc_trim` gives it back, at
// less than a millisecond for ten megabytes. Where there is no glibc nothing is done; other allocators give back by themselves.

import { type Clock, repeatedly } from "./base/clock.js";

const lookEveryMs = 1_000;
/** So much must have become free since the last time. */
const worthTrimmingBytes = 16 * 2 ** 20;

export function returnFreeMemory(clock: Clock, onFault: (error: unknown) => void): { close(): Promise<void> } {
  let lastBytes = 0;
  let freedBytes = 0;
  const look = async (): Promise<void> => {
    const { arrayBuffers } = process.memoryUsage();
    freedBytes += Math.max(0, lastBytes - arrayBuffers);
    lastBytes = arrayBuffers;
    if (freedBytes < worthTrimmingBytes) return;
    freedBytes = 0;
    (await trimmer())?.();
  };
  return repeatedly(clock, () => lookEveryMs, look, onFault);
}

let loading: Promise<(() => void) | undefined> | undefined;

/** Loaded when it is needed first: most servers are never flooded. */
function trimmer(): Promise<(() => void) | undefined> {
  loading ??= import("koffi")
    .then(({ load }) => {
      const trim = load("libc.so.6").func("int malloc_trim(size_t pad)");
      return () => void trim(0);
    })
    .catch(() => undefined);
  return loading;
}
