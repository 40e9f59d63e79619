// A failing seed, made small: fewer relays, repositories, happenings, hours, as long as the same property breaks.

import { type RunOptions, type RunResult, run } from "./run.js";
import type { Size } from "./scenario.js";

const propertyOf = (result: RunResult): string | undefined => /^property \d+/.exec(result.problems[0] ?? "")?.[0];

export function shrink(
  options: RunOptions,
  first: RunResult,
  maxRuns = 60,
): { size: Size; result: RunResult; runs: number } {
  const property = propertyOf(first);
  let best: { size: Size; result: RunResult } = { size: first.size, result: first };
  let runs = 0;
  const tries = (size: Size): Size[] => {
    const smaller: Size[] = [];
    for (const part of ["happenings", "repos", "relays", "hours"] as const) {
      const least = part === "happenings" ? 0 : 1;
      for (const next of [least, Math.floor(size[part] / 2), size[part] - 1]) {
        if (next >= least && next < size[part]) smaller.push({ ...size, [part]: next });
      }
    }
    return smaller;
  };
  for (let improved = true; improved && runs < maxRuns; ) {
    improved = false;
    for (const size of tries(best.size)) {
      if (runs++ >= maxRuns) break;
      const result = run({ ...options, size });
      if (propertyOf(result) !== property) continue;
      best = { size, result };
      improved = true;
      break;
    }
  }
  return { ...best, runs };
}

/** The last lines before the end, or before the moment the problem names. */
export function traceOf(options: RunOptions, size: Size, lines = 60): string[] {
  const all: string[] = [];
  const result = run({ ...options, size, trace: (line) => all.push(line) });
  const problem = result.problems[0] ?? "";
  const at = /at ([\d.]+) s/.exec(problem)?.[1];
  const relay = /r\d+\.example/.exec(problem)?.[0];
  const until =
    at === undefined ? all.length : all.findLastIndex((line) => Number.parseFloat(line) <= Number(at) + 0.1) + 1;
  const before = all.slice(0, until);
  const own = relay === undefined ? before : before.filter((line) => line.includes(relay));
  return own.slice(-lines);
}
