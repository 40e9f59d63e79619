// How `cluster` writes its figures: each beside the server that is alone, measured in the same run.

import type { Sides } from "./cluster-ground.js";
import { type BenchRow, milliseconds, percentile } from "./rows.js";

export const goal = "cluster";

/** BENCH_SHARE=0.1 does a tenth of everything, for a look whether it works: figures of few say little. */
const share = Number(process.env.BENCH_SHARE ?? 1);
export const scaled = (count: number): number => Math.max(3, Math.round(count * share));

export const timesText = (times: readonly number[]): string =>
  `p50 ${milliseconds(percentile(times, 0.5))}, p99 ${milliseconds(percentile(times, 0.99))}`;

export const ratioOf = (times: Sides<readonly number[]>, part = 0.5): number =>
  percentile(times.together, part) / percentile(times.alone, part);

/** What a change costs at least: PostgreSQL's commit of one row, as often as the work commits. */
export function commitText(bare: readonly number[], times: readonly number[]): string {
  const p50 = percentile(bare, 0.5);
  return `bare commit p50 ${milliseconds(p50)} (× ${(percentile(times, 0.5) / p50).toFixed(1)})`;
}

/** Times of both sides; `target` and `met` where there is a goal. */
export function timesRow(
  work: string,
  times: Sides<readonly number[]>,
  more: { readonly limit?: string; readonly target?: string; readonly met?: boolean; readonly note?: string } = {},
): BenchRow {
  const { limit, note, ...rest } = more;
  return {
    ...{ goal, work, ...rest },
    measured: `${timesText(times.together)} (${times.together.length}${note === undefined ? "" : `; ${note}`})`,
    limit: `alone ${timesText(times.alone)}${limit === undefined ? "" : `; ${limit}`}`,
    ratio: ratioOf(times),
  };
}

export const microseconds = (ms: number, count: number): string => `${Math.round((ms * 1_000) / count)} µs`;
