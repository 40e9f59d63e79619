// What a benchmark reports: a figure, the physical limit measured in the same run, and the goal it is held against.

export interface BenchRow {
  /** P1 … P10 of the goals, or "-" for a figure without one. */
  readonly goal: string;
  readonly work: string;
  readonly measured: string;
  /** The limit beside it, measured in the same run. */
  readonly limit?: string;
  /** measured / limit, where that says something. */
  readonly ratio?: number;
  readonly target?: string;
  readonly met?: boolean;
  /** What other servers needed for the same, by name. */
  readonly beside?: Readonly<Record<string, string>>;
  /** The numbers behind all of them. */
  readonly figures?: Readonly<Record<string, object>>;
}

/** Of benchmarks that can be larger or smaller; each has its own usual ones. */
export interface BenchSizes {
  readonly events?: number;
  readonly repositories?: number;
}

export interface Benchmark {
  readonly name: string;
  /** What it needs and does not find here, and how to get it; undefined when it can run. */
  missing?(): string | undefined;
  run(sizes: BenchSizes): Promise<BenchRow[]>;
}

export function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

export const perSecond = (count: number, ms: number): string =>
  `${Math.round((count / ms) * 1000).toLocaleString("en")}/s`;
export const milliseconds = (ms: number): string => `${ms < 10 ? ms.toFixed(2) : Math.round(ms)} ms`;
export const mebibytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`;
