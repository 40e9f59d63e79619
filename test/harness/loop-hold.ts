// How long something holds the event loop, as processor time: what other programs do on the machine does not count.
// "Nothing a stranger sends holds it longer than 50 ms" (threats.md, rows 32 to 55) is meant for a machine that parses a
// mebibyte of plain JSON in 3 ms; the bound grows on a slower one.

const runs = 4;
const promisedMs = 50;
const plainParseMs = 3;

export function cpuMs(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Least of a few runs; the first that takes less than `enoughMs` is the last. */
export function leastCpuMs(work: () => unknown, enoughMs = 0): number {
  let least = cpuMs(work);
  for (let run = 1; run < runs && least >= enoughMs; run++) least = Math.min(least, cpuMs(work));
  return least;
}

export function loopBoundMs(): number {
  const plain = JSON.stringify(Array.from({ length: 15_000 }, (_, index) => index.toString(16).padStart(64, "0")));
  return promisedMs * Math.max(1, leastCpuMs(() => JSON.parse(plain)) / plainParseMs);
}
