// What `holdfast bench` prints: a figure beside what this machine could do at best, measured in the same run.

export interface Measured {
  readonly what: string;
  readonly value: number;
  readonly unit: "per second" | "ms";
  /** What bounds it, and how much that is here; undefined where nothing simple does. */
  readonly limit?: { readonly what: string; readonly value: number };
}

/** 1 is as good as it gets. */
export function shareOfLimit({ value, unit, limit }: Measured): number | undefined {
  if (!limit || limit.value === 0 || value === 0) return undefined;
  return unit === "ms" ? limit.value / value : value / limit.value;
}

/** Calls again and again for so long; how often a second. */
export async function ratePerSecond(forMs: number, once: () => Promise<number> | number): Promise<number> {
  const began = performance.now();
  let done = 0;
  while (performance.now() - began < forMs) done += await once();
  return (done * 1000) / (performance.now() - began);
}

export const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;

export async function timeMs(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}
